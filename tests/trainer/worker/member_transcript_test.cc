// Transcripts of a member of a collective.
//
//   member WORKER [no-eval] [begins-unlike] [shares] [stages] [ds-sync] [gaia=EVERY [visits=EVERY]]
//                                what it is; it has said its first join. stages: its rows are on
//                                servers
//   form gN rank=R size=N [base=gN] [restore=DIRECTORY reader=R]
//   roster gN WORKER[/DOMAIN] ...
//   settle gN step=N plan=N share=MICRO_BATCHxTIMES
//   phase gN number=N train|eval|finish [records=N] [committed=N] [writer=R]
//       [tries=N]
//   abort gN REASON / regroup gN REASON / leave code=N
//   heard [plan=N] [checkpoint=N] [leave=CODE] [regroup] [stop] [over] [ends=REASON]
//                                what it knows by now
//   tick
//   built, connected, read step=N, unreadable [interrupted|disk] REASON, hashed
//   compared STEP[/gN|/-]|- ...  the states of the members, by rank; -: it has none. Replicas were
//                                made equal in generation N, or may differ; else: equal since the
//                                base
//   passed [step=N checkpoint=N]      the state went through, or came
//   computed records=N [right=N] [INDEX:REASON ...]    a micro-batch, how many of it a visiting
//                                replica got right (its own: all), and what the program skipped
//                                of it; without records: none were there
//   part records=N               its part of a shared step; without records: none were there
//   run OWNER FROM TO [last] [begins=PART]     the desk's answer to its ask: records of the member
//                                with that index in the group
//   nothing                      ... and it has nothing left
//   ended                        the program ends the training, and computes nothing in the step
//   mixed, exchanged, consolidated, sent, reduced, told, staged, applied, awaited, measured
//   gathered N ... [right=N] [plan=N] [checkpoint=N] [leaving] [hop] [alone]
//       records of the members in this step, by rank; their places follow. right: of each, as
//       above. alone: members that may share steps do not share the next one
//   plan N share=MICRO_BATCHxTIMES [threshold=T]
//   evaluated records=N | end | wait
//   broke REASON / rows-unread REASON / failed REASON
//   saved [error=REASON]
//   state                        shows where the machine is
#include <gtest/gtest.h>

#include "tests/trainer/worker/shown.h"
#include "trainer/worker/member/member_machine.h"

namespace antdt::worker {
namespace {

std::string show_share(const Share& share) {
  return fmt::format("{}x{}", share.micro_batch, share.accumulation);
}

class MemberScript : public transcript::Machine {
 public:
  explicit MemberScript(const Line& first)
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
    config.begins_alike = !line.has("begins-unlike");
    if (line.has("shares")) config.sharing.emplace();
    if (line.has("ds-sync")) config.exchange = DsSync{7};
    config.stages_rows = line.has("stages");
    const auto every = static_cast<std::uint32_t>(line.number("gaia", 0));
    const auto visits = static_cast<std::uint32_t>(line.number("visits", 0));
    if (every > 0) config.exchange = Gaia{every, visits};
    config.eval_batch = 8;
    return config;
  }

  // ------------------------------------------------------------- what happens

  Input input_of_line(const Line& line) {
    const std::string& what = line.what();
    if (what == "form") return form(line);
    if (what == "roster") return roster(line);
    if (what == "settle") {
      const PlanVersion version{line.number("plan", 1)};
      return GenerationSettled{generation_of(line),
                               {Step{line.number("step", 0)}, plan_of(line, version, self_)}};
    }
    if (what == "phase") return phase(line);
    if (what == "abort") return GenerationAborted{generation_of(line), line.rest(1)};
    if (what == "regroup") return RegroupOrdered{generation_of(line), line.rest(1)};
    if (what == "leave") return LeaveOrdered{static_cast<std::uint32_t>(line.number("code", 75))};
    if (what == "heard") return heard_of(line);
    if (what == "tick") return TimePassed{};
    return answer(line);
  }
  Input answer(const Line& line) {
    const std::string& what = line.what();
    if (what == "built") return CollectiveBuilt{{"here"}};
    if (what == "connected") return CollectiveConnected{};
    if (what == "read") return StateRead{Step{line.number("step", 0)}};
    if (what == "unreadable") {
      using Cause = StateUnreadable::Cause;
      const Cause cause = line.has("interrupted") ? Cause::kInterrupted
                          : line.has("disk")      ? Cause::kDisk
                                                  : Cause::kContent;
      return StateUnreadable{line.rest(cause == Cause::kContent ? 0 : 1), cause};
    }
    if (what == "hashed") return StateHashed{77};
    if (what == "compared") return compared(line);
    if (what == "consolidated") return Consolidated{};
    if (what == "passed") return passed(line);
    if (what == "mixed") return Mixed{};
    if (what == "exchanged") return UpdatesExchanged{};
    if (what == "computed") return computed(line);
    if (what == "ended") return TrainingEnded{};
    if (what == "part") return part(line);
    if (what == "run") return run_answered(line);
    if (what == "nothing") return RunAnswered{answer()};
    if (what == "reduced") return Reduced{};
    if (what == "told") return SkipsTold{};
    if (what == "sent") return PartSent{};
    if (what == "staged") return PartStaged{};
    if (what == "applied") return Applied{};
    if (what == "awaited") return RecordsAwaited{};
    if (what == "measured") return HopMeasured{line.duration("hop", {})};
    if (what == "gathered") return gathered(line);
    if (what == "plan")
      return PlanTaken{plan_of(line, PlanVersion{std::stoull(line.word(0))}, self_)};
    if (what == "evaluated") return evaluated_of(line);
    if (what == "broke") return CollectiveBroke{line.rest(0)};
    if (what == "rows-unread") return RowsUnread{line.rest(0), StateUnreadable::Cause::kDisk};
    if (what == "rows-damaged") {
      return RowsUnread{line.rest(0), StateUnreadable::Cause::kContent};
    }
    if (what == "rows-refused") return RowsUnread{line.rest(0)};
    if (what == "failed") return WorkFailed{{ErrorKind::kIo, line.rest(0)}};
    if (what == "saved") return saved(line);
    throw std::runtime_error("no input: " + what);
  }
  Input form(const Line& line) {
    FormOrdered form{generation_of(line), {}};
    form.form.rank = static_cast<std::uint32_t>(line.number("rank", 0));
    form.form.size = static_cast<std::uint32_t>(line.number("size", 2));
    form.form.base = Generation{after_letter(line.text("base", "g0"))};
    form.form.restore = line.text("restore", "");
    form.form.reader = static_cast<std::uint32_t>(line.number("reader", 0));
    base_ = form.form.base;
    return form;
  }
  static Input roster(const Line& line) {
    RosterArrived arrived{generation_of(line), {}};
    for (std::size_t i = 1; i < line.words(); ++i) {
      const auto rank = static_cast<std::uint32_t>(i - 1);
      const auto at = transcript::split(line.word(i), '/');
      wire::RosterMember member{worker_of(at[0]), rank, "", ""};
      if (at.size() > 1) member.domain = at[1];
      arrived.roster.members.push_back(std::move(member));
    }
    return arrived;
  }
  Input phase(const Line& line) {
    places_.clear();
    PhaseStarted started{generation_of(line), {}};
    started.start.phase = line.number("number", 1);
    started.start.what = by_name<wire::PhaseKind>(line.word(1)).value();
    started.start.records = line.number("records", 0);
    started.start.committed = line.number("committed", 0);
    started.start.writer = static_cast<std::uint32_t>(line.number("writer", 0));
    started.start.tries = line.number("tries", 0);
    return started;
  }
  Input compared(const Line& line) const {
    StatesCompared compared;
    for (std::size_t i = 0; i < line.words(); ++i) {
      const auto at = transcript::split(line.word(i), '/');
      HealSlot slot{at[0] != "-", {}, 100, 2, 800, 77, base_};
      if (slot.has_state) slot.step = Step{std::stoull(at[0])};
      slot.on_device = line.number("devices", 0) != 0;
      // The last one's model has more parts.
      if (line.number("unlike", 0) != 0 && i + 1 == line.words()) ++slot.parts;
      if (at.size() > 1) slot.consolidated = Generation{at[1] == "-" ? 0 : after_letter(at[1])};
      compared.slots.push_back(slot);
    }
    return compared;
  }
  static Input passed(const Line& line) {
    TrainingState state;
    state.step = Step{line.number("step", 0)};
    state.checkpoint = line.number("checkpoint", 0);
    return StatePassed{meta_of(state)};
  }
  static Input computed(const Line& line) {
    MicroBatchComputed computed;
    computed.records = static_cast<std::uint32_t>(line.number("records", 0));
    computed.rows = std::chrono::milliseconds(line.number("rows", 0));
    if (const auto right = line.number("right", 0)) {
      computed.visit = {computed.records, computed.records, right};
    }
    for (std::size_t i = 0; i < line.words(); ++i) {
      const auto skip = transcript::split(line.word(i), ':');
      computed.skipped.push_back({static_cast<std::uint32_t>(std::stoul(skip.at(0))), skip.at(1)});
    }
    if (computed.records > 0) computed.status = client::TakeStatus::kData;
    computed.weight = computed.records;
    computed.loss = computed.records * 0.5;
    return computed;
  }
  static Input part(const Line& line) {
    PartTaken taken;
    taken.records = static_cast<std::uint32_t>(line.number("records", 0));
    if (taken.records > 0) taken.status = client::TakeStatus::kData;
    return taken;
  }
  Input run_answered(const Line& line) const {
    const auto word = [&](std::size_t i) {
      return static_cast<std::uint32_t>(std::stoul(line.word(i)));
    };
    sharing::Answer said = answer();
    said.run = sharing::Run{word(0), word(1), word(2)};
    said.last = line.has("last");
    said.first = line.real("begins", 0.25);
    return RunAnswered{said};
  }
  [[nodiscard]] sharing::Answer answer() const {
    return {ask_.offer.member, ask_.offer.step, ask_.number, std::nullopt, false, 0.25};
  }
  Input gathered(const Line& line) {
    SlotsGathered gathered;
    const bool leaving = line.has("leaving");
    const bool hop = line.has("hop");
    const bool alone = line.has("alone");
    const std::uint64_t right = line.number("right", 0);
    const PlanVersion plan{line.number("plan", machine_.training().share.version.value)};
    const std::uint64_t checkpoint = line.number("checkpoint", machine_.training().checkpoint);
    for (std::size_t i = 0; i < line.words(); ++i) {
      if (line.word(i) == "leaving" || line.word(i) == "hop" || line.word(i) == "alone") continue;
      StepSlot slot;
      slot.records = static_cast<std::uint32_t>(std::stoul(line.word(i)));
      places_.resize(std::max(places_.size(), i + 1));
      slot.place = places_[i] += slot.records;
      slot.weight = slot.records;
      slot.loss = slot.records * 0.5;
      slot.plan = plan;
      slot.checkpoint = checkpoint;
      slot.leaving = leaving;
      slot.wants_hop = hop;
      slot.shares = !alone;
      if (right > 0) slot.visit = {slot.records, slot.records, right};
      gathered.slots.push_back(slot);
    }
    return gathered;
  }
  Input saved(const Line& line) const {
    Saved saved{save_};
    saved.written.error = line.text("error", "");
    return saved;
  }

  // ---------------------------------------------------------- what is to be done
 public:
  template <class E>
  std::string operator()(const E& e) const {
    return show(e);
  }
  std::string operator()(const Send& e) const {
    return std::visit([this](const auto& what) { return say(what); }, e.what);
  }
  std::string operator()(const LeaveCollective& e) const {
    return e.why.empty() ? "leave the collective" : "leave the collective: " + e.why;
  }
  std::string operator()(const SetRate& e) const { return fmt::format("rate {}", e.factor); }
  std::string operator()(const BeginStep& e) const {
    if (!e.sums_with.empty()) {
      return fmt::format("begin a step, sums with {}", fmt::join(e.sums_with, " "));
    }
    return e.local ? "begin a local step" : "begin a step";
  }
  std::string operator()(const DropStep&) const { return "drop the step"; }
  std::string operator()(const AbandonStep&) const { return "abandon the step"; }
  std::string operator()(const Save& e) {
    save_ = e.about;
    return fmt::format("save {} of step {}{}", e.about.number, e.about.step,
                       e.kind == Save::Kind::kFinalModel ? ", the final model"
                       : e.apart                         ? ", apart"
                                                         : "");
  }
  std::string operator()(const GiveUpSaving& e) const { return "give up saving: " + e.reason; }
  std::string operator()(const BuildCollective& e) const {
    return fmt::format("BUILD the collective of g{} as rank {} of {}{}", e.generation, e.rank,
                       e.size, e.holds_base ? ", with the state that goes on" : "");
  }
  std::string operator()(const ConnectCollective& e) const {
    std::string shown = "CONNECT";
    for (const wire::RosterMember& member : e.members) shown += fmt::format(" {}", member.worker);
    return shown;
  }
  std::string operator()(const ReadState& e) const { return "READ STATE of " + e.directory; }
  std::string operator()(const CompareStates& e) const {
    return e.has_state ? fmt::format("COMPARE STATES with step {}", e.step)
                       : "COMPARE STATES with none";
  }
  std::string operator()(const PassState& e) const {
    return fmt::format("PASS STATE:{}{}{}", e.plan.receives ? " receive it" : "",
                       e.plan.sends ? " send it" : "", e.keeps_own ? ", keep the own" : "");
  }
  std::string operator()(const Consolidate& e) const {
    return fmt::format("CONSOLIDATE {}{}", fmt::join(e.holders, " "), show_domains(e.domains));
  }
  std::string operator()(const Mix& e) const {
    return fmt::format("MIX {} after {}", fmt::join(e.group, " "), e.step);
  }
  std::string operator()(const ExchangeUpdates& e) const {
    return fmt::format("EXCHANGE {} of {} after {}{}{}{}",
                       e.whole ? "all that is pending" : "what is significant", e.own, e.step,
                       show_domains(e.domains),
                       e.threshold == 0.01 ? "" : fmt::format(", threshold {}", e.threshold),
                       e.visits ? ", replicas visit" : "");
  }
  std::string operator()(const HashState& e) const {
    return fmt::format("HASH STATE {}{}", e.step, e.on_device ? " on the device" : "");
  }
  std::string operator()(const ComputeMicroBatch& e) const {
    return fmt::format("COMPUTE {} records{}", e.records, e.last ? ", the last" : "");
  }
  std::string operator()(const TakePart& e) const {
    return fmt::format("TAKE PART of {} records", e.records);
  }
  std::string operator()(const OfferPart& e) const {
    return fmt::format("offer {} records and begin with {}, runs of at most {}", e.offer.records,
                       e.offer.first, e.offer.most);
  }
  std::string operator()(const ComputeRun& e) const {
    return fmt::format("COMPUTE RUN {} to {} of member {}", e.run.from, e.run.to, e.run.owner);
  }
  std::string operator()(const AskForRun& e) {
    ask_ = e.ask;
    return fmt::format("ASK for a run, the {}. time", e.ask.number);
  }
  std::string operator()(const Reduce&) const { return "REDUCE"; }
  std::string operator()(const AwaitSkipsTold&) const { return "AWAIT SKIPS TOLD"; }
  std::string operator()(const SendPart&) const { return "SEND PART"; }
  std::string operator()(const AwaitPartStaged&) const { return "AWAIT PART STAGED"; }
  std::string operator()(const UseServers& e) const {
    return fmt::format("use the servers of {}", e.group);
  }
  std::string operator()(const GatherSlots& e) const {
    const VisitSums& visit = e.mine.visit;
    return fmt::format("GATHER SLOTS: {} records to place {}, plan {}, checkpoint {}{}{}{}",
                       e.mine.records, e.mine.place, e.mine.plan, e.mine.checkpoint,
                       e.mine.leaving ? ", leaving" : "", e.mine.has_data ? "" : ", no more data",
                       visit.records == 0 ? ""
                                          : fmt::format(", the guest is right about {} of {}",
                                                        visit.guest_right, visit.records));
  }
  std::string operator()(const Apply& e) const { return fmt::format("APPLY weight {}", e.weight); }
  std::string operator()(const TakePlan& e) const { return fmt::format("TAKE PLAN {}", e.version); }
  std::string operator()(const MeasureHop&) const { return "MEASURE HOP"; }

 private:
  template <class M>
  static std::string say(const M& m) {
    return show(m);
  }
  std::string say(const wire::Join& m) const {
    std::string shown = fmt::format("say join: state of g{} at step {}", m.settled, m.step);
    if (!m.problem.empty()) shown += "; problem: " + m.problem;
    if (m.lasts) shown += " (it lasts)";
    if (!m.unreadable.empty()) shown += "; unreadable: " + m.unreadable;
    if (m.may_pass) shown += " (may pass)";
    if (!m.ends.empty()) shown += "; ends the training: " + m.ends;
    return shown;
  }
  static std::string show_domains(const std::vector<DomainRanks>& domains) {
    std::string shown;
    for (const DomainRanks& d : domains) {
      shown += fmt::format("; {}: {}", d.domain, fmt::join(d.ranks, " "));
    }
    return shown;
  }
  static std::string show_places(const std::vector<wire::MemberPlace>& places) {
    std::string shown;
    for (const wire::MemberPlace& at : places) shown += fmt::format(" {}:{}", at.worker, at.place);
    return shown;
  }
  std::string say(const wire::Address& m) const { return "say address " + m.at; }
  std::string say(const wire::Ready& m) const {
    return fmt::format("say ready at step {}, phase {}, places{}", m.step, m.phase,
                       show_places(m.places));
  }
  std::string say(const wire::CheckpointBegun& m) const {
    return fmt::format("say checkpoint {} begun at step {}:{}", m.number, m.step,
                       show_places(m.places));
  }
  std::string say(const wire::CheckpointWritten& m) const {
    return fmt::format("say checkpoint {} written{}", m.number,
                       m.error.empty() ? "" : ": " + m.error);
  }

  std::vector<std::string> state() const {
    const TrainingState& training = machine_.training();
    return {fmt::format("{}: g{}, holds the state of g{} at step {}, share {}",
                        machine_.state_name(), machine_.generation(), training.settled,
                        training.step, show_share(training.share))};
  }

  WorkerId self_;
  MemberMachine machine_;
  Generation base_;                    // of the last form
  std::vector<std::uint64_t> places_;  // by rank
  sharing::Asked ask_;                 // the newest one
  wire::CheckpointWritten save_;       // the last that was wanted
};

class MemberTranscript : public testing::TestWithParam<std::string> {};

TEST_P(MemberTranscript, IsWhatTheMachineDoes) {
  transcript::expect_as_written(ANTDT_TRANSCRIPTS "/member", GetParam(), [](const Line& first) {
    return std::make_unique<MemberScript>(first);
  });
}

INSTANTIATE_TEST_SUITE_P(, MemberTranscript,
                         testing::ValuesIn(transcript::scripts_in(ANTDT_TRANSCRIPTS "/member")),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace antdt::worker
