// The pieces of one image of a server, on their way to the process that is to be its backup.
//
//   made by the shell --piece()--> under way --taken()--> forgotten
//
// A bounded number of them is under way; the shell makes the next one when it is asked
// for it, so an image of any size takes a bounded part of memory here.
#pragma once

#include <cstdint>
#include <deque>

#include "core/wire/ps_messages.h"
#include "trainer/ps/state_copy.h"

namespace antdt::ps {

class StateSender {
 public:
  static constexpr std::size_t kUnderWay = 16;

  // Image `image` of `view`, of the state after event `number`.
  StateSender(std::uint64_t view, std::uint64_t image, std::uint64_t number)
      : view_(view), image_(image), number_(number) {}

  [[nodiscard]] std::uint64_t image() const { return image_; }
  [[nodiscard]] std::uint64_t number() const { return number_; }
  // True once for each piece that the shell is to make.
  [[nodiscard]] bool asks();
  // The one that it has made, as it is to be said. It was asked for.
  [[nodiscard]] const wire::PsImage& piece(StatePiece made);
  // So many are there.
  void taken(std::uint64_t pieces);
  [[nodiscard]] bool all_made() const { return last_; }
  // What is lost: under way, and nothing was taken since the last look.
  [[nodiscard]] std::deque<wire::PsImage> look();

 private:
  std::uint64_t view_, image_, number_;
  std::uint64_t made_ = 0;
  bool asked_ = false;
  bool last_ = false;
  std::deque<wire::PsImage> under_way_;  // in a row
  std::uint64_t taken_ = 0;
  std::uint64_t taken_before_ = 0;  // at the last look
};

}  // namespace antdt::ps
