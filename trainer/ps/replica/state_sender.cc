#include "trainer/ps/replica/state_sender.h"

#include <algorithm>
#include <utility>

namespace antdt::ps {

// From: kWants, if there is room. To: kAsked.
bool StateSender::asks() {
  if (making_ != Making::kWants || under_way_.size() >= kUnderWay) return false;
  making_ = Making::kAsked;
  return true;
}

// From: kAsked. To: kWants, or kAllMade with the last piece.
const wire::PsImage& StateSender::piece(StatePiece made) {
  making_ = made.last ? Making::kAllMade : Making::kWants;
  return under_way_.emplace_back(
      wire::PsImage{view_, image_, number_, ++made_, made.part, std::move(made.bytes), made.last});
}

void StateSender::taken(std::uint64_t pieces) {
  if (pieces > made_) return;
  taken_ = std::max(taken_, pieces);
  while (!under_way_.empty() && under_way_.front().piece <= taken_) under_way_.pop_front();
}

std::deque<wire::PsImage> StateSender::look() {
  if (std::exchange(taken_before_, taken_) != taken_) return {};
  return under_way_;
}

}  // namespace antdt::ps
