#include "ctl/control/program_watch.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/check.h"

namespace antdt::ctl::program {

void ProgramWatch::step(const Input& input, MonoTime now, Effects& out) {
  std::visit([&](const auto& i) { on(i, now, out); }, input);
  check_invariants();
}

void ProgramWatch::on(const TimePassed&, MonoTime now, Effects& out) {
  // from: waiting, to: starting, when the pause is over.
  if (state_ == State::kWaiting && now >= next_start_) {
    state_ = State::kStarting;
    answers_ = 0;
    out.emplace_back(StartProgram{});
  }
  // from: asked, to: waiting, when the answer is late.
  const Duration patience = answers_ == 0 ? kStartPatience : kPatience;
  if (state_ == State::kAsked && now - asked_at_ >= patience) {
    const double seconds = to_seconds(patience);
    on(ProgramFailed{fmt::format("has not answered for {:.0f} s", seconds)}, now, out);
  }
}

void ProgramWatch::on(const ProgramStarted&, MonoTime, Effects&) {
  if (state_ == State::kStarting) state_ = State::kReady;
}

void ProgramWatch::on(const ViewShown&, MonoTime now, Effects&) {
  if (state_ != State::kReady) return;
  state_ = State::kAsked;
  asked_at_ = now;
}

void ProgramWatch::on(const DecisionHeard&, MonoTime, Effects& out) {
  if (state_ != State::kAsked) return;
  state_ = State::kReady;
  trouble_.clear();
  if (++answers_ != kReliable) return;
  pause_ = kFirstPause;
  if (!last_failure_.empty()) out.emplace_back(TellOperator{"the program answers again"});
  last_failure_.clear();
}

// from: any but waiting, to: waiting. A program that was ended already cannot fail again.
void ProgramWatch::on(const ProgramFailed& input, MonoTime now, Effects& out) {
  if (state_ == State::kWaiting) return;
  state_ = State::kWaiting;
  next_start_ = now + pause_;
  trouble_ = fmt::format("the program {}; it is started again {:.0f} s after that", input.why,
                         to_seconds(pause_));
  out.emplace_back(EndProgram{});
  if (input.why != last_failure_) out.emplace_back(TellOperator{trouble_});
  last_failure_ = input.why;
  pause_ = std::min(2 * pause_, kLongestPause);
}

void ProgramWatch::check_invariants() const {
  ANTDT_CHECK(pause_ >= kFirstPause && pause_ <= kLongestPause,
              "a failed program is started again after {:.1f} s", to_seconds(pause_));
  ANTDT_CHECK(state_ != State::kWaiting || answers_ == 0 || !trouble_.empty(),
              "a program that answered {} times was ended without a reason", answers_);
}

}  // namespace antdt::ctl::program
