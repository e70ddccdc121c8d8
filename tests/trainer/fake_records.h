// The records of one phase of a FakeJob: they are granted in order, and those that a generation did
// not train are granted again.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "core/ids.h"
#include "core/wire/shard_messages.h"

namespace antdt::trainer {

class FakeRecords {
 public:
  explicit FakeRecords(std::uint64_t records = 0) : records_(records) {}

  [[nodiscard]] std::uint64_t records() const { return records_; }
  [[nodiscard]] std::uint64_t committed() const { return committed_; }
  [[nodiscard]] bool complete() const { return committed_ == records_; }
  [[nodiscard]] bool all_handed_out() const { return cursor_ == records_ && returned_.empty(); }

  // Returns how many records that commits.
  std::uint64_t commit(WorkerId worker, std::uint64_t place) {
    Hand& hand = hands_[worker];
    if (place <= hand.place) return 0;
    const std::uint64_t more = place - hand.place;
    committed_ += more;
    hand.place = place;
    return more;
  }
  [[nodiscard]] std::vector<wire::Piece> hand_out(WorkerId worker, std::uint64_t want) {
    std::vector<wire::Piece> pieces;
    while (want > 0 && !all_handed_out()) {
      pieces.push_back(next_piece(want));
      want -= pieces.back().to - pieces.back().from;
      hands_[worker].granted.push_back(pieces.back());
    }
    return pieces;
  }
  // The records that the previous generation did not train must be trained.
  void give_back() {
    for (auto& [worker, hand] : hands_) {
      std::uint64_t done = hand.place;
      for (wire::Piece piece : hand.granted) {
        const std::uint64_t used = std::min(done, piece.to - piece.from);
        done -= used;
        piece.from += used;
        if (piece.from < piece.to) returned_.push_back(piece);
      }
      EXPECT_EQ(done, 0U) << to_string(worker) << " says that it did more than it was given";
    }
    hands_.clear();
  }

 private:
  struct Hand {
    std::uint64_t place = 0;           // in the phase and the generation
    std::vector<wire::Piece> granted;  // likewise
  };
  // What was given back comes first.
  [[nodiscard]] wire::Piece next_piece(std::uint64_t want) {
    if (returned_.empty()) {
      const std::uint64_t from = cursor_;
      cursor_ = std::min(records_, cursor_ + want);
      return {0, 0, records_, from, cursor_, 0, false};
    }
    wire::Piece piece = returned_.front();
    piece.to = std::min(piece.to, piece.from + want);
    returned_.front().from = piece.to;
    if (returned_.front().from == returned_.front().to) returned_.pop_front();
    return piece;
  }

  std::uint64_t records_;
  std::uint64_t cursor_ = 0, committed_ = 0;
  std::map<WorkerId, Hand> hands_;
  std::deque<wire::Piece> returned_;
};

}  // namespace antdt::trainer
