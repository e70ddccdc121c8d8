// The checkpoint that the job orders while its model stands still: while the members evaluate, and
// after that until the next phase. No step follows at which they could agree on it, and all have
// the same model, so the first one writes it alone. Pure.
//
// To the others the order stays open: in the next phase of training, if there is one, all carry it
// out together, at a later step.
#pragma once

#include <cstdint>
#include <optional>

#include "core/wire/training_messages.h"
#include "trainer/worker/member/effects.h"
#include "trainer/worker/member/member_state.h"

namespace antdt::worker {

class StandingModel {
 public:
  explicit StandingModel(MemberState& member) : member_(member) {}

  // A phase of evaluation begins.
  void begin(const wire::PhaseStart& start);
  // The model does not stand still any more, or the generation is over.
  void end() { phase_.reset(); }
  // Between two batches, and while this member waits for an order.
  void look(Effects& out);
  // Whether look() has something to do.
  [[nodiscard]] bool due() const;

 private:
  MemberState& member_;
  std::optional<std::uint64_t> phase_;
  std::uint64_t written_ = 0;  // number of the newest order that it has carried out
};

}  // namespace antdt::worker
