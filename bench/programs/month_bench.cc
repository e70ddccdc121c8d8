// A month of a job in virtual time (sim/fleet/long_run.h): what its job daemon writes and keeps, a
// line a day. Ends with 1 if a bound of docs/journal.md is exceeded on any day.
//
//   antdt-month-bench [WORKERS [DAYS [MIB OF HISTORY [DIRECTORY]]]]
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "sim/fleet/long_run.h"

namespace {

using namespace antdt;

double mib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }
double kib(std::uint64_t bytes) { return static_cast<double>(bytes) / 1024; }

void print_head() {
  fmt::print(
      "| day | steps | generations | lineages | job daemons | actions | failures | turns | "
      "turn p99, KiB | turn most, KiB | image, KiB | snapshot, MiB | state.db, MiB | "
      "history.db, MiB | status, KiB | heap, MiB | resident, MiB | replay, s |\n|{}\n",
      [] {
        std::string line;
        for (int i = 0; i < 18; ++i) line += "---:|";
        return line;
      }());
}

void print(const fleet::LongDay& d) {
  fmt::print(
      "| {:.0f} | {} | {} | {} | {} | {} | {} | {} | {:.1f} | {:.1f} | {:.1f} | {:.2f} | {:.1f} "
      "| {:.1f} | {:.1f} | {:.1f} | {:.1f} | {:.2f} |\n",
      d.day, d.steps, d.generations, d.lineages, d.incarnations + 1, d.actions, d.failures, d.turns,
      kib(d.turn_p99), kib(d.turn_most), kib(d.image), mib(d.snapshot), mib(d.state_db),
      mib(d.history_db), kib(d.status), mib(d.heap), mib(d.resident), d.replay_s);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  fleet::LongRun run;
  if (argc > 1) run.workers = static_cast<std::uint32_t>(std::atoi(argv[1]));
  if (argc > 2) run.days = std::atof(argv[2]);
  if (argc > 3) run.history_bytes = std::strtoull(argv[3], nullptr, 10) << 20;
  if (argc > 4) run.directory = argv[4];
  bool within = true;
  print_head();
  const Status played = fleet::play(run, [&](const fleet::LongDay& day) {
    print(day);
    for (const std::string& what : fleet::exceeded(day, run)) {
      fmt::print(stderr, "day {:.0f}: {}\n", day.day, what);
      within = false;
    }
  });
  if (!played) return fmt::print(stderr, "{}\n", played.error().message), 1;
  return within ? 0 : 1;
}
