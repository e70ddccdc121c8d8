#include "trainer/loop/member.h"

#include <unistd.h>

#include <algorithm>

#include "core/log.h"
#include "trainer/loop/checkpoint.h"
#include "trainer/loop/connected.h"
#include "trainer/loop/eval_phase.h"
#include "trainer/loop/habits.h"
#include "trainer/loop/healing.h"
#include "trainer/loop/train_phase.h"

namespace antdt::trainer {
namespace {

constexpr Duration kRepeatFinalModel = std::chrono::seconds(2);

// Orders that only make sense in the generation that they belong to.
bool is_of_members(const decltype(client::Directive::order)& order) {
  const auto* start = std::get_if<wire::PhaseStart>(&order);
  return std::holds_alternative<wire::Roster>(order) ||
         std::holds_alternative<wire::Settle>(order) || (start && start->what != "finish");
}

}  // namespace

Member::Member(Tools tools, Parts parts) : tools_(tools), parts_(std::move(parts)) {}

Result<int> Member::run() {
  const Connected connected(tools_.client, tools_.guard, tools_.account);
  auto code = live();
  tools_.prefetcher.stop();
  if (code) tools_.client.bye({0, tools_.account.seconds(), {}});
  return code;
}

Result<int> Member::live() {
  join({});
  while (true) {
    ANTDT_TRY(const std::optional<int> code, turn());
    if (code) return *code;
  }
}

void Member::join(std::string problem) {
  wire::Join join;
  join.pid = static_cast<std::uint32_t>(getpid());
  join.data = parts_.data;
  join.problem = std::move(problem);
  join.settled = std::max(state_.settled, ready_);
  join.step = state_.step;
  join.device = parts_.device;
  tools_.client.join(join);
}

Member::Verdict Member::turn() {
  if (tools_.stop || tools_.client.leave_requested()) return leave_code();
  ANTDT_TRY(const auto directive, tools_.client.next_directive(kTurn));
  tools_.client.time_account(tools_.account.seconds());
  if (directive) return obey(*directive);
  say_final_model_again();
  return std::nullopt;
}

Member::Verdict Member::obey(const client::Directive& directive) {
  if (std::holds_alternative<wire::Form>(directive.order)) {
    generation_ = directive.generation;
  } else if (directive.generation != generation_ && is_of_members(directive.order)) {
    return std::nullopt;
  }
  // One that ended before its Form was given out has answered the join.
  if (std::holds_alternative<wire::Abort>(directive.order) && directive.generation > generation_) {
    dissolve("another one has begun and ended");
    return std::nullopt;
  }
  return std::visit([this](const auto& order) { return on(order); }, directive.order);
}

// ------------------------------------------------------- forming a generation

Member::Verdict Member::on(const wire::Form& form) {
  if (tools_.injected.training()) tools_.account.enter(TimeUse::kReconfigure);
  final_model_.reset();
  tools_.guard.begin(generation_);
  collective_.reset();
  builder_.reset();
  form_ = form;
  auto made = parts_.make_collective(form.rank, form.size);
  if (!made) {
    formation_failed(made.error().message);
    return std::nullopt;
  }
  builder_ = std::move(*made);
  tools_.guard.hold(builder_);
  tools_.client.send_address({builder_->address()});
  return std::nullopt;
}

Member::Verdict Member::on(const wire::Roster& roster) {
  if (!builder_) return std::nullopt;  // of a generation that ended meanwhile
  const Timed reconfiguring(tools_.account, TimeUse::kReconfigure);
  std::vector<std::string> addresses;
  for (const wire::RosterMember& member : roster.members) addresses.push_back(member.at);
  const auto key = group_key();
  auto connected = key ? builder_->connect(addresses, *key) : tl::unexpected(key.error());
  builder_.reset();
  if (!connected) {
    formation_failed(connected.error().message);
    return std::nullopt;
  }
  collective_ = std::move(*connected);
  tools_.guard.hold(collective_);
  ANTDT_TRY(const bool holds, holds_state());
  ready_ = {};
  if (auto healed = heal(*collective_, tools_.engine, state_, holds, form_.base); !healed) {
    formation_failed(healed.error().message);
    return std::nullopt;
  }
  state_.members.clear();
  for (const wire::RosterMember& member : roster.members) state_.members.push_back(member.worker);
  ready_ = generation_;
  ready_members_ = state_.members;
  // All are at the same step: one of them tells which records made the last ones.
  tools_.client.send_ready({state_.step, tools_.engine.state_hash(state_.step), state_.phase,
                            state_.places,
                            form_.rank == 0 ? state_.log.history() : wire::StepHistory{}});
  return std::nullopt;
}

Result<GroupKey> Member::group_key() const {
  auto secret = crypto::Secret::of(form_.secret);
  if (!secret) {
    return fail(ErrorKind::kRefused,
                "the job daemon gave generation {} no secret with which its members could know "
                "each other: install the same release of AntDT on all hosts",
                generation_);
  }
  return GroupKey{*secret, tools_.client.job(), generation_};
}

Result<bool> Member::holds_state() {
  if (form_.base != Generation{}) {
    // It settled with this member, who was not told.
    if (form_.base == ready_ && state_.settled != form_.base) settled(ready_, ready_members_);
    return state_.settled == form_.base;
  }
  if (!form_.restore.empty()) return restore();
  if (state_.pristine) return true;
  return fail(ErrorKind::kAborted,
              "generation {} is to begin training anew, and {} is at step {} already: only a new "
              "process can go back to the beginning",
              generation_, tools_.client.member().worker, state_.step);
}

bool Member::restore() {
  // What was there is gone whether or not the checkpoint can be read.
  state_.settled = {};
  state_.pristine = false;
  state_.phase = 0;
  state_.places.clear();
  state_.loss_sum = state_.weight_sum = 0;
  state_.log.begin({});
  auto step = tools_.engine.load(form_.restore);
  if (step) {
    state_.step = *step;
    return true;
  }
  log_warn("{} cannot read the checkpoint {} and waits for another member's state: {}",
           tools_.client.member().worker, form_.restore, step.error().message);
  return false;
}

void Member::settled(Generation generation, const std::vector<WorkerId>& members) {
  state_.settled = generation;
  state_.places = places_at_start(members);
  state_.log.begin(generation);
}

Member::Verdict Member::on(const wire::Settle& settle) {
  if (!collective_) return std::nullopt;
  if (settle.step != state_.step) {
    return fail(ErrorKind::kInternal,
                "generation {} settled at step {}, and this member is at step {}", generation_,
                settle.step, state_.step);
  }
  settled(generation_, state_.members);
  state_.share = share_of(settle.plan, tools_.client.member().worker);
  tools_.engine.set_rate(settle.plan.rate);
  return std::nullopt;
}

// ------------------------------------------------------------------- its phases

Member::Verdict Member::on(const wire::PhaseStart& start) {
  if (!collective_) return std::nullopt;
  if (start.what == "finish") {
    finish(start);
    return std::nullopt;
  }
  ANTDT_TRY(const PhaseEnd end, run_phase(start));
  if (end == PhaseEnd::kLeave) return leave_code();
  // Until the next phase this member waits for the others.
  if (end == PhaseEnd::kDone) tools_.account.enter(TimeUse::kCollectiveWait);
  return std::nullopt;
}

// The trained model is kept whatever the interval of checkpoints is. Everybody
// stays until the job daemon has it (and says Leave): if rank 0 is lost, another
// member writes it.
void Member::finish(const wire::PhaseStart& start) {
  if (collective_->rank() != 0) return;
  const Timed writing(tools_.account, TimeUse::kCheckpoint);
  wire::CheckpointWritten written =
      write_checkpoint(tools_.engine, tools_.client.run_dir(), state_.step, tools_.client.member());
  written.number = std::max(tools_.client.checkpoint_ordered(), state_.checkpoint) + 1;
  written.phase = start.phase;
  tools_.client.checkpoint_written(written);
  final_model_ = Said{std::move(written), tools_.clock.now()};
}

// Once may be lost, and then all would wait for ever. What could not be written
// is written now, if there is room.
void Member::say_final_model_again() {
  if (!final_model_ || tools_.clock.now() - final_model_->at < kRepeatFinalModel) return;
  wire::CheckpointWritten& model = final_model_->written;
  if (!model.error.empty()) {
    const Timed writing(tools_.account, TimeUse::kCheckpoint);
    wire::CheckpointWritten again = write_checkpoint(tools_.engine, tools_.client.run_dir(),
                                                     state_.step, tools_.client.member());
    model.directory = std::move(again.directory);
    model.files = std::move(again.files);
    model.error = std::move(again.error);
  }
  final_model_->at = tools_.clock.now();
  tools_.client.checkpoint_written(final_model_->written);
}

Result<PhaseEnd> Member::run_phase(const wire::PhaseStart& start) {
  const bool training = start.what == "train";
  data::RecordReader* const reader = training ? parts_.train : parts_.eval;
  if (reader == nullptr) {
    return fail(ErrorKind::kUsage, "phase {} is '{}', and this worker has no such data",
                start.phase, start.what);
  }
  tools_.client.begin_phase(start.phase);
  tools_.prefetcher.start(*reader);
  std::string reason = "its members go into another";
  const auto run = [&]() -> Result<PhaseEnd> {
    if (!training) return evaluate();
    TrainPhase phase(tools_, state_, *collective_, start);
    auto end = phase.run();
    reason = phase.breakage();
    return end;
  };
  auto end = run();
  tools_.client.set_hold(0);
  if (end && *end == PhaseEnd::kOver) dissolve(reason);
  tools_.prefetcher.stop();
  return end;
}

Result<PhaseEnd> Member::evaluate() {
  const EvalTools tools{tools_.client, tools_.prefetcher, tools_.account, tools_.guard,
                        tools_.stop};
  return run_eval_phase(tools, parts_.eval_batch, [this](const data::Examples& batch) {
    return tools_.engine.evaluate(batch);
  });
}

// ------------------------------------------------------------------- its end

// Where it is over already, this member has joined again for that reason.
Member::Verdict Member::on(const wire::Abort& abort) {
  if (in_generation()) dissolve(abort.reason);
  return std::nullopt;
}

Member::Verdict Member::on(const wire::Regroup& regroup) {
  if (in_generation()) dissolve(regroup.reason);
  return std::nullopt;
}

Member::Verdict Member::on(const wire::Leave& leave) { return static_cast<int>(leave.code); }

int Member::leave_code() const {
  const auto leave = tools_.client.leave_requested();
  return leave ? static_cast<int>(leave->code) : kResumable;
}

void Member::dissolve(const std::string& reason, std::string problem) {
  log_warn("generation {} is over for {}: {}", generation_, tools_.client.member().worker, reason);
  tools_.account.enter(TimeUse::kReconfigure);
  tools_.guard.release();
  collective_.reset();
  builder_.reset();
  join(std::move(problem));
}

// Where the generation is over anyway, this is no problem of its own.
void Member::formation_failed(const std::string& why) {
  dissolve(why, tools_.guard.over() ? std::string() : why);
}

}  // namespace antdt::trainer
