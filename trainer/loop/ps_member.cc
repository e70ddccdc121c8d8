#include "trainer/loop/ps_member.h"

#include <unistd.h>

#include <algorithm>

#include "core/log.h"
#include "trainer/loop/connected.h"
#include "trainer/loop/eval_phase.h"
#include "trainer/loop/habits.h"
#include "trainer/loop/leave_watch.h"
#include "trainer/loop/ps_train_phase.h"
#include "trainer/ps/placement.h"

namespace antdt::trainer {

PsMember::PsMember(PsTools tools, Parts parts) : tools_(tools), parts_(std::move(parts)) {}

Result<int> PsMember::run() {
  const Connected connected(tools_.client, tools_.guard, tools_.account);
  const LeaveWatch watch([this] { return tools_.wants_to_leave(); }, kLeaveGrace,
                         [this] { tools_.guard.end(); });
  auto code = live();
  tools_.prefetcher.stop();
  tools_.guard.release();
  if (code) tools_.client.bye({0, tools_.account.seconds(), {}});
  return code;
}

Result<int> PsMember::live() {
  join({});
  while (true) {
    ANTDT_TRY(const std::optional<int> code, turn());
    if (code) return *code;
  }
}

void PsMember::join(std::string problem) {
  wire::Join join;
  join.pid = static_cast<std::uint32_t>(getpid());
  join.data = parts_.data;
  join.problem = std::move(problem);
  join.step = Step{state_.version};
  join.key = parts_.keys.public_z85;
  join.device = parts_.device;
  join.said = said_;
  tools_.client.join(join);
}

PsMember::Verdict PsMember::turn() {
  if (tools_.wants_to_leave()) return leave_code();
  ANTDT_TRY(const auto directive, tools_.client.next_directive(kTurn));
  tools_.client.time_account(tools_.account.seconds());
  if (!directive) return std::nullopt;
  return obey(*directive);
}

PsMember::Verdict PsMember::obey(const client::Directive& directive) {
  if (std::holds_alternative<wire::PsRoster>(directive.order)) {
    // Its servers have heard of no push.
    if (directive.generation != generation_) state_.pushes = 0;
    generation_ = directive.generation;
  } else if (directive.generation != generation_ &&
             !std::holds_alternative<wire::Leave>(directive.order)) {
    // One that ended before its roster was given out has answered the join.
    if (directive.generation > generation_) dissolve("it is over before it began here");
    return std::nullopt;
  }
  return std::visit([this](const auto& order) { return on(order); }, directive.order);
}

// ------------------------------------------------------------ a group of servers

PsMember::Verdict PsMember::on(const wire::PsRoster& roster) {
  if (tools_.injected.training()) tools_.account.enter(TimeUse::kReconfigure);
  tools_.guard.begin(generation_);
  link_.reset();
  const Status opened = open_link(roster);
  if (opened) return std::nullopt;
  const bool is_over = opened.error().kind == ErrorKind::kAborted;
  dissolve(opened.error().message, is_over ? std::string() : opened.error().message);
  return std::nullopt;
}

Status PsMember::open_link(const wire::PsRoster& roster) {
  ANTDT_TRY(state_.consistency, ps::parse_consistency(roster.sync));
  state_.staleness = roster.staleness;
  ps::Peers peers;
  peers.generation = generation_;
  peers.servers = roster.servers;
  peers.keys = roster.keys;
  peers.own = parts_.keys;
  peers.send_delay = [link = tools_.injected.link()](std::size_t bytes) {
    return link->delay(bytes);
  };
  peers.others = roster.others;
  peers.other_keys = roster.other_keys;
  peers.number = roster.number;
  peers.newer = [&client = tools_.client, generation = generation_](std::uint64_t than) {
    return client.servers(generation, than);
  };
  // Nobody gives up who was heard: the job daemon says when a server is lost.
  peers.consistency = state_.consistency;
  ANTDT_TRY(link_, ps::WorkerLink::connect(tools_.context, peers, tools_.client.member()));
  tools_.guard.hold(link_);
  ANTDT_TRY(state_.version, link_->open({parts_.seed, tools_.model.tables()}));
  return link_->put(tools_.model.first_values());
}

PsMember::Verdict PsMember::on(const wire::Abort& abort) {
  // Where it is over already, this worker has joined again for that reason.
  if (link_) dissolve(abort.reason);
  return std::nullopt;
}

PsMember::Verdict PsMember::on(const wire::Regroup& regroup) {
  if (link_) dissolve(regroup.reason);
  return std::nullopt;
}

void PsMember::dissolve(const std::string& reason, std::string problem) {
  log_warn("generation {} is over for {}: {}", generation_, tools_.client.member().worker, reason);
  tools_.account.enter(TimeUse::kReconfigure);
  tools_.guard.release();
  // One with a problem may come back to the same generation.
  if (link_ && problem.empty()) said_ = {generation_, link_->said().phase, link_->said().place};
  link_.reset();
  join(std::move(problem));
}

// ------------------------------------------------------------------- its phases

PsMember::Verdict PsMember::on(const wire::PhaseStart& start) {
  // "finish": the servers write the model, and Leave follows.
  if (!link_ || start.what == "finish") return std::nullopt;
  ANTDT_TRY(const PhaseEnd end, run_phase(start));
  if (end == PhaseEnd::kLeave) return leave_code();
  if (end == PhaseEnd::kOver) dissolve(breakage_);
  // Until the next phase this worker waits for the others.
  if (end == PhaseEnd::kDone) tools_.account.enter(TimeUse::kCollectiveWait);
  return std::nullopt;
}

Result<PhaseEnd> PsMember::run_phase(const wire::PhaseStart& start) {
  const bool training = start.what == "train";
  data::RecordReader* const reader = training ? parts_.train : parts_.eval;
  if (reader == nullptr) {
    return fail(ErrorKind::kUsage, "phase {} is '{}', and this worker has no such data",
                start.phase, start.what);
  }
  tools_.client.begin_phase(start.phase);
  tools_.prefetcher.start(*reader);
  auto end = training ? train(start) : evaluate();
  tools_.client.set_hold(0);
  tools_.prefetcher.stop();
  return end;
}

Result<PhaseEnd> PsMember::train(const wire::PhaseStart& start) {
  PsTrainPhase phase(tools_, state_, *link_, start);
  auto end = phase.run();
  breakage_ = phase.breakage();
  return end;
}

// With the model after all updates: nobody pushes while one evaluates.
Result<PhaseEnd> PsMember::evaluate() {
  breakage_ = "the servers are gone";
  const auto version = settle();
  if (!version && version.error().kind == ErrorKind::kAborted) return PhaseEnd::kOver;
  if (!version) return tl::unexpected(version.error());
  state_.version = std::max(state_.version, *version);
  const EvalTools tools{tools_.client, tools_.prefetcher, tools_.account, tools_.guard,
                        tools_.stop};
  return run_eval_phase(tools, parts_.eval_batch,
                        [this](const data::Examples& batch) { return evaluate(batch); });
}

Result<std::uint64_t> PsMember::settle() {
  const Timed waiting(tools_.account, TimeUse::kCollectiveWait);
  return link_->settle();
}

Result<wire::EvalPartial> PsMember::evaluate(const data::Examples& batch) {
  const std::vector<ps::TableKeys> rows = tools_.model.rows_of(batch);
  ps::WorkerLink::Pulled pulled;
  {
    const Timed waiting(tools_.account, TimeUse::kCollectiveWait);
    ANTDT_TRY(pulled, link_->pull(rows, 0));
  }
  return tools_.model.evaluate(batch, rows, pulled.values);
}

// ------------------------------------------------------------------- its end

PsMember::Verdict PsMember::on(const wire::Leave& leave) { return static_cast<int>(leave.code); }

int PsMember::leave_code() const {
  const auto leave = tools_.client.leave_requested();
  return leave ? static_cast<int>(leave->code) : kResumable;
}

}  // namespace antdt::trainer
