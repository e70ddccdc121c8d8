// The one program of all fuzzers: build/fuzz/bin/NAME_fuzz is a link to it and runs the target
// NAME.
#include <cstdio>
#include <cstdlib>
#include <map>

#include "tests/fuzz/support/fuzz.h"

namespace antdt::fuzz {
namespace {

std::map<std::string_view, Target>& targets() {
  static std::map<std::string_view, Target> targets;
  return targets;
}

Target chosen = nullptr;

// The target of a program that is started as build/fuzz/bin/NAME_fuzz; ends the program if there is
// none of that name.
Target target_of(std::string_view program) {
  constexpr std::string_view kSuffix = "_fuzz";
  std::string_view name = program.substr(program.rfind('/') + 1);
  if (name.ends_with(kSuffix)) name.remove_suffix(kSuffix.size());
  const auto found = targets().find(name);
  if (found != targets().end()) return found->second;
  std::fprintf(stderr, "no fuzz target is called %.*s; the program is to be started as one of:\n",
               static_cast<int>(name.size()), name.data());
  for (const auto& [known, target] : targets()) {
    std::fprintf(stderr, "  %.*s_fuzz\n", static_cast<int>(known.size()), known.data());
  }
  std::exit(2);
}

}  // namespace

bool add_target(std::string_view name, Target target) {
  return targets().emplace(name, target).second;
}

}  // namespace antdt::fuzz

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** argv) {
  antdt::fuzz::chosen = antdt::fuzz::target_of((*argv)[0]);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return antdt::fuzz::chosen(data, size);
}
