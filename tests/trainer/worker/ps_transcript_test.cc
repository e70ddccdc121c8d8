// Transcripts of a worker of parameter servers.
//
//   worker WORKER [no-eval] [shadow=K]   what it is, and in how many steps an exchange is due (0:
//   in
//                                        the background); it has said its first join
//   servers gN SYNC [staleness=N]
//   phase gN number=N train|eval|finish
//   abort gN REASON / regroup gN REASON / leave code=N
//   heard [leave=CODE] [regroup] [stop] [over]       what it knows by now
//   plan N share=MICRO_BATCHxTIMES                   the newest that the client holds
//   commit-said phase=N place=N
//   centre                       the rows of the centre are here
//   decided N applied|late version=N                 push N
//   tick
//   opened version=N, pushed, answered, awaited
//   taken records=N | end | wait
//   pulled OLDEST NEWEST [clock=N]
//   computed weight=N
//   given-back / not-given-back
//   idle decided=N / settled decided=N
//   evaluated records=N | end | wait
//   lost REASON / failed REASON / unfit REASON / damaged REASON
//   state                        shows where the machine is
#include <gtest/gtest.h>

#include "tests/trainer/worker/shown.h"
#include "trainer/worker/servers/ps_machine.h"

namespace antdt::worker::ps_worker {
namespace {

class PsScript : public transcript::Machine {
 public:
  explicit PsScript(const Line& first)
      : self_(worker_of(first.word(0))), machine_(config_of(first)) {
    Effects out;
    machine_.step(Started{}, MonoTime{}, out);
  }

  std::vector<std::string> run(const Line& line, MonoTime now) override {
    if (line.what() == "state") return state();
    Effects out;
    machine_.step(input_of_line(line), now, out);
    std::vector<std::string> shown;
    for (const Effect& effect : out) shown.push_back(std::visit(*this, effect));
    return shown;
  }

 private:
  static WorkerConfig config_of(const Line& line) {
    WorkerConfig config;
    config.self = worker_of(line.word(0));
    config.has_eval_data = !line.has("no-eval");
    config.eval_batch = 8;
    if (const auto every = line.text("shadow")) config.shadow = ShadowRules{std::stoull(*every)};
    return config;
  }

  // ------------------------------------------------------------- what happens

  Input input_of_line(const Line& line) {
    const std::string& what = line.what();
    if (what == "servers") {
      ServersNamed named{generation_of(line), {}};
      named.roster.servers = {"s0", "s1"};
      named.roster.sync = by_name<SyncStrategy>(line.word(1)).value();
      named.roster.staleness = line.number("staleness", 0);
      return named;
    }
    if (what == "phase") {
      PhaseStarted started{generation_of(line), {}};
      started.start.phase = line.number("number", 1);
      started.start.what = by_name<wire::PhaseKind>(line.word(1)).value();
      return started;
    }
    if (what == "abort") return GenerationAborted{generation_of(line), line.rest(1)};
    if (what == "regroup") return RegroupOrdered{generation_of(line), line.rest(1)};
    if (what == "leave") return LeaveOrdered{static_cast<std::uint32_t>(line.number("code", 75))};
    if (what == "heard") return heard_of(line);
    if (what == "plan") {
      return PlanHeld{plan_of(line, PlanVersion{std::stoull(line.word(0))}, self_)};
    }
    if (what == "commit-said") return CommitSaid{line.number("phase", 1), line.number("place", 0)};
    if (what == "decided") {
      return PushDecided{{std::stoull(line.word(0)), by_name<wire::PsFate>(line.word(1)).value(),
                          line.number("version", 0)},
                         {}};
    }
    if (what == "centre") return CentreHere{};
    if (what == "tick") return TimePassed{};
    return answer(line);
  }
  static Input answer(const Line& line) {
    const std::string& what = line.what();
    if (what == "opened") return ServersOpened{line.number("version", 0)};
    if (what == "pushed") return PushSaid{};
    if (what == "answered") return ServersAnswered{};
    if (what == "awaited") return RecordsAwaited{};
    if (what == "taken") {
      const BatchEvaluated as = evaluated_of(line);
      return BatchTaken{as.status, as.records, {}};
    }
    if (what == "pulled") {
      return RowsPulled{std::stoull(line.word(0)), std::stoull(line.word(1)),
                        line.number("clock", 0)};
    }
    if (what == "computed") return BatchComputed{line.real("weight", 10), 5, {}};
    if (what == "given-back") return GivenBack{true};
    if (what == "not-given-back") return GivenBack{false};
    if (what == "idle") return SaidIdle{line.number("decided", 0)};
    if (what == "settled") return ServersSettled{line.number("decided", 0)};
    if (what == "evaluated") return evaluated_of(line);
    if (what == "lost") return ServersLost{line.rest(0)};
    if (what == "failed") return WorkFailed{{ErrorKind::kIo, line.rest(0)}};
    if (what == "unfit") return WorkFailed{{ErrorKind::kTooLarge, line.rest(0)}};
    if (what == "damaged") return WorkFailed{{ErrorKind::kCorrupt, line.rest(0)}};
    if (what == "unread") return WorkFailed{{ErrorKind::kPeerIo, line.rest(0)}};
    throw std::runtime_error("no input: " + what);
  }

  // ---------------------------------------------------------- what is to be done
 public:
  template <class E>
  std::string operator()(const E& e) const {
    return show(e);
  }
  std::string operator()(const Send& e) const {
    return std::visit([](const auto& what) { return say(what); }, e.what);
  }
  std::string operator()(const LeaveServers& e) const {
    return e.why.empty() ? "leave the servers" : "leave the servers: " + e.why;
  }
  std::string operator()(const SayPull& e) const { return fmt::format("pull at {}", e.clock); }
  std::string operator()(const ForgetPull&) const { return "forget the pull"; }
  std::string operator()(const SayCentrePull&) const { return "pull the centre"; }
  std::string operator()(const SetRate& e) const { return fmt::format("rate {}", e.factor); }
  std::string operator()(const BeginBatch&) const { return "begin the batch"; }
  std::string operator()(const OpenServers& e) const {
    return fmt::format("OPEN the servers of g{}", e.generation);
  }
  std::string operator()(const TakeBatch& e) const {
    const char* const waits = e.wait == TakeBatch::Wait::kNot       ? "at hand"
                              : e.wait == TakeBatch::Wait::kForData ? "being read"
                                                                    : "handed out";
    return fmt::format("TAKE {} records, {}", e.records, waits);
  }
  std::string operator()(const AwaitRows&) const { return "AWAIT ROWS"; }
  std::string operator()(const ComputeBatch&) const { return "COMPUTE"; }
  std::string operator()(const SayPush& e) const {
    return fmt::format("PUSH {}: version {}, phase {}, records {} to {}, weight {}{}{}",
                       e.commit.number, e.commit.version, e.commit.phase, e.commit.from,
                       e.commit.to, e.commit.weight, e.exchange ? ", with an exchange" : "",
                       e.records ? "" : " only");
  }
  std::string operator()(const AwaitServers&) const { return "AWAIT SERVERS"; }
  std::string operator()(const AwaitGivenBack&) const { return "AWAIT GIVEN BACK"; }
  std::string operator()(const SayIdle&) const { return "SAY IDLE"; }
  std::string operator()(const SettleServers&) const { return "SETTLE"; }

 private:
  template <class M>
  static std::string say(const M& m) {
    return show(m);
  }
  static std::string say(const wire::Join& m) {
    std::string shown = fmt::format("say join: version {}; of g{} may be applied phase {} to {}",
                                    m.step, m.said.generation, m.said.phase, m.said.place);
    if (!m.problem.empty()) shown += "; problem: " + m.problem;
    if (!m.unreadable.empty()) shown += " (the checkpoint)";
    if (m.may_pass) shown += " (may pass)";
    return shown;
  }
  template <class Other>
  requires(std::is_same_v<Other, wire::Address> || std::is_same_v<Other, wire::Ready> ||
           std::is_same_v<Other, wire::CheckpointBegun> ||
           std::is_same_v<Other, wire::CheckpointWritten>) static std::string say(const Other&) {
    return "what only a member of a collective says";
  }

  std::vector<std::string> state() const {
    return {fmt::format("{}: g{}, version {}, place {}", machine_.state_name(),
                        machine_.generation(), machine_.version(), machine_.place())};
  }

  WorkerId self_;
  PsMachine machine_;
};

class PsTranscript : public testing::TestWithParam<std::string> {};

TEST_P(PsTranscript, IsWhatTheMachineDoes) {
  transcript::expect_as_written(ANTDT_TRANSCRIPTS "/servers", GetParam(), [](const Line& first) {
    return std::make_unique<PsScript>(first);
  });
}

INSTANTIATE_TEST_SUITE_P(, PsTranscript,
                         testing::ValuesIn(transcript::scripts_in(ANTDT_TRANSCRIPTS "/servers")),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace antdt::worker::ps_worker
