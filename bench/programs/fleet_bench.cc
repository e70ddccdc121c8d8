// The cost of the real job with many workers: how many virtual seconds this program plays in a
// second of processor time, and the controller's longest decision.
//
//   antdt-fleet-bench [WORKERS [VIRTUAL SECONDS [SOLUTION]]]
#include <fmt/format.h>

#include <cstdlib>
#include <ctime>

#include "core/permutation.h"
#include "sim/fleet/player.h"

namespace {

using namespace antdt;

// Steps of about 1.2 s. A tenth of the workers have a third of the others' speed for a tenth of the
// time, each at different moments.
class Shared final : public fleet::Speeds {
 public:
  fleet::BatchTime at(std::uint32_t worker, double at_s, std::uint64_t /*step*/) const override {
    fleet::BatchTime time;
    time.flat_s = 0.1;
    time.per_sample_s = 0.01;
    const auto window = static_cast<std::uint64_t>(at_s / 120);
    if (combine_seed(combine_seed(7, worker), window) % 100 == 0) time.slowdown = 3;
    return time;
  }
  double noise(std::uint32_t worker, std::uint64_t batch) const override {
    const std::uint64_t draw = combine_seed(combine_seed(11, worker), batch);
    return 0.95 + 0.1 * static_cast<double>(draw >> 11) * 0x1.0p-53;
  }
};

class ProcessorTime final : public Clock {
 public:
  MonoTime now() const override {
    return MonoTime(from_seconds(static_cast<double>(std::clock()) / CLOCKS_PER_SEC));
  }
};

}  // namespace

int main(int argc, char** argv) {
  const auto workers = static_cast<std::uint32_t>(argc > 1 ? std::atoi(argv[1]) : 1000);
  const double seconds = argc > 2 ? std::atof(argv[2]) : 60;
  const char* const solution = argc > 3 ? argv[3] : "nd";
  const ProcessorTime clock;  // the machine may be busy with something else
  fleet::Setup setup;
  setup.workers = workers;
  setup.machine.job = "bench";
  setup.machine.control.rules.global_batch = 100 * workers;
  setup.machine.spec.train_records = std::uint64_t{1000} * 100 * workers * 1000;
  setup.machine.ledger.train = {setup.machine.spec.train_records, 1000ULL * workers,
                                shard_server::Shuffle::kFull, 7};
  setup.machine.spec.checkpoint_every = std::chrono::minutes(1);
  setup.hosts.clear();
  for (std::uint32_t h = 0; h < (workers + 7) / 8; ++h)
    setup.hosts.push_back(fmt::format("h{}", h));
  setup.limit = from_seconds(seconds);
  setup.stopwatch = &clock;
  auto made = ctl::make_solution(solution);
  if (!made) return fmt::print(stderr, "{}\n", made.error().message), 2;
  setup.solution = std::move(*made);
  const Shared speeds;
  const MonoTime began = clock.now();
  const auto played = fleet::Player(std::move(setup), speeds).play();
  if (!played) return fmt::print(stderr, "{}\n", played.error().message), 1;
  const double took = to_seconds(clock.now() - began);
  fmt::print(
      "{} workers, {:.0f} virtual s in {:.2f} s: {} steps, {} messages ({:.2f} us each), {} "
      "actions, journal {} MiB\n{} decisions, {:.2f} ms in the mean, {:.2f} ms at most\n",
      workers, seconds, took, played->steps, played->messages,
      1e6 * took / static_cast<double>(std::max<std::uint64_t>(played->messages, 1)),
      played->report.actions.size(), played->journal_bytes >> 20, played->decisions,
      1e3 * played->all_decisions_s /
          static_cast<double>(std::max<std::uint64_t>(played->decisions, 1)),
      1e3 * played->longest_decision_s);
  return 0;
}
