#include "trainer/worker/member/final_model.h"

#include <algorithm>

namespace antdt::worker {

// From: nothing; written, and it could not be stored. To: awaiting writer, writing; if another
// member writes it, from any to nothing.
void FinalModel::finish(const wire::PhaseStart& start, Effects& out) {
  if (member_.rank != start.writer) {
    if (state_ != State::kNothing) out.emplace_back(GiveUpSaving{"another member writes it"});
    state_ = State::kNothing;
    return;
  }
  const bool again = must_write_again(start.tries);
  tries_ = start.tries;
  if (state_ != State::kNothing && !again) return;
  number_ = member_.stages_rows
                ? 0
                : std::max(member_.heard.job.checkpoint, member_.training.checkpoint) + 1;
  phase_ = start.phase;
  state_ = State::kAwaitingWriter;
  write(out);
}

// What this member could not write, it writes again by itself; and where rows are on servers, with
// the next order. While it writes, the try that failed is an earlier one.
bool FinalModel::must_write_again(std::uint64_t tries) const {
  return tries > tries_ && state_ == State::kWritten && written_.error.empty() &&
         !member_.stages_rows;
}

// From: awaiting writer. To: writing, once a checkpoint that is still being written is done.
void FinalModel::write(Effects& out) {
  if (member_.saving != Saving::kNothing) return;
  const std::uint64_t number = this->number();
  if (number == 0) return;
  number_ = number;
  if (member_.stages_rows) member_.training.cut = number_;
  state_ = State::kWriting;
  member_.saving = Saving::kFinalModel;
  wire::CheckpointWritten about;
  about.number = number_;
  about.phase = phase_;
  about.step = member_.training.step;
  out.emplace_back(SpendTime{TimeUse::kCheckpoint});
  out.emplace_back(Save{std::move(about), Save::Kind::kFinalModel});
  out.emplace_back(SpendTime{member_.resting});
}

std::uint64_t FinalModel::number() const {
  if (!member_.stages_rows) return number_;
  const std::uint64_t ordered = member_.heard.job.checkpoint;
  // One that could not be written is ordered anew.
  return ordered > std::max(member_.training.checkpoint, number_) ? ordered : 0;
}

// From: writing. To: written. From: awaiting writer. To: writing.
void FinalModel::saved(const wire::CheckpointWritten& written, MonoTime now, Effects& out) {
  if (state_ == State::kAwaitingWriter) return write(out);
  if (state_ != State::kWriting) return;
  state_ = State::kWritten;
  written_ = written;
  said_ = now;
  out.emplace_back(Send{written_});
}

// Where rows are on servers, a checkpoint is ordered, anew if it could not be written.
// From: awaiting writer; written, under the number of an earlier order. To: see write.
void FinalModel::heard(Effects& out) {
  if (!member_.stages_rows) return;
  if (state_ != State::kAwaitingWriter && state_ != State::kWritten) return;
  if (number() == 0) return;
  state_ = State::kAwaitingWriter;
  write(out);
}

// From: written. To: written, and it is reported again; awaiting writer, if it could not be
// written.
void FinalModel::time_passed(MonoTime now, Effects& out) {
  if (state_ != State::kWritten || now - said_ < kRepeatAfter) return;
  if (written_.error.empty() || member_.stages_rows) {
    said_ = now;
    out.emplace_back(Send{written_});
    return;
  }
  state_ = State::kAwaitingWriter;
  write(out);
}

}  // namespace antdt::worker
