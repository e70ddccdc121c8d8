// The checkpoints of a job as far as they were ordered, and what became of them: each has a number,
// one is waited for at a time, and the answer to an order may come when a later one was given.
//
//   none ──order()──> pending ──begun()──> being written ──answered()──> stored, or an error
//                        └──give_up(): nobody will begin it any more──> none
//
// Durable: the numbers, and whether one is pending.
#pragma once

#include <cstdint>
#include <string>

#include "core/clock.h"

namespace antdt::ctl {

class CheckpointOrders {
 public:
  struct Image {
    std::uint64_t ordered = 0;
    std::uint64_t stored = 0;
    bool pending = false;
  };
  [[nodiscard]] const Image& image() const { return image_; }
  void restore(const Image& image) { image_ = image; }

  [[nodiscard]] std::uint64_t ordered() const { return image_.ordered; }
  [[nodiscard]] bool any_stored() const { return image_.stored > 0; }
  [[nodiscard]] bool pending() const { return image_.pending; }
  [[nodiscard]] bool being_written() const { return being_written_ != 0; }
  // Said last; empty: the last one was stored.
  [[nodiscard]] const std::string& error() const { return error_; }

  // Training begins: the first one is due after as long as every other.
  void begin(MonoTime now) { ordered_at_ = now; }
  // The number of a new one.
  std::uint64_t order(MonoTime now);
  // A member writes it from now on, whatever becomes of its generation.
  void begun(std::uint64_t number) { being_written_ = number; }
  void moved(MonoTime now) { moved_at_ = now; }
  void give_up() { image_.pending = false; }

  struct Answer {
    bool was_begun = false;
    bool is_earlier = false;  // a later one was ordered meanwhile
  };
  // It was stored or has failed.
  [[nodiscard]] Answer answered(std::uint64_t number);
  void stored(std::uint64_t number);
  // True: that was not said before.
  [[nodiscard]] bool failed(const std::string& error);

  // What is pending is lost with the generation: nobody has begun to write it.
  [[nodiscard]] bool ends_with_generation() const {
    return image_.pending && being_written_ != image_.ordered;
  }
  [[nodiscard]] Duration since_order(MonoTime now) const { return now - ordered_at_; }
  // Since the last one was ordered, or bytes of one were written or copied.
  [[nodiscard]] Duration quiet_for(MonoTime now) const;
  // Nobody has said that the pending one is written: the order may be lost.
  [[nodiscard]] bool seems_lost(MonoTime now) const;

 private:
  Image image_;
  MonoTime ordered_at_{};
  MonoTime moved_at_{};
  std::uint64_t being_written_ = 0;  // 0: none
  std::string error_;
};

}  // namespace antdt::ctl
