// Which records made which step: what the slots of every step said, kept until
// the job daemon has it. Pure.
//
// Each member keeps it, so that it survives any of them: rank 0 tells it with its
// progress, and who holds the state tells it before the next generation settles.
// Steps alike are one run, so its size follows changes of plan and records that
// came late; what nobody acknowledges is bounded, and then the oldest is forgotten.
#pragma once

#include <cstdint>
#include <span>

#include "core/ids.h"
#include "core/wire/membership_messages.h"

namespace antdt::worker {

class StepLog {
 public:
  StepLog() = default;
  // One that another member sent along with the training state.
  explicit StepLog(wire::StepHistory history);

  // Steps from now on are of `generation`; those of earlier ones are forgotten.
  void begin(Generation generation);
  // `step` completed. By rank: where the members stand after it, and how many
  // records each trained in it.
  void add(Step step, std::uint64_t phase, std::span<const std::uint64_t> places,
           std::span<const std::uint64_t> records);
  // Steps up to `step` are recorded. Runs that go on behind it stay whole.
  void forget(Step step);

  // What is to be told; runs that were told before may have grown.
  [[nodiscard]] const wire::StepHistory& history() const { return history_; }

 private:
  void bound();
  wire::StepHistory history_;
  std::size_t numbers_ = 0;  // see StepHistory::kMaxNumbers
};

}  // namespace antdt::worker
