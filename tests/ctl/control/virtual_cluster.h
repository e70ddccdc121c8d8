// Workers in virtual time under a real controller. Each step takes as long as its slowest worker,
// agents report once an interval, and a plan is in force from the step after it was sent.
#pragma once

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include "ctl/control/controller.h"
#include "effects_of.h"

namespace antdt::ctl::testing {

inline WorkerId w(std::uint32_t index) { return WorkerId{'w', index}; }

struct VirtualWorker {
  double fixed_s = 0;
  double per_sample_s = 1e-3;
  double slowdown = 1;
  double data_part = 0.1;  // of own time
  // A device: a micro-batch takes flat_s and per_sample_s for each sample beyond
  // flat_until. Without flat_s a step takes fixed_s, and per_sample_s for each sample.
  double flat_s = 0;
  std::uint32_t flat_until = 0;
};

struct VirtualDevice {
  std::string device_class;
  std::uint32_t memory = 0;  // samples of a micro-batch; 0: does not say
  double flat_s = 0;
  std::uint32_t flat_until = 0;
  double per_sample_s = 0;
};

class VirtualCluster {
 public:
  struct Options {
    std::size_t workers = 4;
    std::uint32_t global_batch = 1024;
    double window_s = 1;
    double noise = 0.1;
    bool lognormal = false;
    std::uint64_t seed = 1;
    Mode mode = Mode::kAct;
    Adjust adjust = Adjust::kBoth;
    std::string solution = "nd";
    std::vector<VirtualDevice> devices{};  // one for each worker, or none
    std::uint32_t multiple_of = 1;
    double all_wait_s = 0;  // for a network or servers, in every step
    DomainRests rests{};    // the same all the time
  };

  explicit VirtualCluster(Options options)
      : workers(options.workers),
        options_(options),
        random_(options.seed),
        controller_(config(options), make_solution(options.solution).value()),
        pending_(options.workers) {
    control::GroupFormed formed;
    for (std::uint32_t i = 0; i < options.workers; ++i) {
      formed.members.push_back({{w(i), Attempt{1}}, "host"});
      if (options.devices.empty()) continue;
      const VirtualDevice& device = options.devices[i];
      formed.members.back().device = {device.device_class, device.memory};
      workers[i].flat_s = device.flat_s;
      workers[i].flat_until = device.flat_until;
      workers[i].per_sample_s = device.per_sample_s;
    }
    formed.rests = options.rests;
    run(effects_of(controller_, formed, now()));
    report_every_ = report_interval(config(options).monitor);
    next_report_ = now() + report_every_;
    next_tick_ = now() + controller_.tick_interval();
  }

  // One step of all workers, and whatever reports and ticks fall into it.
  void step() {
    adopt_plan();
    std::vector<double> own;
    for (std::size_t i = 0; i < workers.size(); ++i) {
      own.push_back(time_of(i) * noise());
    }
    const double longest = *std::max_element(own.begin(), own.end()) + options_.all_wait_s;
    advance(from_seconds(longest));
    for (std::size_t i = 0; i < workers.size(); ++i) {
      if (skip_ > 0) {
        ++pending_[i].skipped;
        continue;
      }
      const double data = workers[i].data_part;
      ++pending_[i].batches;
      pending_[i].samples += share(i);
      pending_[i].data_us += static_cast<std::uint64_t>(1e6 * own[i] * data);
      pending_[i].compute_us += static_cast<std::uint64_t>(1e6 * own[i] * (1 - data));
      pending_[i].wait_us += static_cast<std::uint64_t>(1e6 * (longest - own[i]));
    }
    if (skip_ > 0) --skip_;
    ++steps;
  }
  void run_for(double seconds) {
    for (const MonoTime end = now() + from_seconds(seconds); now() < end;) step();
  }
  // Steps until the condition holds; seconds passed, or -1 past the limit.
  double run_until(const std::function<bool()>& condition, double limit_s) {
    const MonoTime begin = now();
    while (!condition()) {
      if (to_seconds(now() - begin) > limit_s) return -1;
      step();
    }
    return to_seconds(now() - begin);
  }

  // Time of a noiseless step under the plan in force.
  [[nodiscard]] double step_s() const {
    double longest = 0;
    for (std::size_t i = 0; i < workers.size(); ++i) {
      longest = std::max(longest, time_of(i));
    }
    return longest;
  }
  [[nodiscard]] std::uint32_t share(std::size_t i) const { return share_of(in_force_.entries[i]); }
  [[nodiscard]] MonoTime now() const { return now_; }
  [[nodiscard]] const WorkerView& view(std::size_t i) const {
    return controller_.view().workers.at(i);
  }
  [[nodiscard]] const Controller& controller() const { return controller_; }
  [[nodiscard]] const wire::Plan& in_force() const { return in_force_; }

  std::vector<VirtualWorker> workers;
  std::vector<control::RecordAction> actions;
  std::uint64_t steps = 0;
  int out_of_memory = 0;  // entries of plans whose micro-batch no device could hold

 private:
  static ControllerConfig config(const Options& options) {
    ControllerConfig c;
    c.mode = options.mode;
    c.rules.global_batch = options.global_batch;
    c.rules.adjust = options.adjust;
    c.rules.multiple_of = options.multiple_of;
    c.rules.base = accumulation_base(c.rules, options.workers);
    c.monitor.transient_window = from_seconds(options.window_s);
    c.monitor.persistent_window = from_seconds(options.window_s * 5);
    return c;
  }
  [[nodiscard]] double time_of(std::size_t i) const {
    const VirtualWorker& v = workers[i];
    if (v.flat_s == 0) return v.slowdown * (v.fixed_s + v.per_sample_s * share(i));
    const wire::PlanEntry& entry = in_force_.entries[i];
    const std::uint32_t beyond = entry.micro_batch - std::min(entry.micro_batch, v.flat_until);
    return v.slowdown * entry.accumulation * (v.flat_s + v.per_sample_s * beyond);
  }
  double noise() {
    if (options_.noise == 0) return 1;
    const double z = std::normal_distribution<double>()(random_);
    if (options_.lognormal) return std::exp(options_.noise * z);
    return std::max(0.1, 1 + options_.noise * z);
  }
  void run(const control::Effects& effects) {
    for (const control::Effect& effect : effects) {
      if (const auto* plan = std::get_if<control::SendPlan>(&effect)) sent_ = plan->plan;
      if (auto action = recorded(effect, now_)) actions.push_back(std::move(*action));
    }
  }
  void adopt_plan() {
    if (sent_.version == in_force_.version) return;
    in_force_ = sent_;
    for (std::size_t i = 0; i < options_.devices.size(); ++i) {
      const std::uint32_t memory = options_.devices[i].memory;
      if (memory != 0 && in_force_.entries[i].micro_batch > memory) ++out_of_memory;
    }
    skip_ = 2;
    run(effects_of(controller_, control::PlanTookEffect{in_force_.version}, now_));
  }
  void advance(Duration by) {
    const MonoTime end = now_ + by;
    while (std::min(next_report_, next_tick_) <= end) {
      now_ = std::min(next_report_, next_tick_);
      if (now_ == next_report_) report();
      if (now_ == next_tick_) {
        next_tick_ += controller_.tick_interval();
        control::TimePassed tick;
        tick.rests = options_.rests;
        run(effects_of(controller_, tick, now_));
      }
    }
    now_ = end;
  }
  void report() {
    next_report_ += report_every_;
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(report_every_);
    for (std::uint32_t i = 0; i < workers.size(); ++i) {
      const wire::Metrics metrics{pending_[i], static_cast<std::uint32_t>(ms.count())};
      run(effects_of(controller_, control::MetricsReported{{{w(i), Attempt{1}}, metrics}}, now_));
      pending_[i] = {};
    }
  }

  Options options_;
  std::mt19937_64 random_;
  Controller controller_;
  std::vector<wire::Report> pending_;
  wire::Plan sent_;
  wire::Plan in_force_;
  int skip_ = 0;
  MonoTime now_{std::chrono::hours(5)};
  MonoTime next_report_{};
  MonoTime next_tick_{};
  Duration report_every_{};
};

}  // namespace antdt::ctl::testing
