#include "ctl/control/program_watch.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/overloaded.h"

namespace antdt::ctl {

ProgramWatch::Wish ProgramWatch::fail(const std::string& why, MonoTime now) {
  Wish wish;
  if (state_ == State::kWaiting) return wish;
  wish.end = true;
  state_ = State::kWaiting;
  next_start_ = now + wait_;
  trouble_ = fmt::format("the program {}; it is started again {:.0f} s after that", why,
                         to_seconds(wait_));
  if (why != said_) wish.news = trouble_;
  said_ = why;
  wait_ = std::min(2 * wait_, kLongestWait);
  return wish;
}

ProgramWatch::Wish ProgramWatch::step(const Event& event, MonoTime now) {
  return std::visit(
      Overloaded{
          [&](const Tick&) {
            Wish wish;
            if (state_ == State::kWaiting && now >= next_start_) {
              state_ = State::kStarting;
              answers_ = 0;
              wish.start = true;
            }
            const Duration patience = answers_ == 0 ? kStartPatience : kPatience;
            if (state_ == State::kAsked && now - asked_at_ >= patience) {
              return fail(fmt::format("has not answered for {:.0f} s", to_seconds(patience)), now);
            }
            return wish;
          },
          [&](const Started&) {
            if (state_ == State::kStarting) state_ = State::kReady;
            return Wish{};
          },
          [&](const Asked&) {
            state_ = State::kAsked;
            asked_at_ = now;
            return Wish{};
          },
          [&](const Answered&) {
            Wish wish;
            if (state_ != State::kAsked) return wish;
            state_ = State::kReady;
            if (++answers_ == kReliable) {
              wait_ = kFirstWait;
              if (!said_.empty()) wish.news = "the program answers again";
              said_.clear();
            }
            trouble_.clear();
            return wish;
          },
          [&](const Failed& e) { return fail(e.why, now); },
      },
      event);
}

}  // namespace antdt::ctl
