// The cost of a tick of the controller in processor time, for each solution: the monitor's view of
// all workers, and the solution's decision.
//
//   antdt-controller-bench [WORKERS]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "ctl/control/controller.h"

namespace antdt::ctl {
namespace {

double processor_s() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// Three device classes; every hundredth worker is slow.
wire::Report report_of(std::uint32_t worker) {
  wire::Report r;
  r.batches = 2;
  r.samples = 200;
  r.compute_us = (worker % 100 == 0 ? 3 : 1) * (400'000 + 100'000 * (worker % 3));
  return r;
}

void measure(const char* solution, std::uint32_t workers) {
  ControllerConfig config;
  config.rules.global_batch = 100 * workers;
  Controller controller(config, make_solution(solution).value());
  MonoTime now{std::chrono::hours(1)};
  control::GroupFormed formed;
  for (std::uint32_t i = 0; i < workers; ++i) {
    formed.members.push_back({{WorkerId{'w', i}, Attempt{1}},
                              fmt::format("h{}", i / 8),
                              {std::string(1, static_cast<char>('a' + i % 3)), 512}});
  }
  control::Effects effects;
  controller.step(formed, now, effects);
  controller.step(control::PlanTookEffect{controller.plan().version}, now, effects);
  std::vector<double> ticks;
  std::size_t actions = 0;
  for (int s = 0; s < 40; ++s) {
    now += std::chrono::seconds(1);
    for (std::uint32_t i = 0; i < workers; ++i) {
      controller.step(
          control::MetricsReported{{{WorkerId{'w', i}, Attempt{1}}, {report_of(i), 1000}}}, now,
          effects);
    }
    const double begin = processor_s();
    effects.clear();
    controller.step(control::TimePassed{1'000'000'000}, now, effects);
    ticks.push_back(processor_s() - begin);
    for (const control::Effect& e : effects)
      actions += std::holds_alternative<control::RecordAction>(e) ? 1 : 0;
    controller.step(control::PlanTookEffect{controller.plan().version}, now, effects);
  }
  std::sort(ticks.begin(), ticks.end());
  fmt::print("{:15} {} workers: median {:.1f} ms, longest {:.1f} ms a tick, {} actions\n", solution,
             workers, 1e3 * ticks[ticks.size() / 2], 1e3 * ticks.back(), actions);
}

}  // namespace
}  // namespace antdt::ctl

int main(int argc, char** argv) {
  const auto workers = static_cast<std::uint32_t>(argc > 1 ? std::atoi(argv[1]) : 10'000);
  for (const char* solution : {"none", "nd", "dd", "lb-bsp"})
    antdt::ctl::measure(solution, std::max(workers, 1U));
}
