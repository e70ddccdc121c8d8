// Which generations are over, for code that a worker is blocked in. Pure.
#pragma once

#include <algorithm>

#include "core/ids.h"

namespace antdt::worker {

class GenerationEnd {
 public:
  // From here on everything belongs to this generation, which may be over already.
  void begin(Generation generation) {
    generation_ = generation;
    over_ = ended_ >= generation;
  }
  // Generation `generation` and those before it are over.
  void end(Generation generation) {
    ended_ = std::max(ended_, generation);
    over_ = over_ || generation >= generation_;
  }
  // The generation that was begun last is over.
  void end() { end(generation_); }
  // Whether the generation that was begun last is over.
  [[nodiscard]] bool over() const { return over_; }

 private:
  Generation generation_;
  Generation ended_;
  bool over_ = false;
};

}  // namespace antdt::worker
