#include "trainer/ps/replica/state_sender.h"

#include <algorithm>
#include <utility>

namespace antdt::ps {

bool StateSender::asks() {
  if (asked_ || last_ || under_way_.size() >= kUnderWay) return false;
  return asked_ = true;
}

const wire::PsImage& StateSender::piece(StatePiece made) {
  asked_ = false;
  last_ = made.last;
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
