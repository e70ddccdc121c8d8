// The loop from measurements to actions. It owns the monitor and the solution. docs/machines.md
// describes the shape of a machine.
//
//   settled ──TimePassed, the solution decides──> awaiting the plan  (SendPlan, RecordAction, …)
//   awaiting the plan ──PlanTookEffect──> settling, on fresh reports only
//   settling ──half a window passes; a whole one in a new group──> settled
//   any ──GroupFormed──> awaiting the plan of the new group  (SendPlan, or RefuseGroup)
//   any ──GroupObserved──> awaiting a plan that never comes
//
// The controller asks the solution only in `settled`; one that looks at visits instead of speeds,
// at each new visit in `settling` and `settled`.
//
// Nothing is durable here: the job journals the versions, the learning rate and the threshold of
// plans, and a restarted job daemon passes them in ControllerConfig.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/action_outcome.h"
#include "core/clock.h"
#include "core/ids.h"
#include "core/names.h"
#include "core/result.h"
#include "core/wire/membership_messages.h"
#include "ctl/control/bounded_plan.h"
#include "ctl/control/plan.h"
#include "ctl/control/solution.h"
#include "ctl/monitor/monitor.h"
#include "ctl/monitor/server_watch.h"

namespace antdt::ctl {

enum class Mode : std::uint8_t {
  kObserve,  // only record what was seen
  kAdvise,   // only record what would be done
  kAct,      // do what is reversible and what `allow` names, advise the rest
};
constexpr auto names_of(Mode) { return names("observe", "advise", "act"); }
[[nodiscard]] Result<Mode> parse_mode(std::string_view text);

struct ControllerConfig {
  Mode mode = Mode::kAct;
  std::vector<std::string> allow;           // kinds of drastic actions that may be applied
  std::uint32_t max_actions_per_hour = 10;  // most drastic actions that are applied
  BatchRules rules;
  MonitorConfig monitor;
  // The versions of this controller's plans are above this one, which is the highest that a
  // previous incarnation of the job daemon journaled.
  PlanVersion last_version;
  double rate = 1;        // factor of the job's learning rate, as journaled with that plan
  std::string optimizer;  // [trainer] optimizer
  // Under Gaia: the threshold of the job's file; and the one in force, as journaled with that plan,
  // if a solution has set one.
  std::optional<double> threshold = {};
  std::optional<double> planned_threshold = {};
};

namespace control {

// ----------------------------------------------------------------- events

// A new generation is about to settle with these members. The answer is one SendPlan, whose plan
// goes into Settle, or RefuseGroup.
struct GroupFormed {
  std::vector<Monitor::MemberInfo> members;
  DomainRests rests{};
};
// Programs that divide their data themselves are to be compared: there is no plan for them, and the
// solution is not asked.
struct GroupObserved {
  std::vector<Monitor::MemberInfo> members;
};
// A member reports that this plan is in force (Progress.plan), or a restarted job daemon has it
// from its journal.
struct PlanTookEffect {
  PlanVersion version;
};
struct MetricsReported {
  Observation observation;
};
// Time has passed. Send one every tick_interval().
struct TimePassed {
  std::optional<std::uint64_t> remaining{};  // samples left to train until the job's end
  // Hosts to which a worker could go, as in ClusterView.
  std::vector<PlaceView> places{};
  std::optional<Duration> pending_time{};
  std::optional<std::uint32_t> backups{};  // as in ClusterView
  std::uint32_t least_backups = 0;
  // time that the first workers took from their start until they formed the group
  std::optional<Duration> startup{};
  std::vector<ServerWatch::ServerInfo> servers{};  // the servers that serve
  DomainRests rests{};                             // of the present group
};
// The workers' newest attempts: that which runs or, of a process that leaves to be started again,
// the next one. Who waits for room, or is gone, has none. Send it with every tick, and also while
// nobody trains.
struct AttemptsSeen {
  std::vector<Member> attempts;
};
// A parameter server reports totals since it began.
struct ServerMetricsReported {
  Member server;
  std::uint64_t requests = 0;
  std::uint64_t busy_us = 0;
};
// The member of rank 0 reports this visit, perhaps again.
struct VisitTold {
  wire::Visit visit;
};
// An operator approves an action that was advised.
struct ActionApproved {
  std::string kind, target;
  std::string who;
};
// A user's program decided this on a view with this plan (solutions/own.h).
struct ProgramDecided {
  Decision decision;
  PlanVersion plan;
};
// What was to be performed cannot be done, so it does not count among the actions of this hour.
struct ActionRefused {
  Action action;
};
using Input = std::variant<GroupFormed, GroupObserved, PlanTookEffect, MetricsReported,
                           ServerMetricsReported, AttemptsSeen, TimePassed, VisitTold,
                           ActionApproved, ProgramDecided, ActionRefused>;

// ---------------------------------------------------------------- effects

// Journal the version, then give the plan to every member.
struct SendPlan {
  wire::Plan plan;
};
// For the journal, summary.actions and the live view.
struct RecordAction {
  MonoTime when{};
  std::string kind;    // "adjust-batch", ...
  std::string target;  // "w3"
  std::string reason;  // a sentence
  ActionOutcome outcome{};
};
// Do this to the group, and record it as applied; or, if it cannot be done now, as refused, and
// answer with ActionRefused. It is any action but AdjustBatch, AdjustLearningRate and SetSync,
// which become a SendPlan.
struct PerformAction {
  Action action;
  std::string reason{};
};
// The global batch cannot be divided among this group. The reason says which rule forbids it and
// how to mend that.
struct RefuseGroup {
  Error error;
};
using Effect = std::variant<SendPlan, RecordAction, PerformAction, RefuseGroup>;
using Effects = std::vector<Effect>;

class Controller {
 public:
  // Bounds of the factor that a solution may apply to the learning rate.
  static constexpr double kLeastRate = 0.001;
  static constexpr double kMostRate = 1000;
  // The largest threshold that a solution may set, as in the job's file.
  static constexpr double kMostThreshold = 1e6;

  Controller(ControllerConfig config, std::unique_ptr<Solution> solution);

  void step(const Input& input, MonoTime now, Effects& out);

  // How often to say TimePassed: a fifth of the transient window, between 50 ms and 1 s.
  [[nodiscard]] Duration tick_interval() const;

  // Checks whether the newest advice of this kind for this target can still be followed. The error
  // says why it cannot.
  [[nodiscard]] Status check_approved(const std::string& kind, const std::string& target) const;

  // What the last TimePassed saw, for the status and the live view.
  [[nodiscard]] const ClusterView& view() const { return view_; }
  // The newest plan, in force or on its way. It has no entries before the first group.
  [[nodiscard]] const wire::Plan& plan() const { return plan_; }
  [[nodiscard]] bool settled(MonoTime now) const;
  // Of Gaia, in force or on its way; the job file's; nothing under any other sync.
  [[nodiscard]] std::optional<double> threshold() const;
  [[nodiscard]] std::optional<double> job_threshold() const { return config_.threshold; }

 private:
  void on(const GroupFormed& input, MonoTime now, Effects& out);
  void on(const GroupObserved& input, MonoTime now, Effects& out);
  void on(const PlanTookEffect& input, MonoTime now, Effects& out);
  void on(const MetricsReported& input, MonoTime now, Effects& out);
  void on(const ServerMetricsReported& input, MonoTime now, Effects& out);
  void on(const AttemptsSeen& input, MonoTime now, Effects& out);
  void on(const TimePassed& input, MonoTime now, Effects& out);
  void on(const VisitTold& input, MonoTime now, Effects& out);
  void on(const ActionApproved& input, MonoTime now, Effects& out);
  void on(const ProgramDecided& input, MonoTime now, Effects& out);
  void on(const ActionRefused& input, MonoTime now, Effects& out);

  void consider(const Action& action, const std::string& reason, MonoTime now, Effects& out);
  void apply(const Action& action, const std::string& reason, MonoTime now, Effects& out);
  void record(const Action& action, const std::string& reason, ActionOutcome outcome, MonoTime now,
              Effects& out) const;
  [[nodiscard]] bool is_trained_by(Member member) const;  // it is a worker of the group
  [[nodiscard]] bool is_present(Member member) const;     // ... or a server
  [[nodiscard]] ActionOutcome outcome_for(const Action& action, MonoTime now);
  [[nodiscard]] bool said_lately(const Action& action, MonoTime now);
  void ask(MonoTime now, Effects& out);
  void apply_threshold(double threshold, const std::string& reason, MonoTime now, Effects& out);
  void apply_rate(double factor, const std::string& reason, MonoTime now, Effects& out);
  void refuse(const Action& action, const std::string& reason, const std::string& why, MonoTime now,
              Effects& out);
  void plan_anew(Effects& out);
  void take(const wire::Plan& plan, Effects& out);
  void put_in_force();
  [[nodiscard]] bool keep_domains_together(MonoTime now, Effects& out);
  [[nodiscard]] Result<wire::Plan> plan_from(const AdjustBatch& action) const;
  [[nodiscard]] wire::Plan plan_of_nobody() const;
  void watch_restarts(const std::vector<Monitor::MemberInfo>& members, MonoTime now);
  void count_restarts(MonoTime now);
  void expect_restart(Member member, MonoTime now);
  void check_invariants() const;
  [[nodiscard]] Result<wire::Plan> plan_for(const std::vector<Monitor::MemberInfo>& members);

  ControllerConfig config_;
  std::unique_ptr<Solution> solution_;
  Monitor monitor_;
  ServerWatch server_watch_;
  ClusterView view_;
  wire::Plan plan_;
  PlanVersion last_version_;
  std::map<WorkerId, Attempt> members_;
  std::map<WorkerId, wire::PlanEntry> in_force_;
  PlanBounds bounds_;
  // The states of the diagram. Settling becomes settled at `until`.
  struct AwaitingPlan {
    bool of_new_group;
  };
  struct Settling {
    MonoTime until{};
  };
  std::variant<AwaitingPlan, Settling> state_ = AwaitingPlan{false};
  // A member that is being started again: since when, and the attempt that ends. Forgotten if the
  // restart does not happen, or has to wait.
  struct Away {
    Attempt attempt;
    MonoTime since{};
  };
  std::map<WorkerId, Away> away_;
  std::optional<Duration> restart_time_;             // a mean in which later restarts count more
  std::deque<MonoTime> drastic_;                     // times of those applied in the last hour
  using Name = std::pair<std::string, std::string>;  // kind and target of an action
  std::map<Name, MonoTime> said_;
  struct Advice {
    Action action;
    std::string reason;
  };
  std::map<Name, Advice> advised_;  // the newest advice
};

}  // namespace control

using control::Controller;

}  // namespace antdt::ctl
