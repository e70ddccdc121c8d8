// Turns what workers measured into speeds and verdicts. A value: no clock, no
// I/O; the same observations at the same times give the same view.
//
// For each worker it keeps
//   - the transient window (short) and the persistent one (long), and its last reports, from which
//     the figures come where steps are too long for these windows;
//   - how much its batches scatter, from the differences of successive reports
//     (their median, so that one jump or pause does not pass for noise);
//   - since when it deviates from its peers;
//   - a least-squares line of batch time over batch size.
// A new attempt of a worker begins with nothing. When a worker's newest
// reports differ from its older ones by more than noise, its speed has
// changed: the transient figures then come from what is after the change only.
//
// A worker is compared with the median of the *others'* speeds, samples over
// time for data and compute. Waiting in the collective never counts, so a worker that
// waits for a straggler is not named as one. A worker is not a straggler either if its
// extra time is next to nothing of the step: where all wait for the network or for
// servers anyway, nobody waits for that worker. Of the workers of one host, which
// may be short of CPUs, one is named only when its host was looked at meanwhile, and
// when more than the scheduler's choice explains it, or when it lasts. A slow link is found by what
// a message takes to the next rank and back (slow_links.h). cause.h says why a worker is slow.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/wire/agent_messages.h"
#include "core/wire/membership_messages.h"
#include "ctl/control/curve_book.h"
#include "ctl/monitor/batch_line.h"
#include "ctl/monitor/last_reports.h"
#include "ctl/monitor/looks.h"
#include "ctl/monitor/view.h"
#include "ctl/monitor/window.h"

namespace antdt::ctl {

struct MonitorConfig {
  Duration transient_window = std::chrono::seconds(10);
  Duration persistent_window = std::chrono::seconds(60);
  // Verdicts start at this ratio to the others' median and end at `release`.
  double straggler_ratio = 1.3;
  double release_ratio = 1.15;
  // Fewer batches than this say nothing.
  std::uint32_t min_batches = 4;
  // Where steps are long or noisy, the transient window is stretched until the
  // relative standard error of the speed is this, up to eight times; further only as min_batches
  // needs.
  double precision = 0.015;
  // Members share their steps, so a worker may compute more or less than its part of a step.
  bool share_steps = false;
};

// How often agents should report, so that the transient window is made of
// several reports: a quarter of it, between 100 ms and 1 s.
[[nodiscard]] Duration report_interval(const MonitorConfig& config);

// A worker's Metrics as they arrived. Batches the worker skipped (the first
// after a plan change) are not in the sums.
struct Observation {
  Member member;
  wire::Metrics metrics;
};

class Monitor {
 public:
  explicit Monitor(MonitorConfig config);

  // Who the members are. Those that stay (same attempt) keep what is known.
  struct MemberInfo {
    Member member;
    std::string host;
    Device device = {};
    std::optional<std::uint32_t> rank = {};  // in the ring; nothing: there is none
  };
  void set_members(const std::vector<MemberInfo>& members);

  // O(1) amortised. Observations of non-members and of other attempts are ignored.
  void step(const Observation& observation, MonoTime now);

  // The plan changed: transient figures come only from reports that began
  // after now.
  void plan_changed(MonoTime now, const wire::Plan& plan = {});

  // The workers as they stand, with verdicts; also remembers since when each
  // deviates, so call it regularly. O(n log n).
  [[nodiscard]] std::vector<WorkerView> view(MonoTime now);

  // Of the classes that the members belong to, by name.
  [[nodiscard]] std::vector<DeviceCurve> curves() const;

  [[nodiscard]] const MonitorConfig& config() const { return config_; }

 private:
  struct Worker {
    MemberInfo info;
    SlidingWindow recent;
    SlidingWindow lasting;
    LastReports last;  // for both, where steps are longer than they are for
    Scatter scatter{};
    BatchLine line{};
    CurveBook book{};
    Looks looks;
    std::uint32_t micro_batch = 0;  // of the plan in force
    std::uint32_t accumulation = 0;
    MonoTime cut{};                   // transient figures ignore reports that began before
    MonoTime changed{};               // its speed was last seen to have changed
    std::optional<MonoTime> first{};  // enough batches since
    MonoTime figures_from{};          // the transient ones are of reports since then
    std::optional<MonoTime> slow_since{};
    bool named = false;    // as a straggler, since slow_since
    bool kept_up = false;  // its figures once showed beyond their error that it is no straggler
    std::optional<MonoTime> fast_since{};
    std::optional<MonoTime> link_slow_since{};
    std::uint64_t samples_total = 0;
  };
  // What a worker is compared with.
  struct Peers {
    std::vector<double> speeds;  // of all measured workers, sorted
    double data_s = 0;           // median time for the data of a sample, seconds
    double compute_s = 0;
    double shared_wait_s = 0;  // of a step, whoever is slow
    HostSigns signs;           // what is usual
    // By class of device, where workers say theirs.
    std::map<std::string_view, std::vector<double>> by_class;
    std::map<std::string_view, std::vector<double>> by_host;
  };

  [[nodiscard]] std::uint64_t enough_batches(double scatter) const;
  [[nodiscard]] Worker fresh(const MemberInfo& info) const;
  void write_down(Worker& worker, const BatchSums& sums) const;
  void forget_before_change(Worker& worker, double scatter, MonoTime now) const;
  [[nodiscard]] bool changed_within(const Worker& worker, Duration newest, double scatter,
                                    MonoTime now) const;
  [[nodiscard]] SlidingWindow::Stretch newest_of(const Worker& worker, const SlidingWindow& window,
                                                 std::uint64_t batches, Duration length,
                                                 MonoTime now) const;
  [[nodiscard]] static Duration time_of(std::uint32_t batches, const WorkerView& out);
  // The windows, made longer where a worker's steps are long.
  [[nodiscard]] Duration transient_window(const WorkerView& out) const;
  [[nodiscard]] Duration persistent_window(const WorkerView& out) const;
  [[nodiscard]] WorkerView measure(Worker& worker, double scatter, MonoTime now) const;
  [[nodiscard]] double slowness(const WorkerView& out, double shared_wait_s) const;
  void judge(Worker& worker, WorkerView& out, const Peers& peers, MonoTime now) const;
  void say_since(const Worker& worker, MonoTime since, WorkerView& out, MonoTime now) const;
  void name_all(std::vector<WorkerView>& views, Peers& peers, MonoTime now);
  [[nodiscard]] Explained explain(const Worker& worker, const WorkerView& out, const Peers& peers,
                                  MonoTime now) const;
  [[nodiscard]] bool device_is_slower(const Worker& worker, const WorkerView& out,
                                      const Peers& peers) const;
  [[nodiscard]] bool may_be_chance(const Worker& worker, const WorkerView& out, const Peers& peers,
                                   MonoTime now) const;
  [[nodiscard]] HostSigns usual_of(MonoTime now) const;
  struct Judged {
    Worker* worker = nullptr;
    WorkerView* view = nullptr;
  };
  [[nodiscard]] std::vector<Judged> in_order(std::vector<WorkerView>& views);
  void judge_links(std::vector<WorkerView>& views, MonoTime now);
  [[nodiscard]] std::vector<double> scatters() const;  // by worker

  MonitorConfig config_;
  std::map<WorkerId, Worker> workers_;
};

}  // namespace antdt::ctl
