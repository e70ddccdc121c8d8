// A large embedding table on one server: making and training its rows, the pauses that
// forks take (docs/parameter-servers.md, "Cuts"), a checkpoint of the rows, and reading
// it back. Adagrad, rows of 16 floats.
//
// There are three forks: one, one after all rows were written while the first child lived (as it is
// on a system without huge pages), and one after that was mended. The exit code is 1 if the first
// or the last takes more than 50 ms.
//
//   antdt-ps-store-bench [ROWS, default 10000000] [DIRECTORY, default .]
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <memory_resource>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/os/fs.h"
#include "core/os/forks/huge_pages.h"
#include "trainer/ps/rows/store.h"
#include "trainer/ps_link/slice_file.h"

namespace {

using namespace antdt;
using namespace antdt::ps;

constexpr std::uint32_t kWidth = 16;
constexpr std::size_t kBatch = 10000;

// Prints what was done, how long it took, and its speed in `unit`.
class Stopwatch {
 public:
  void lap(const char* what, double amount, const char* unit) {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - begin_).count();
    fmt::print("{:<28} {:>8.3f} s {:>10.3f} {}/s\n", what, seconds, amount / seconds, unit);
    begin_ = std::chrono::steady_clock::now();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

void update_all(Store& store, std::uint64_t rows) {
  const std::vector<float> gradients(kBatch * kWidth, 0.1F);
  std::vector<std::uint64_t> keys;
  for (std::uint64_t first = 0; first < rows; first += kBatch) {
    keys.resize(std::min<std::uint64_t>(kBatch, rows - first));
    std::iota(keys.begin(), keys.end(), first);
    store.update(0, keys, std::span(gradients).first(keys.size() * kWidth), 1);
  }
}

double write_all(const Store& store, const std::string& directory) {
  double bytes = 0;
  for (std::uint32_t slice = 0; slice < kSlices; ++slice) {
    const auto file = write_slice(directory, store, slice);
    if (!file) throw std::runtime_error(file.error().message);
    bytes += static_cast<double>(file->bytes);
  }
  return bytes;
}

void read_all(Store& store, const std::string& directory) {
  for (std::uint32_t slice = 0; slice < kSlices; ++slice) {
    const Status status = read_slice(directory, store, slice);
    if (!status) throw std::runtime_error(status.error().message);
  }
}

// How long the parent stood still for the fork. `meanwhile` runs while the child lives.
double fork_ms(const std::function<void()>& meanwhile) {
  const auto began = std::chrono::steady_clock::now();
  const pid_t child = fork();
  const std::chrono::duration<double, std::milli> still = std::chrono::steady_clock::now() - began;
  if (child < 0) throw std::runtime_error("fork");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pause();
    _exit(0);
  }
  meanwhile();
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return still.count();
}

bool fork_all(Store& store, std::uint64_t rows) {
  HugePages& memory = HugePages::of_process();
  const auto write_all_rows = [&] { update_all(store, rows); };
  const double first = fork_ms(write_all_rows);
  const double apart = fork_ms([] {});
  const auto began = std::chrono::steady_clock::now();
  memory.mend();
  memory.wait_for_mending();
  const std::chrono::duration<double> mending = std::chrono::steady_clock::now() - began;
  const double mended = fork_ms([] {});
  fmt::print(
      "a fork {:.1f} ms; in small pages, after a child that lived while all was written, "
      "{:.1f} ms; mended, in {:.2f} s, {:.1f} ms\n",
      first, apart, mending.count(), mended);
  return first <= 50 && mended <= 50;
}

int run(std::uint64_t rows, const std::string& directory) {
  TableSpec spec{"embedding", kWidth, {}, TableSpec::Init::kUniform, 0.01F};
  spec.rule.kind = UpdateRule::Kind::kAdagrad;
  Store store({spec}, 7);
  const double millions = static_cast<double>(rows) / 1e6;
  Stopwatch watch;
  update_all(store, rows);
  watch.lap("made and updated", millions, "M rows");
  update_all(store, rows);
  watch.lap("updated", millions, "M rows");
  const bool pauses_are_short = fork_all(store, rows);
  watch = {};
  const double bytes = write_all(store, directory);
  watch.lap("written and synced", bytes / 1e6, "MB");
  Store again({spec}, 7);
  watch = {};
  read_all(again, directory);
  watch.lap("read back", bytes / 1e6, "MB");
  if (again.rows() != rows) throw std::logic_error("rows are missing");
  fmt::print("{:.1f} bytes a row in memory, {:.1f} on disk\n",
             static_cast<double>(store.bytes()) / static_cast<double>(rows),
             bytes / static_cast<double>(rows));
  return pauses_are_short ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::pmr::set_default_resource(&HugePages::of_process());  // as antdt-server does
  try {
    const std::uint64_t rows = argc > 1 ? std::stoull(argv[1]) : 10'000'000;
    const std::string directory = fmt::format("{}/ps-store-bench", argc > 2 ? argv[2] : ".");
    if (const Status made = make_directories(directory); !made) {
      throw std::runtime_error(made.error().message);
    }
    const int code = run(rows, directory);
    for (std::uint32_t slice = 0; slice < kSlices; ++slice) {
      unlink((directory + "/" + slice_file_name(slice)).c_str());
    }
    rmdir(directory.c_str());
    return code;
  } catch (const std::exception& error) {
    fmt::print(stderr, "antdt-ps-store-bench: {}\n", error.what());
    return 1;
  }
}
