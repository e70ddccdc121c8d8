// The stages of a job's end, and how long each is waited for. While a last checkpoint is written,
// each byte of it that moves extends its deadline.
//
//   kNotYet ──await_checkpoint()──> kCheckpointing ──checkpoint_stored()──> kLeaving
//      └──everybody_leaves()────────────────┴─────────────────────────────────^
//
//   any ──kill()──> kKilled, which everybody_leaves() leaves as it is
//   any ──end()──> kOver
//
// Nothing here is durable: an ending that an earlier incarnation began is begun again.
#pragma once

#include <cstdint>

#include "core/clock.h"

namespace antdt::ctl {

class Ending {
 public:
  enum class Stage : std::uint8_t { kNotYet, kCheckpointing, kLeaving, kKilled, kOver };

  [[nodiscard]] Stage stage() const { return stage_; }
  // Whether the processes are asked to leave, or are about to be.
  [[nodiscard]] bool has_begun() const { return stage_ != Stage::kNotYet; }
  [[nodiscard]] bool awaits_checkpoint() const { return stage_ == Stage::kCheckpointing; }
  [[nodiscard]] bool is_late(MonoTime now) const { return has_begun() && now >= deadline_; }
  [[nodiscard]] bool is_over() const { return stage_ == Stage::kOver; }

  // From: any. To: kCheckpointing. The workers that train write a checkpoint first.
  void await_checkpoint(Duration grace, MonoTime now);
  // In kCheckpointing: more bytes of the checkpoint were written.
  void checkpoint_moved(MonoTime now);
  // From: kCheckpointing. To: kLeaving. The checkpoint is in place, and all processes are asked to
  // leave.
  void checkpoint_stored(MonoTime now);
  // From: any but kKilled. To: kLeaving. Processes that still run after `grace` are killed.
  void everybody_leaves(Duration grace, MonoTime now);
  // From: any. To: kKilled. False if all were killed before and some process has not ended.
  [[nodiscard]] bool kill();
  // From: any. To: kOver.
  void end() { stage_ = Stage::kOver; }

 private:
  Stage stage_ = Stage::kNotYet;
  MonoTime deadline_{};
};

}  // namespace antdt::ctl
