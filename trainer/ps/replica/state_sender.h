// Sends one image of a server, piece by piece, to the process that becomes its backup.
//
//   made by the shell --piece()--> under way --taken()--> forgotten
//
// What the sender wants of the shell:
//
//   kWants ──asks() is true──> kAsked ──piece()──> kWants
//                                └──piece(), the last one──> kAllMade
//
// The number of unacknowledged pieces is bounded. The shell makes a piece when this machine asks
// for it, so an image of any size needs a bounded amount of memory.
#pragma once

#include <cstdint>
#include <deque>

#include "core/wire/servers/ps_messages.h"
#include "trainer/ps/replica/state_copy.h"

namespace antdt::ps {

class StateSender {
 public:
  static constexpr std::size_t kUnderWay = 16;

  // Sends image number `image`, made in view `view`, of the state after event `number`.
  StateSender(std::uint64_t view, std::uint64_t image, std::uint64_t number)
      : view_(view), image_(image), number_(number) {}

  [[nodiscard]] std::uint64_t image() const { return image_; }
  [[nodiscard]] std::uint64_t number() const { return number_; }
  // Whether the shell should make the next piece now; true once for each piece.
  [[nodiscard]] bool asks();
  // The piece that the shell made because asks() was true; returns the message to send.
  [[nodiscard]] const wire::PsImage& piece(StatePiece made);
  // How many pieces the backup has received.
  void taken(std::uint64_t pieces);
  [[nodiscard]] bool all_made() const { return making_ == Making::kAllMade; }
  // Pieces to send again: the unacknowledged ones, if none was acknowledged since the last call.
  [[nodiscard]] std::deque<wire::PsImage> look();

 private:
  enum class Making : std::uint8_t { kWants, kAsked, kAllMade };

  std::uint64_t view_, image_, number_;
  std::uint64_t made_ = 0;
  Making making_ = Making::kWants;
  std::deque<wire::PsImage> under_way_;  // numbers without gaps
  std::uint64_t taken_ = 0;
  std::uint64_t taken_before_ = 0;  // its value at the last call of look()
};

}  // namespace antdt::ps
