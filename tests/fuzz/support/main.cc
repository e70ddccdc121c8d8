// The main() of the fuzzers is libFuzzer's. The name under which the program was started chooses
// the target.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/support/fuzz.h"

extern "C" {
int LLVMFuzzerInitialize(int* argc, char*** argv);
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
}

namespace antdt::fuzz {

std::map<std::string, Target>& targets() {
  static std::map<std::string, Target> all;
  return all;
}

namespace {
Target g_chosen = nullptr;  // libFuzzer passes nothing but the input
}

}  // namespace antdt::fuzz

int LLVMFuzzerInitialize(int* /*argc*/, char*** argv) {
  using namespace antdt::fuzz;
  constexpr std::string_view kSuffix = "_fuzz";
  const std::string path = (*argv)[0];
  std::string name = path.substr(path.rfind('/') + 1);
  if (name.ends_with(kSuffix)) name.resize(name.size() - kSuffix.size());
  const auto found = targets().find(name);
  if (found == targets().end()) {
    fmt::print(stderr, "there is no fuzzer '{}': start one of the links beside this program\n",
               name);
    std::exit(2);
  }
  g_chosen = found->second;
  return 0;
}

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return antdt::fuzz::g_chosen(data, size);
}
