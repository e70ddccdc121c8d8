#include "trainer/loop/member.h"

#include <unistd.h>

#include <algorithm>

#include "core/log.h"
#include "trainer/loop/checkpoint.h"
#include "trainer/loop/eval_phase.h"
#include "trainer/loop/train_phase.h"

namespace antdt::trainer {
namespace {

constexpr Duration kTurn = std::chrono::milliseconds(100);
// How long a member whose generation ended waits for the next one.
constexpr Duration kNewGenerationPatience = std::chrono::seconds(30);
constexpr int kResumable = 75;

}  // namespace

Member::Member(Tools tools, Parts parts) : tools_(tools), parts_(std::move(parts)) {}

Result<int> Member::run() {
  tools_.client.set_abort_handler([guard = &tools_.guard](Generation g) { guard->end(g); });
  auto code = live();
  tools_.prefetcher.stop();
  tools_.client.set_abort_handler({});
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
  tools_.client.join({static_cast<std::uint32_t>(getpid()), parts_.data, true, std::move(problem)});
}

Member::Verdict Member::turn() {
  if (tools_.stop || tools_.client.leave_requested()) return leave_code();
  ANTDT_TRY(const auto directive, tools_.client.next_directive(kTurn));
  tools_.client.time_account(tools_.account.seconds());
  if (directive) return obey(*directive);
  if (dissolved_ && tools_.clock.now() - *dissolved_ > kNewGenerationPatience) {
    return fail(ErrorKind::kAborted,
                "the collective of generation {} ended ({}), and no new generation was formed "
                "within {:.0f} s",
                generation_, dissolved_why_, to_seconds(kNewGenerationPatience));
  }
  return std::nullopt;
}

Member::Verdict Member::obey(const client::Directive& directive) {
  generation_ = directive.generation;
  return std::visit([this](const auto& order) { return on(order); }, directive.order);
}

Member::Verdict Member::on(const wire::Form& form) {
  if (state_.first_step) tools_.account.enter(TimeUse::kReconfigure);
  tools_.guard.release();
  collective_.reset();
  auto made = parts_.make_collective(form.rank, form.size);
  if (!made) return tl::unexpected(made.error());
  builder_ = std::move(*made);
  key_ = form.key;
  dissolved_.reset();
  tools_.guard.begin(generation_, builder_);
  tools_.client.send_address({builder_->address_for_left(), builder_->address_for_right()});
  return std::nullopt;
}

Member::Verdict Member::on(const wire::Roster& roster) {
  if (!builder_) return std::nullopt;  // of a generation that ended meanwhile
  auto connected = builder_->connect(roster.left, roster.right, key_);
  builder_.reset();
  if (!connected) {
    dissolve(connected.error().message);
    join(connected.error().message);  // the job daemon forms another generation
    return std::nullopt;
  }
  collective_ = std::move(*connected);
  tools_.guard.connected(collective_);
  state_.members.clear();
  for (const wire::RosterMember& member : roster.members) state_.members.push_back(member.worker);
  tools_.client.send_ready({state_.step, tools_.engine.state_hash(state_.step)});
  return std::nullopt;
}

Member::Verdict Member::on(const wire::Settle& settle) {
  if (settle.step != state_.step) {
    return fail(ErrorKind::kInternal,
                "generation {} settled at step {}, and this member is at step {}", generation_,
                settle.step, state_.step);
  }
  state_.share = share_of(settle.plan, tools_.client.member().worker);
  return std::nullopt;
}

Member::Verdict Member::on(const wire::PhaseStart& start) {
  if (start.what == "finish") return finish(start);
  if (!collective_) return std::nullopt;  // of a generation that ended meanwhile
  auto end = run_phase(start);
  tools_.prefetcher.stop();
  tools_.client.set_hold(0);
  if (!end) return tl::unexpected(end.error());
  if (*end == PhaseEnd::kLeave) return leave_code();
  // Until the next phase this member waits for the others.
  tools_.account.enter(*end == PhaseEnd::kDone ? TimeUse::kCollectiveWait : TimeUse::kReconfigure);
  return std::nullopt;
}

// The trained model is kept whatever the interval of checkpoints is.
int Member::finish(const wire::PhaseStart& start) {
  if (!collective_ || collective_->rank() != 0) return 0;
  const Timed writing(tools_.account, TimeUse::kCheckpoint);
  wire::CheckpointWritten written = write_checkpoint(tools_.engine, tools_.client.run_dir(),
                                                     state_.step, tools_.client.member().attempt);
  written.number = std::max(tools_.client.checkpoint_ordered(), state_.checkpoint) + 1;
  written.phase = start.phase;
  tools_.client.checkpoint_written(written);
  return 0;
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
  if (!training) return run_eval_phase(tools_, parts_.eval_batch);
  TrainPhase phase(tools_, state_, *collective_, start);
  auto end = phase.run();
  if (end && *end == PhaseEnd::kOver) dissolve(phase.breakage());
  return end;
}

Member::Verdict Member::on(const wire::Abort& abort) {
  dissolve(abort.reason);
  return std::nullopt;
}

Member::Verdict Member::on(const wire::Leave& leave) { return static_cast<int>(leave.code); }

int Member::leave_code() const {
  const auto leave = tools_.client.leave_requested();
  return leave ? static_cast<int>(leave->code) : kResumable;
}

void Member::dissolve(std::string reason) {
  if (dissolved_) return;
  log_warn("generation {} is over for {}: {}", generation_, tools_.client.member().worker, reason);
  tools_.account.enter(TimeUse::kReconfigure);
  tools_.guard.release();
  collective_.reset();
  builder_.reset();
  dissolved_ = tools_.clock.now();
  dissolved_why_ = std::move(reason);
}

}  // namespace antdt::trainer
