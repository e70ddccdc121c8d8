#include "trainer/nccl/communicator_machine.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "trainer/nccl/faults.h"

namespace antdt::nccl::communicator {

namespace {

// A sum of a small bucket takes some 20 us; a poll costs about one.
constexpr Duration kShortestPause = std::chrono::microseconds(10);
constexpr Duration kLongestPause = std::chrono::milliseconds(1);
// While nobody waits, errors of the network are looked for this often.
constexpr Duration kIdlePause = std::chrono::milliseconds(100);

}  // namespace

Patience patience_in(Duration hang_after) {
  Patience patience;
  patience.forming = std::min(patience.forming, hang_after / 2);
  patience.aborting = std::max(patience.aborting, hang_after / 2);
  return patience;
}

void CommunicatorMachine::step(const Input& input, MonoTime now, Effects& out) {
  std::visit([&](const auto& event) { on(event, now, out); }, input);
  check_invariants();
}

MonoTime CommunicatorMachine::next() const {
  const bool polls = !in_call_ && !ended() && state_ != State::kNew;
  return polls ? std::min(next_poll_, deadline()) : deadline();
}

MonoTime CommunicatorMachine::deadline() const {
  if (ended() || state_ == State::kNew) return MonoTime::max();
  if (end_) return give_up_;
  return state_ == State::kReady ? MonoTime::max() : began_ + patience();
}

// ------------------------------------------------------------------- what callers want

// from: new, to: forming.
void CommunicatorMachine::on(const FormWanted&, MonoTime now, Effects& out) {
  if (!takes(State::kNew, now, out)) return;
  begin(State::kForming, "forming the communicator", Form{}, now, out);
}

// from: ready, to: enqueuing.
void CommunicatorMachine::on(const EnqueueWanted& input, MonoTime now, Effects& out) {
  if (!takes(State::kReady, now, out)) return;
  begin(State::kEnqueuing, input.what, Enqueue{}, now, out);
}

// from: ready, to: finishing; or nothing was enqueued, and all of it is done.
void CommunicatorMachine::on(const FinishWanted&, MonoTime now, Effects& out) {
  if (!takes(State::kReady, now, out)) return;
  if (!has_work_) return answer({}, out);
  begin(State::kFinishing, "waiting for the device", MarkWork{}, now, out);
}

// from: ready, to: closing. An orderly end lets what other members still receive arrive.
void CommunicatorMachine::on(const CloseWanted&, MonoTime now, Effects& out) {
  if (state_ == State::kNew) {
    caller_waits_ = true;
    return over(State::kOver, out);
  }
  if (ended()) {
    caller_waits_ = true;
    return answer({}, out);
  }
  if (end_) {  // it is being aborted already
    caller_waits_ = true;
    return wait_late(now);
  }
  if (!takes(State::kReady, now, out)) return;
  begin(State::kClosing, "closing the communicator", Finalize{}, now, out);
}

void CommunicatorMachine::on(const AbortWanted&, MonoTime now, Effects& out) {
  if (ended() || end_) return;
  Error why{ErrorKind::kAborted, "the communicator of NCCL was aborted"};
  if (state_ == State::kNew) {
    end_ = std::move(why);
    return over(State::kOver, out);
  }
  end_for(std::move(why), now, out);
}

// ------------------------------------------------------------------- how calls returned

void CommunicatorMachine::on(const Returned& input, MonoTime now, Effects& out) {
  call_returned();
  if (ended()) return;
  const bool is_good = input.code == Code::kSuccess || input.code == Code::kInProgress;
  // Before the abort that came meanwhile: the device has the work all the same.
  if (state_ == State::kEnqueuing && is_good) has_work_ = true;
  if (end_) return abort_now(out);
  if (!is_good) return end_for(fault(input.code, what_, input.text), now, out);
  pause_ = kShortestPause;
  call(Poll{}, out);
}

void CommunicatorMachine::on(const Polled& input, MonoTime now, Effects& out) {
  call_returned();
  if (ended()) return;
  if (end_) return abort_now(out);
  if (input.code == Code::kInProgress) return poll_again(now);
  if (input.code != Code::kSuccess) return end_for(fault(input.code, what_, input.text), now, out);
  if (first_) return call(*std::exchange(first_, std::nullopt), out);
  switch (state_) {
    case State::kForming:
    case State::kEnqueuing:
      state_ = State::kReady;
      next_poll_ = now + kIdlePause;
      return answer({}, out);
    case State::kFinishing:
      return call(QueryWork{}, out);
    case State::kClosing:
      return call(Destroy{}, out);
    default:
      next_poll_ = now + kIdlePause;
  }
}

// from: finishing, to: ready. From: draining, to: over: the device writes to no memory any more.
void CommunicatorMachine::on(const WorkQueried& input, MonoTime now, Effects& out) {
  call_returned();
  if (ended()) return;
  if (state_ == State::kDraining) {
    // A device that reports an error runs nothing any more.
    if (input.state == WorkState::kRunning) return poll_again(now);
    has_work_ = false;
    return over(State::kOver, out);
  }
  if (end_) return abort_now(out);
  if (input.state == WorkState::kRunning) return poll_again(now);
  if (input.state == WorkState::kFailed) {
    return end_for({ErrorKind::kInternal,
                    fmt::format("{}: {}: this worker has to be started again", what_, input.text)},
                   now, out);
  }
  has_work_ = false;
  state_ = State::kReady;
  next_poll_ = now + kIdlePause;
  answer({}, out);
}

void CommunicatorMachine::on(const Destroyed&, MonoTime, Effects& out) {
  call_returned();
  if (ended()) return;
  over(State::kOver, out);
}

// from: aborting, to: draining, over, or stuck.
void CommunicatorMachine::on(const Aborted& input, MonoTime, Effects& out) {
  call_returned();
  if (ended()) return;
  if (input.code != Code::kSuccess && input.code != Code::kInProgress) {
    end_ = Error{ErrorKind::kInternal,
                 fmt::format("{}; and then {}", end_->message,
                             fault(input.code, "aborting the communicator", "").message)};
    return over(State::kStuck, out);
  }
  if (!has_work_) return over(State::kOver, out);
  state_ = State::kDraining;
  pause_ = kShortestPause;
  call(MarkWork{}, out);
}

void CommunicatorMachine::on(const TimePassed&, MonoTime now, Effects& out) {
  if (ended() || state_ == State::kNew) return;
  if (end_) {
    if (now >= give_up_) {
      end_ = Error{ErrorKind::kInternal,
                   fmt::format("{}; NCCL did not end {} within {:.0f} s after that, so memory of "
                               "the device may still be written: this worker has to be started "
                               "again",
                               end_->message, what_, to_seconds(now - end_wanted_))};
      return over(State::kStuck, out);
    }
  } else if (state_ != State::kReady && now >= began_ + patience()) {
    return end_for({ErrorKind::kIo,
                    fmt::format("{} took longer than {:.0f} s: a member may hang, or the network "
                                "between members does not let NCCL's connections through{}",
                                what_, to_seconds(patience()),
                                state_ == State::kForming
                                    ? " (half of failure.hang_after, and at most 2 minutes, is "
                                      "what it may take)"
                                    : "")},
                   now, out);
  }
  if (in_call_ || now < next_poll_) return;
  if (state_ == State::kDraining) return call(QueryWork{}, out);
  call(Poll{}, out);
}

// ------------------------------------------------------------------- transitions

bool CommunicatorMachine::takes(State needed, MonoTime now, Effects& out) {
  ANTDT_CHECK(!caller_waits_, "two callers wait for one communicator, in state {}",
              static_cast<int>(state_));
  caller_waits_ = true;
  if (end_ && ended()) {
    answer(tl::unexpected(*end_), out);
    return false;
  }
  if (end_) {  // it is answered when it has ended
    wait_late(now);
    return false;
  }
  if (state_ == needed) return true;
  answer(fail(ErrorKind::kInternal, "the communicator of NCCL is not {}",
              needed == State::kNew ? "new" : "formed, or was closed"),
         out);
  return false;
}

void CommunicatorMachine::begin(State state, std::string what, Effect first, MonoTime now,
                                Effects& out) {
  state_ = state;
  what_ = std::move(what);
  began_ = now;
  next_poll_ = now;
  pause_ = kShortestPause;
  if (in_call_) {
    first_ = std::move(first);
  } else {
    call(std::move(first), out);
  }
}

void CommunicatorMachine::call(Effect effect, Effects& out) {
  in_call_ = true;
  out.emplace_back(std::move(effect));
}

void CommunicatorMachine::call_returned() {
  ANTDT_CHECK(in_call_, "a call returned that was not made, in state {}", static_cast<int>(state_));
  in_call_ = false;
}

void CommunicatorMachine::poll_again(MonoTime now) {
  next_poll_ = now + pause_;
  pause_ = std::min(2 * pause_, kLongestPause);
}

void CommunicatorMachine::end_for(Error why, MonoTime now, Effects& out) {
  end_ = std::move(why);
  end_wanted_ = now;
  give_up_ = now + patience_.aborting;
  if (!in_call_) abort_now(out);
}

void CommunicatorMachine::wait_late(MonoTime now) {
  give_up_ = std::max(give_up_, now + patience_.late_caller);
}

// from: any that has not ended, to: aborting.
void CommunicatorMachine::abort_now(Effects& out) {
  state_ = State::kAborting;
  first_.reset();
  call(Abort{}, out);
}

void CommunicatorMachine::over(State state, Effects& out) {
  state_ = state;
  if (caller_waits_) answer(end_ ? Status(tl::unexpected(*end_)) : Status{}, out);
}

void CommunicatorMachine::answer(Status status, Effects& out) {
  caller_waits_ = false;
  out.emplace_back(Answer{std::move(status)});
}

Duration CommunicatorMachine::patience() const {
  if (state_ == State::kForming) return patience_.forming;
  return state_ == State::kClosing ? patience_.closing : patience_.operation;
}

void CommunicatorMachine::check_invariants() const {
  const auto state = static_cast<int>(state_);
  ANTDT_CHECK(!ended() || !caller_waits_, "a caller waits for a communicator in state {}", state);
  ANTDT_CHECK(state_ != State::kDraining || (end_ && has_work_), "nothing is to be drained");
  ANTDT_CHECK(state_ != State::kAborting || (end_ && in_call_), "an abort is not under way");
  ANTDT_CHECK(!caller_waits_ || state_ != State::kReady || end_, "a caller waits for nothing");
  ANTDT_CHECK(state_ != State::kStuck || end_, "a communicator is stuck without a reason");
}

}  // namespace antdt::nccl::communicator
