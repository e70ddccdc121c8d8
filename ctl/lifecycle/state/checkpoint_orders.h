// The checkpoints that were ordered, and their results. Each has a number, one is waited for at a
// time, and the answer to an order may come after a later order was given.
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
  // The last reported error; empty if the last checkpoint was stored.
  [[nodiscard]] const std::string& error() const { return error_; }

  // Training begins: the first checkpoint is due after the usual interval.
  void begin(MonoTime now) { ordered_at_ = now; }
  // Returns the number of a new order.
  std::uint64_t order(MonoTime now);
  // A member writes it from now on, and finishes it whatever becomes of its generation.
  void begun(std::uint64_t number) { being_written_ = number; }
  void moved(MonoTime now) { moved_at_ = now; }
  void give_up() { image_.pending = false; }

  // Whether the model, which is written last, was ordered later than this one, or begun later.
  // Servers write the model only when they are ordered to; members do it by themselves.
  [[nodiscard]] bool precedes_model(std::uint64_t number, bool with_servers) const {
    const bool was_begun = being_written_ != 0 && number == being_written_;
    return was_begun || (with_servers && number < image_.ordered);
  }

  struct Answer {
    bool was_begun = false;
    bool is_earlier = false;  // a later one was ordered meanwhile
  };
  // It was stored or has failed.
  [[nodiscard]] Answer answered(std::uint64_t number);
  void stored(std::uint64_t number);
  // True if this error was not reported before.
  [[nodiscard]] bool failed(const std::string& error);

  // Whether the pending checkpoint is lost with the generation, because nobody has begun to write
  // it.
  [[nodiscard]] bool ends_with_generation() const {
    return image_.pending && being_written_ != image_.ordered;
  }
  [[nodiscard]] Duration since_order(MonoTime now) const { return now - ordered_at_; }
  // Time since the last one was ordered, or since bytes of one were last written or copied.
  [[nodiscard]] Duration quiet_for(MonoTime now) const;
  // Whether nobody has reported for long that the pending one is written: the order may be lost.
  [[nodiscard]] bool seems_lost(MonoTime now) const;

 private:
  Image image_;
  MonoTime ordered_at_{};
  MonoTime moved_at_{};
  std::uint64_t being_written_ = 0;  // 0: none
  std::string error_;
};

}  // namespace antdt::ctl
