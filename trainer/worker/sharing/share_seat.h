// A member's side of the steps that it shares: what it offers, asks and computes. A machine without
// effects of its own: each call returns what comes next. Its desk is share_desk.h.
//
//   begin ──> computing ──ready──> asking ──hear──> computing ... ──ready──> done
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "trainer/worker/sharing/share_desk.h"

namespace antdt::worker::sharing {

class ShareSeat {
 public:
  // `member`: its index in the group.
  ShareSeat(std::uint32_t member, const ShareRules& rules) : rules_(rules), first_(rules.first) {
    offer_.member = member;
  }

  // Begins a step with a part of so many records. What it returns goes to the desk, and
  // first_run() is to be computed meanwhile. `most`: the largest run that this member can compute;
  // 0: any.
  const Offered& begin(Step step, std::uint32_t records, std::uint32_t most) {
    offer_.step = step;
    offer_.records = records;
    offer_.first = antdt::worker::sharing::first_run(first_, records, most, rules_);
    offer_.most = most;
    number_ = answered_ = 0;
    last_ = false;
    return offer_;
  }
  [[nodiscard]] Run first_run() const { return {offer_.member, 0, offer_.first}; }

  // All that it was handed is computed. The ask that goes to the desk; empty: nothing is left, and
  // the member goes on to the sum.
  [[nodiscard]] std::optional<Asked> ready() {
    if (last_) return std::nullopt;
    return Asked{offer_, ++number_};
  }
  // The run to compute, perhaps an empty one, before ready() is called again. Empty: it is no
  // answer to the ask that waits for one.
  [[nodiscard]] std::optional<Run> hear(const Answer& answer) {
    if (answer.step != offer_.step || answer.number != number_ || answered_ == number_) return {};
    answered_ = number_;
    first_ = answer.first;
    last_ = answer.last || !answer.run;
    return answer.run.value_or(Run{});
  }
  [[nodiscard]] const Offered& offer() const { return offer_; }
  [[nodiscard]] bool waits() const { return answered_ < number_; }

 private:
  ShareRules rules_;
  double first_ = 0;  // with which part of its records it begins a step
  Offered offer_;
  std::uint32_t number_ = 0;    // of its newest ask
  std::uint32_t answered_ = 0;  // the newest ask that was answered
  bool last_ = false;           // nothing is left behind what it was handed
};

}  // namespace antdt::worker::sharing
