// Parameters that several threads train at once without locks: Hogwild (Recht, Re, Wright and Niu,
// "Hogwild!: a lock-free approach to parallelizing stochastic gradient descent", NIPS 2011).
//
// Each thread reads the parameters into an array of its own, computes a gradient there, and updates
// the parameters by it. read() and update() touch what is shared by relaxed atomic loads and stores
// of single floats, so there is no data race in the sense of C++. What remains is Hogwild's:
//
//   - What read() returns may contain a part of another thread's update.
//   - update() loads a row and the state of its optimizer, computes, and stores both. If two
//     threads do so with the same row at the same time, one of the two updates of some of its
//     floats is lost. This concerns Adam's count of steps and its moments as well as the
//     parameters.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "trainer/ps/rows/update_rule.h"

namespace antdt::hogwild {

class SharedRows {
 public:
  // Rows of `width` floats, the last of which is filled with zeros.
  SharedRows(std::span<const float> values, std::size_t width, const ps::UpdateRule& rule);

  // By any number of threads at the same time.
  //
  // `into`: the first floats of the rows.
  void read(std::span<float> into) const;
  // One step of the rule for each row, by the gradients of the first floats of the rows (those of
  // the others are 0) times `scale`. Begins with row `first`: threads that begin with different
  // rows seldom meet.
  void update(std::span<const float> gradients, float scale, std::size_t first = 0);

  // While no thread is in one of the functions above, and between two such times with a
  // synchronisation of the threads.
  [[nodiscard]] std::span<float> values() { return values_; }
  [[nodiscard]] std::size_t rows() const { return values_.size() / width_; }
  void clear_state();  // of the optimizer
  void set_learning_rate(float rate) { rule_.learning_rate = rate; }

 private:
  struct Row;  // a thread's copy of one row
  void update_row(std::size_t row, std::span<const float> gradients, float scale, Row& copy);

  std::size_t width_;
  std::size_t state_width_;  // of a row
  ps::UpdateRule rule_;
  std::vector<float> values_, state_;
};

}  // namespace antdt::hogwild
