// Transcripts of the life of a job. That the image is to be saved is not shown.
//
//   job [epochs=N] [train=N] [eval=N] [checkpoint=TIME] [grace=TIME] [budget=CLASS:N,...]
//       [refill=TIME] [restart=never|member|gang] [protocol=antdt|torchrun|exec] [servers=N]
//       [replicas=N]
//   host NAME [room=N]              is up; hosts come in the order of their names
//   host-lost NAME REASON
//   place WORKER=HOST ...           the first placement
//   started|joined|vanished MEMBER ...
//   exited MEMBER code=N|signal=N [oom=EVIDENCE]
//   refused MEMBER REASON           its host could not start it
//   hung MEMBER REASON
//   settled MEMBER ...              a generation of these; `over`: they are to join again
//   step N
//   done MEMBER ... phase=N         it has nothing left to do in that phase
//   drained phase=N [trained=N]     every record of it is committed or skipped
//   ended REASON                    the program ends the training
//   stored N [ERROR]                checkpoint N, or why there is none
//   restored phase=N                training goes on from a checkpoint of that phase
//   stop [grace=TIME] REASON
//   evict TARGET [grace=TIME] REASON
//   restart-worker MEMBER [grace=TIME] REASON
//   resize N REASON                 and resize-servers; what cannot be done is refused
//   taken-over MEMBER
//   failed CLASS [within=TIME] REASON    within: those who train write a checkpoint first
//   gang-ready | resumed | tick
//   restart                         a new job daemon, with the image that was saved last
//   state                           shows the job and its processes
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "core/overloaded.h"
#include "ctl/lifecycle/lifecycle.h"
#include "tests/transcript/transcript.h"

namespace antdt::ctl {
namespace {

using transcript::Line;

JobSpec spec_of(const Line& line) {
  JobSpec spec;
  spec.epochs = static_cast<std::uint32_t>(line.number("epochs", 1));
  spec.train_records = line.number("train", 800);
  spec.eval_records = line.number("eval", 0);
  spec.checkpoint_every = line.duration("checkpoint", Duration::zero());
  spec.stop_grace = line.duration("grace", spec.stop_grace);
  spec.budget_refill = line.duration("refill", spec.budget_refill);
  for (const std::string& budget : transcript::split(line.text("budget", ""), ',')) {
    const auto parts = transcript::split(budget, ':');
    spec.budgets[parts.at(0)] = static_cast<std::uint32_t>(std::stoul(parts.at(1)));
  }
  spec.restart = by_name<Restart>(line.text("restart", "member")).value();
  spec.protocol = by_name<Protocol>(line.text("protocol", "antdt")).value();
  spec.servers = static_cast<std::uint32_t>(line.number("servers", 0));
  spec.server_replicas = static_cast<std::uint32_t>(line.number("replicas", 1));
  if (spec.servers > 0) spec.sync = SyncStrategy::kPsBsp;
  return spec;
}

class LifecycleScript : public transcript::Machine {
 public:
  explicit LifecycleScript(const Line& job) : spec_(spec_of(job)), life_(spec_) {}

  std::vector<std::string> run(const Line& line, MonoTime now) override {
    if (line.what() == "state") return state();
    if (line.what() == "restart") {
      life_ = Lifecycle(spec_);
      life_.restore(saved_, group_);
      return {};
    }
    std::vector<std::string> shown;
    for (const lifecycle::Input& event : events_of(line)) {
      if (const auto reason = refused(event)) shown.push_back("refused: " + *reason);
      lifecycle::Effects effects;
      life_.step(event, now, effects);
      for (const lifecycle::Effect& effect : effects) {
        if (std::holds_alternative<lifecycle::PersistImage>(effect)) {
          saved_ = life_.image();  // as it is behind the step
        } else {
          shown.push_back(show_effect(effect));
        }
      }
    }
    if (line.what() == "settled") group_ = line.members();
    return shown;
  }

 private:
  // ------------------------------------------------------------- what happens

  std::vector<lifecycle::Input> events_of(const Line& line) {
    const std::string& what = line.what();
    if (what == "host") return {lifecycle::HostCameUp{host(line)}};
    if (what == "host-lost") return {lifecycle::HostLost{line.word(0), line.rest(1)}};
    if (what == "place") return {place(line)};
    if (what == "settled") {
      generation_ = generation_.next();
      return {lifecycle::GenerationSettled{generation_, line.members()}};
    }
    if (what == "over") return {lifecycle::GenerationEnded{}};
    if (what == "step") return {lifecycle::StepCompleted{Step{std::stoull(line.word(0))}}};
    if (what == "drained") {
      return {lifecycle::PhaseDrained{line.number("phase", 0), line.number("trained", 0)}};
    }
    if (what == "ended") return {lifecycle::TrainingEnded{line.rest(0)}};
    if (what == "stored")
      return {lifecycle::CheckpointConcluded{std::stoull(line.word(0)), line.rest(1)}};
    if (what == "restored") return {lifecycle::CheckpointRestored{line.number("phase", 0)}};
    if (what == "gang-ready") return {lifecycle::GangPrepared{}};
    if (what == "resumed") return {lifecycle::RunResumed{}};
    if (what == "tick") return {lifecycle::TimePassed{}};
    if (what == "failed") {
      const Duration within = line.duration("within", Duration::zero());
      return {
          lifecycle::JobFailed{by_name<ExitClass>(line.word(0)).value(), 1, line.rest(1), within}};
    }
    if (const auto asked = asked_of(line)) return {*asked};
    if (const auto one = event_of_one(line)) return {*one};
    return events_of_each(line);
  }

  static std::optional<lifecycle::Input> asked_of(const Line& line) {
    const std::string& what = line.what();
    const Duration grace = line.duration("grace", std::chrono::seconds(10));
    if (what == "stop") return lifecycle::StopRequested{line.rest(0), grace};
    if (what == "evict") return lifecycle::EvictionRequested{line.word(0), line.rest(1), grace};
    if (what == "restart-worker") {
      return lifecycle::RestartRequested{transcript::member_of(line.word(0)), line.rest(1), grace};
    }
    if (what != "resize" && what != "resize-servers") return {};
    const auto count = static_cast<std::uint32_t>(std::stoul(line.word(0)));
    if (what == "resize") return lifecycle::WorkerCountRequested{count, line.rest(1)};
    return lifecycle::ServerCountRequested{count, line.rest(1)};
  }
  static std::optional<lifecycle::Input> event_of_one(const Line& line) {
    const std::string& what = line.what();
    if (what == "exited") {
      wire::ProcessExited exit;
      exit.code = static_cast<std::int32_t>(line.real("code", -1));
      exit.signal = static_cast<std::int32_t>(line.number("signal", 0));
      exit.oom = line.text("oom", "");
      return lifecycle::WorkerExited{transcript::member_of(line.word(0)), exit};
    }
    if (what == "refused") {
      return lifecycle::WorkerStartRefused{transcript::member_of(line.word(0)), line.rest(1)};
    }
    if (what == "hung")
      return lifecycle::WorkerHung{transcript::member_of(line.word(0)), line.rest(1)};
    if (what == "taken-over")
      return lifecycle::ServerTakenOver{transcript::member_of(line.word(0))};
    return {};
  }
  static std::vector<lifecycle::Input> events_of_each(const Line& line) {
    const std::string& what = line.what();
    std::vector<lifecycle::Input> events;
    for (const Member member : line.members()) {
      if (what == "started") {
        events.emplace_back(lifecycle::WorkerStarted{member, 100 + member.worker.index});
      } else if (what == "joined") {
        events.emplace_back(lifecycle::WorkerJoined{member, true});
      } else if (what == "vanished") {
        events.emplace_back(lifecycle::WorkerVanished{member});
      } else if (what == "done") {
        events.emplace_back(lifecycle::WorkerDone{member, line.number("phase", 0)});
      }
    }
    if (events.empty()) throw std::runtime_error("no event: " + what);
    return events;
  }

  // The answer to an operator's impossible request.
  std::optional<std::string> refused(const lifecycle::Input& event) const {
    const Status status =
        std::visit(Overloaded{
                       [&](const lifecycle::EvictionRequested& e) { return life_.check(e); },
                       [&](const lifecycle::RestartRequested& e) { return life_.check(e); },
                       [&](const lifecycle::WorkerCountRequested& e) { return life_.check(e); },
                       [&](const lifecycle::ServerCountRequested& e) { return life_.check(e); },
                       [](const auto&) { return Status(); },
                   },
                   event);
    if (status) return {};
    return status.error().message;
  }

  static HostState host(const Line& line) {
    HostState host;
    host.host = host.name = line.word(0);
    host.order = static_cast<std::uint32_t>(host.name.front() - 'a');
    host.room = static_cast<std::uint32_t>(line.number("room", 2));
    return host;
  }
  static lifecycle::WorkersPlaced place(const Line& line) {
    lifecycle::WorkersPlaced placed;
    for (const Line::Pair& pair : line.pairs()) {
      placed.workers.push_back({parse_worker_id(pair.name).value(), pair.value,
                                static_cast<std::uint32_t>(pair.value.front() - 'a')});
    }
    return placed;
  }

  // ---------------------------------------------------------- what is to be done

  static std::string seconds(Duration d) { return fmt::format("{:g} s", to_seconds(d)); }
  static std::string show_phase(const wire::PhaseStart& start) {
    return fmt::format("phase {}: {} epoch {}, {} records", start.phase, start.what, start.epoch,
                       start.records);
  }
  static std::string show_gone(const lifecycle::ReleaseWorker& e) {
    return fmt::format("gone {}{}{}: {}", transcript::show(e.member), e.in_order ? " in order" : "",
                       e.suspect ? " suspect" : "", e.reason);
  }
  // Who runs after the step.
  [[nodiscard]] std::string show_expected() const {
    std::vector<Member> members;
    for (const WorkerProcess& w : life_.workers()) {
      if (w.running()) members.push_back(w.member());
    }
    return "expect " + transcript::show(members);
  }
  static std::string show_gang(const lifecycle::PrepareGang& e) {
    std::string shown = "prepare gang";
    for (const PlacedWorker& w : e.workers) shown += fmt::format(" {} on {}", w.worker, w.host);
    return shown;
  }
  static std::string show_outcome(const Outcome& o) {
    return fmt::format("end {} (code {}, {}{}){}{}", o.state, o.code, o.exit_class,
                       o.resumable ? ", resumable" : "", o.first_cause.empty() ? "" : ": ",
                       in_one_line(o.first_cause));
  }
  static std::string in_one_line(std::string text) {
    std::ranges::replace(text, '\n', ' ');
    return text;
  }
  [[nodiscard]] std::string show_effect(const lifecycle::Effect& effect) {
    return std::visit(
        Overloaded{
            [](const lifecycle::PersistImage&) { return std::string(); },
            [](const lifecycle::StartWorker& e) {
              return fmt::format("start {} on {}", transcript::show(e.member), e.host);
            },
            [](const lifecycle::StopWorker& e) {
              return fmt::format("stop {} on {}, grace {}", transcript::show(e.member), e.host,
                                 seconds(e.grace));
            },
            [](const lifecycle::PrepareGang& e) { return show_gang(e); },
            [this](const lifecycle::ExpectMembers&) { return show_expected(); },
            [](const lifecycle::ReleaseWorker& e) { return show_gone(e); },
            [](const lifecycle::OpenPhase& e) { return "open " + show_phase(e.start); },
            [](const lifecycle::AnnouncePhase& e) { return "announce " + show_phase(e.start); },
            [](const lifecycle::CutPhase& e) {
              return fmt::format("cut phase {}: {}", e.phase, e.reason);
            },
            [](const lifecycle::OrderCheckpoint& e) {
              return fmt::format("checkpoint {}{}", e.number, e.last ? ", the last" : "");
            },
            [](const lifecycle::ChangeServers& e) {
              return fmt::format("servers become {}", e.count);
            },
            [](const lifecycle::KeepServers&) { return std::string("servers go on"); },
            [](const lifecycle::AskToLeave& e) {
              return fmt::format("leave {} with {}: {}", transcript::show(e.member), e.leave.code,
                                 e.leave.reason);
            },
            [](const lifecycle::AskAllToLeave& e) {
              return fmt::format("leave all with {}: {}", e.leave.code, e.leave.reason);
            },
            [](const lifecycle::WriteNote& e) {
              return fmt::format("note {}: {}", e.kind, in_one_line(e.text));
            },
            [](const lifecycle::EndJob& e) { return show_outcome(e.outcome); },
        },
        effect);
  }

  std::vector<std::string> state() const {
    std::vector<std::string> shown{fmt::format("{}, phase {}", life_.state(), life_.phase().phase)};
    for (const WorkerProcess& w : life_.workers()) {
      const bool placed = w.running();
      shown.push_back(fmt::format("{} {}{}{}{}", transcript::show(w.member()),
                                  process_state(w.state), placed ? " on " + w.place.host : "",
                                  w.leaving() && placed ? ", leaving" : "",
                                  w.apart() ? ", beside the group" : ""));
    }
    return shown;
  }

  JobSpec spec_;
  Lifecycle life_;
  LifecycleImage saved_;
  std::optional<std::vector<Member>> group_;  // settled
  Generation generation_;
};

class LifecycleTranscript : public testing::TestWithParam<std::string> {};

TEST_P(LifecycleTranscript, IsWhatTheMachineDoes) {
  transcript::expect_as_written(ANTDT_TRANSCRIPTS "/lifecycle", GetParam(), [](const Line& job) {
    return std::make_unique<LifecycleScript>(job);
  });
}

INSTANTIATE_TEST_SUITE_P(, LifecycleTranscript,
                         testing::ValuesIn(transcript::scripts_in(ANTDT_TRANSCRIPTS "/lifecycle")),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace antdt::ctl
