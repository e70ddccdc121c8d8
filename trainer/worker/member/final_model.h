// How the trained model is kept: one member writes it, whatever the interval of checkpoints is.
// Pure.
//
// Where rows are on servers, these write theirs after the same step, if the job daemon has ordered
// that: then the number is that of the order, which is awaited.
//
//   nothing ──(finish, this member writes)──> awaiting writer ──(no checkpoint is written)──>
//   writing
//   writing ──(the result is known)──> written ──(it could not be written, or not stored)──>
//   awaiting writer
//   any ──(finish, another member writes; a new Form)──> nothing
//
// All members stay until the job daemon has the model (and sends Leave). If the member that writes
// it is lost, or cannot write it, another member does. The result is reported again and again,
// because the report may be lost, and then all would wait forever. A failure is reported, and the
// model is written again after the same time, if there is room then. If the job daemon could not
// store what was written, it has removed the files: it says so with another try of "finish".
#pragma once

#include <cstdint>
#include <optional>

#include "core/clock.h"
#include "core/wire/training_messages.h"
#include "trainer/worker/member/effects.h"
#include "trainer/worker/member/member_state.h"

namespace antdt::worker {

class FinalModel {
 public:
  enum class State : std::uint8_t { kNothing, kAwaitingWriter, kWriting, kWritten };
  static constexpr Duration kRepeatAfter = std::chrono::seconds(2);

  explicit FinalModel(MemberState& member) : member_(member) {}

  // PhaseStart "finish": this member must write the model, perhaps once more, or another one.
  void finish(const wire::PhaseStart& start, Effects& out);
  void saved(const wire::CheckpointWritten& written, MonoTime now, Effects& out);
  void time_passed(MonoTime now, Effects& out);
  // The job may have ordered a checkpoint.
  void heard(Effects& out);
  // Another generation is formed.
  void forget() { state_ = State::kNothing; }

  // When time_passed() has something to do.
  [[nodiscard]] std::optional<MonoTime> deadline() const {
    return state_ == State::kWritten ? std::optional(said_ + kRepeatAfter) : std::nullopt;
  }
  [[nodiscard]] State state() const { return state_; }

 private:
  // It was written, and could not be stored.
  [[nodiscard]] bool must_write_again(std::uint64_t tries) const;
  void write(Effects& out);
  // The number under which it is written; 0: it is not known yet.
  [[nodiscard]] std::uint64_t number() const;

  MemberState& member_;
  State state_ = State::kNothing;
  std::uint64_t number_ = 0;
  std::uint64_t phase_ = 0;
  std::uint64_t tries_ = 0;  // of "finish", heard last
  wire::CheckpointWritten written_;
  MonoTime said_{};
};

}  // namespace antdt::worker
