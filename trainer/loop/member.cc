#include "trainer/loop/member.h"

#include <unistd.h>

#include <algorithm>

#include "core/log.h"
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

Member::Member(Tools tools, Parts parts)
    : tools_(tools), parts_(std::move(parts)), writer_(tools_.client, parts_.io_patience) {}

Result<int> Member::run() {
  const Connected connected(tools_.client, tools_.guard, tools_.account);
  auto code = live();
  tools_.prefetcher.stop();
  writer_.give_up("its writer leaves the job");
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

void Member::join(std::string problem, std::string unreadable) {
  wire::Join join;
  join.pid = static_cast<std::uint32_t>(getpid());
  join.data = parts_.data;
  join.problem = std::move(problem);
  join.unreadable = std::move(unreadable);
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
  say_final_model();
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
  const bool begins_again = form_.base == Generation{} && !form_.restore.empty();
  if (begins_again) {
    forget_state();
    const Status read = form_.rank == form_.reader ? restore() : Status{};
    if (!read) {
      cannot_read(read.error());
      return std::nullopt;
    }
  }
  ANTDT_TRY(const bool holds, holds_state());
  ready_ = {};
  const auto received = [this](std::uint64_t bytes, std::uint64_t of_all) {
    tools_.client.set_io({"receiving the state", {}, bytes, of_all});
  };
  auto healed = heal(*collective_, tools_.engine, state_, holds, form_.base, received);
  if (!writer_.busy()) tools_.client.set_io({});
  if (!healed) {
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
  if (!form_.restore.empty()) return form_.rank == form_.reader;  // which has read it
  if (state_.pristine) return true;
  return fail(ErrorKind::kAborted,
              "generation {} is to begin training anew, and {} is at step {} already: only a new "
              "process can go back to the beginning",
              generation_, tools_.client.member().worker, state_.step);
}

// What was there is gone whether or not the checkpoint can be read.
void Member::forget_state() {
  state_.settled = {};
  state_.pristine = false;
  state_.phase = 0;
  state_.places.clear();
  state_.loss_sum = state_.weight_sum = 0;
  state_.log.begin({});
}

// Part by part into place. The generation may end meanwhile: then nobody waits for it any more.
Status Member::restore() {
  std::uint64_t so_far = 0, of_all = 0;
  const auto say = [&] {
    tools_.client.set_io({"reading the checkpoint", form_.restore, so_far, of_all});
  };
  const auto moved = [&](std::uint64_t bytes) {
    so_far += bytes;
    say();
    return !tools_.guard.over() && !tools_.stop && !tools_.client.leave_requested();
  };
  say();
  auto files = CheckpointReader::open(form_.restore, moved);
  if (!files) return tl::unexpected(files.error());
  of_all = files->total_bytes();
  ANTDT_TRY(state_.step, tools_.engine.load(*files));
  return {};
}

void Member::cannot_read(const Error& error) {
  tools_.client.set_io({});
  if (error.kind == ErrorKind::kAborted) return formation_failed(error.message);
  const std::string why =
      fmt::format("cannot read the checkpoint {}: {}", form_.restore, error.message);
  dissolve(why, why, error.message);
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
// stays until the job daemon has it (and says Leave): if the one that is to write it is lost,
// or cannot, another member writes it.
void Member::finish(const wire::PhaseStart& start) {
  if (collective_->rank() != start.writer) {
    if (std::exchange(final_model_, std::nullopt)) writer_.give_up("another member writes it");
    return;
  }
  if (final_model_) return;
  final_model_ = FinalModel{
      std::max(tools_.client.checkpoint_ordered(), state_.checkpoint) + 1, start.phase, false, {}};
  write_final_model();
}

// Once the checkpoint that it may still be writing is done.
void Member::write_final_model() {
  if (writer_.busy()) return;
  final_model_->begun = true;
  final_model_->said.reset();
  {
    const std::lock_guard lock(final_mutex_);
    final_written_.reset();
  }
  const Timed writing(tools_.account, TimeUse::kCheckpoint);
  wire::CheckpointWritten about;
  about.number = final_model_->number;
  about.phase = final_model_->phase;
  about.step = state_.step;
  writer_.begin(tools_.engine, std::move(about), [this](wire::CheckpointWritten written) {
    const std::lock_guard lock(final_mutex_);
    final_written_ = std::move(written);
  });
}

// Said once it may be lost, and then all would wait for ever. What could not be written
// is written again, if there is room.
void Member::say_final_model() {
  if (!final_model_) return;
  if (!final_model_->begun) return write_final_model();
  std::optional<wire::CheckpointWritten> written;
  {
    const std::lock_guard lock(final_mutex_);
    written = final_written_;
  }
  if (!written) return;
  const MonoTime now = tools_.clock.now();
  if (final_model_->said && now - *final_model_->said < kRepeatFinalModel) return;
  const bool tried_before = final_model_->said.has_value();
  final_model_->said = now;
  if (tried_before && !written->error.empty()) return write_final_model();
  tools_.client.checkpoint_written(*written);
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
    TrainPhase phase(tools_, state_, *collective_, writer_, start);
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

void Member::dissolve(const std::string& reason, std::string problem, std::string unreadable) {
  log_warn("generation {} is over for {}: {}", generation_, tools_.client.member().worker, reason);
  tools_.account.enter(TimeUse::kReconfigure);
  tools_.guard.release();
  collective_.reset();
  builder_.reset();
  join(std::move(problem), std::move(unreadable));
}

// Where the generation is over anyway, this is no problem of its own.
void Member::formation_failed(const std::string& why) {
  dissolve(why, tools_.guard.over() ? std::string() : why);
}

}  // namespace antdt::trainer
