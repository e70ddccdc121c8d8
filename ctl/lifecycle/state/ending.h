// How far the end of a job is, and until when each stage of it is waited for. While a last
// checkpoint is written, each byte of it that moves puts its deadline off.
//
//   kNotYet ──await_checkpoint()──> kCheckpointing ──checkpoint_stored()──> kLeaving
//      └──everybody_leaves()────────────────┴─────────────────────────────────^
//
//   any ──kill()──> kKilled, which everybody_leaves() leaves as it is
//   any ──end()──> kOver
//
// Nothing of it is durable: an ending that an earlier incarnation began begins again.
#pragma once

#include <cstdint>

#include "core/clock.h"

namespace antdt::ctl {

class Ending {
 public:
  enum class Stage : std::uint8_t { kNotYet, kCheckpointing, kLeaving, kKilled, kOver };

  [[nodiscard]] Stage stage() const { return stage_; }
  // Everybody is asked to go, or is about to be.
  [[nodiscard]] bool has_begun() const { return stage_ != Stage::kNotYet; }
  [[nodiscard]] bool awaits_checkpoint() const { return stage_ == Stage::kCheckpointing; }
  [[nodiscard]] bool is_late(MonoTime now) const { return has_begun() && now >= deadline_; }
  [[nodiscard]] bool is_over() const { return stage_ == Stage::kOver; }

  // From: any. To: kCheckpointing. Those who train write a checkpoint first.
  void await_checkpoint(Duration grace, MonoTime now);
  // In kCheckpointing: bytes of it were written.
  void checkpoint_moved(MonoTime now);
  // From: kCheckpointing. To: kLeaving. It is in place, and everybody is asked to leave.
  void checkpoint_stored(MonoTime now);
  // From: any but kKilled. To: kLeaving. What has `grace` is killed after it.
  void everybody_leaves(Duration grace, MonoTime now);
  // From: any. To: kKilled. False: everybody was killed before, and somebody has not ended.
  [[nodiscard]] bool kill();
  // From: any. To: kOver.
  void end() { stage_ = Stage::kOver; }

 private:
  Stage stage_ = Stage::kNotYet;
  MonoTime deadline_{};
};

}  // namespace antdt::ctl
