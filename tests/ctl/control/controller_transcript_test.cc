// Transcripts of the loop from measurements to actions.
//
//   job global=N solution=nd|dds|...|wishes [mode=observe|advise|act] [allow=KIND,...]
//       [per-hour=N] [window=TIME] [persistent=TIME] [multiple-of=N] [adjust=none|...]
//       `wishes`: a solution that wishes at each tick what `wish` said last
//   form [HOST:] MEMBER ...         a generation of these is about to settle
//   in-force N                      a member says that plan N is in force
//   train WORKER=SPEED ...          up to the time of this line the members make steps, whose own
//                                   work has these speeds in samples/s; a plan that is sent is in
//                                   force at the next report. Effects come with their times.
//   tick                            time has passed
//   room HOST=N ... remaining=N     from now on ticks say that hosts have room for so many, and
//                                   that so many samples are to be trained yet
//   wish ACTION | nothing           ACTION: batch WORKER=N ..., rate FACTOR, backups N,
//                                   kill-restart MEMBER, evict MEMBER, resize N
//   decided PLAN ACTION             the user's own program decided that, on a view with this plan
//   approve KIND TARGET             an operator wants done what was advised
//   view                            how each member stands
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "core/overloaded.h"
#include "ctl/control/controller.h"
#include "effects_of.h"
#include "tests/transcript/transcript.h"

namespace antdt::ctl {
namespace {

using transcript::Line;

class Wishes final : public Solution {
 public:
  explicit Wishes(const Decision& wish) : wish_(wish) {}
  [[nodiscard]] std::string_view name() const override { return "wishes"; }
  [[nodiscard]] Decision decide(const ClusterView&, MonoTime) override { return wish_; }

 private:
  const Decision& wish_;
};

class ControllerScript : public transcript::Machine {
 public:
  explicit ControllerScript(const Line& job) : controller_(config_of(job), solution_of(job)) {}

  std::vector<std::string> run(const Line& line, MonoTime now) override {
    shown_.clear();
    if (line.what() == "train") {
      train(line, now);
    } else if (line.what() == "view") {
      view(now);
    } else if (line.what() == "room") {
      say_room(line);
    } else if (line.what() == "wish") {
      wish_ = decision_of(line, 0);
    } else {
      take(effects_of(controller_, event_of(line), now), now, false);
    }
    now_ = now;
    return shown_;
  }

 private:
  static ControllerConfig config_of(const Line& job) {
    ControllerConfig config;
    config.mode = parse_mode(job.text("mode", "act")).value();
    config.allow = transcript::split(job.text("allow", ""), ',');
    config.max_actions_per_hour =
        static_cast<std::uint32_t>(job.number("per-hour", config.max_actions_per_hour));
    config.rules.global_batch = static_cast<std::uint32_t>(job.number("global", 100));
    config.rules.multiple_of = static_cast<std::uint32_t>(job.number("multiple-of", 1));
    config.rules.adjust = parse_adjust(job.text("adjust", "both")).value();
    config.monitor.transient_window = job.duration("window", std::chrono::seconds(10));
    config.monitor.persistent_window = job.duration("persistent", std::chrono::seconds(60));
    return config;
  }
  std::unique_ptr<Solution> solution_of(const Line& job) {
    const std::string name = job.text("solution", "wishes");
    if (name == "wishes") return std::make_unique<Wishes>(wish_);
    return make_solution(name).value();
  }

  // ------------------------------------------------------------- what happens

  control::Input event_of(const Line& line) {
    const std::string& what = line.what();
    if (what == "form") return form(line);
    if (what == "in-force") return control::PlanTookEffect{PlanVersion{std::stoull(line.word(0))}};
    if (what == "tick") return tick_;
    if (what == "decided") {
      return control::ProgramDecided{decision_of(line, 1), PlanVersion{std::stoull(line.word(0))}};
    }
    if (what != "approve") throw std::runtime_error("no event: " + what);
    const Status status = controller_.check_approved(line.word(0), line.word(1));
    if (!status) shown_.push_back("refused: " + status.error().message);
    return control::ActionApproved{line.word(0), line.word(1), "ann"};
  }
  control::GroupFormed form(const Line& line) {
    control::GroupFormed formed;
    std::string host = "a";
    members_.clear();
    for (std::size_t i = 0; i < line.words(); ++i) {
      if (line.word(i).ends_with(':')) {
        host = line.word(i).substr(0, line.word(i).size() - 1);
        continue;
      }
      const Member member = transcript::member_of(line.word(i));
      members_.push_back(member);
      formed.members.push_back({member, host});
    }
    return formed;
  }
  void say_room(const Line& line) {
    tick_.remaining = line.number("remaining", 0);
    tick_.pending_time = Duration::zero();
    tick_.places.clear();
    for (const Line::Pair& pair : line.pairs()) {
      tick_.places.push_back({pair.name, static_cast<std::uint32_t>(std::stoul(pair.value))});
    }
  }
  static Decision decision_of(const Line& line, std::size_t from) {
    const std::string& kind = line.word(from);
    if (kind == "nothing") return {};
    const auto decided = [](Action action) {
      return Decision{{std::move(action)}, "it is wished"};
    };
    if (kind == "batch") {
      AdjustBatch batch;
      for (const Line::Pair& pair : line.pairs()) {
        batch.shares.push_back({parse_worker_id(pair.name).value(),
                                static_cast<std::uint32_t>(std::stoul(pair.value))});
      }
      batch.because_of = batch.shares.at(0).worker;
      return decided(batch);
    }
    const std::string& value = line.word(from + 1);
    if (kind == "rate") return decided(AdjustLearningRate{std::stod(value)});
    if (kind == "kill-restart") return decided(KillRestart{transcript::member_of(value)});
    if (kind == "evict") return decided(Evict{transcript::member_of(value)});
    const auto count = [&] { return static_cast<std::uint32_t>(std::stoul(value)); };
    if (kind == "backups") return decided(BackupWorkers{count()});
    if (kind == "resize") return decided(Resize{count()});
    throw std::runtime_error("no action: " + kind);
  }

  // Steps of the whole group, each as long as its slowest member needs.
  void train(const Line& line, MonoTime until) {
    std::map<WorkerId, double> speeds;
    for (const Line::Pair& pair : line.pairs()) {
      speeds[parse_worker_id(pair.name).value()] = std::stod(pair.value);
    }
    adopt(now_);
    next_report_ = now_ + report_every();
    next_tick_ = now_ + controller_.tick_interval();
    for (MonoTime at = now_; at < until;) {
      std::map<WorkerId, double> own;
      double longest = 0;
      for (const wire::PlanEntry& entry : in_force_.entries) {
        own[entry.worker] = share_of(entry) / speeds.at(entry.worker);
        longest = std::max(longest, own[entry.worker]);
      }
      at += from_seconds(longest);
      report_and_tick(std::min(at, until));
      for (const wire::PlanEntry& entry : in_force_.entries) {
        wire::Report& sum = sums_[entry.worker];
        ++sum.batches;
        sum.samples += share_of(entry);
        sum.compute_us += static_cast<std::uint64_t>(1e6 * own[entry.worker]);
        sum.wait_us += static_cast<std::uint64_t>(1e6 * (longest - own[entry.worker]));
      }
    }
  }
  void report_and_tick(MonoTime until) {
    while (std::min(next_report_, next_tick_) <= until) {
      const MonoTime at = std::min(next_report_, next_tick_);
      if (at == next_report_) {
        next_report_ += report_every();
        const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(report_every());
        for (const Member member : members_) {
          const wire::Metrics metrics{sums_[member.worker], static_cast<std::uint32_t>(ms.count())};
          take(effects_of(controller_, control::MetricsReported{{member, metrics}}, at), at, true);
        }
        sums_.clear();
        adopt(at);
      }
      if (at == next_tick_) {
        next_tick_ += controller_.tick_interval();
        take(effects_of(controller_, tick_, at), at, true);
      }
    }
  }
  Duration report_every() const {
    MonitorConfig config;
    config.transient_window = controller_.tick_interval() * 5;
    return report_interval(config);
  }
  void adopt(MonoTime at) {
    if (in_force_.version == controller_.plan().version) return;
    in_force_ = controller_.plan();
    take(effects_of(controller_, control::PlanTookEffect{in_force_.version}, at), at, true);
  }

  // ---------------------------------------------------------- what is to be done

  static std::string show_plan(const wire::Plan& plan) {
    std::string shown = fmt::format("plan {}:", plan.version);
    for (const wire::PlanEntry& entry : plan.entries) {
      shown += fmt::format(" {}={}", entry.worker, entry.micro_batch);
      if (entry.accumulation != 1) shown += fmt::format("x{}", entry.accumulation);
    }
    return plan.rate == 1 ? shown : shown + fmt::format(", rate {}", plan.rate);
  }
  static std::string show_action(const control::PerformAction& e) {
    return fmt::format("perform {} {}: {}", kind_of(e.action), target_of(e.action), e.reason);
  }
  void take(const control::Effects& effects, MonoTime at, bool with_time) {
    const double seconds = to_seconds(at - MonoTime{std::chrono::hours(1)});
    for (const control::Effect& effect : effects) {
      const std::string what = std::visit(
          Overloaded{
              [](const control::SendPlan& e) { return show_plan(e.plan); },
              [](const control::RecordAction& e) {
                return fmt::format("{} {} {}: {}", e.outcome, e.kind, e.target, e.reason);
              },
              [](const control::PerformAction& e) { return show_action(e); },
              [](const control::RefuseGroup& e) { return "impossible: " + e.error.message; },
          },
          effect);
      shown_.push_back(with_time ? fmt::format("[{:g} s] {}", seconds, what) : what);
    }
  }
  void view(MonoTime now) {
    shown_.push_back(fmt::format("plan {}, {}", controller_.plan().version,
                                 controller_.settled(now) ? "settled" : "not settled yet"));
    for (const WorkerView& w : controller_.view().workers) {
      shown_.push_back(
          fmt::format("{} on {}: part {}", transcript::show(w.member), w.host, w.share));
      if (!w.measured) continue;
      shown_.back() += fmt::format(", {:.0f} samples/s", w.speed_transient);
      if (w.verdict.kind == VerdictKind::kNone) continue;
      const double since = to_seconds(w.verdict.since - MonoTime{std::chrono::hours(1)});
      shown_.back() += fmt::format(", {} since {:g} s, {:.1f}x, {}", to_string(w.verdict.kind),
                                   since, w.verdict.severity, to_string(w.verdict.cause));
    }
  }

  Decision wish_;
  Controller controller_;
  control::TimePassed tick_;
  std::vector<Member> members_;
  std::map<WorkerId, wire::Report> sums_;  // since the last report
  wire::Plan in_force_;
  MonoTime now_{std::chrono::hours(1)};
  MonoTime next_report_{}, next_tick_{};
  std::vector<std::string> shown_;
};

class ControllerTranscript : public testing::TestWithParam<std::string> {};

TEST_P(ControllerTranscript, IsWhatTheMachineDoes) {
  transcript::expect_as_written(ANTDT_TRANSCRIPTS "/controller", GetParam(), [](const Line& job) {
    return std::make_unique<ControllerScript>(job);
  });
}

INSTANTIATE_TEST_SUITE_P(, ControllerTranscript,
                         testing::ValuesIn(transcript::scripts_in(ANTDT_TRANSCRIPTS "/controller")),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace antdt::ctl
