#include "trainer/hogwild/shared_rows.h"

#include <algorithm>
#include <atomic>

#include "core/check.h"

namespace antdt::hogwild {
namespace {

void load(std::span<const float> shared, std::span<float> into) {
  for (std::size_t i = 0; i < into.size(); ++i) {
    // There is no atomic_ref of a const object; nothing is written.
    into[i] = std::atomic_ref(const_cast<float&>(shared[i])).load(std::memory_order_relaxed);
  }
}

void store(std::span<const float> from, std::span<float> shared) {
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::atomic_ref(shared[i]).store(from[i], std::memory_order_relaxed);
  }
}

std::size_t rounded_up(std::size_t count, std::size_t width) {
  return (count + width - 1) / width * width;
}

}  // namespace

struct SharedRows::Row {
  std::vector<float> values, state, gradient;
};

SharedRows::SharedRows(std::span<const float> values, std::size_t width, const ps::UpdateRule& rule)
    : width_(width),
      state_width_(rule.state(static_cast<std::uint32_t>(width))),
      rule_(rule),
      values_(rounded_up(values.size(), width)),
      state_(rows() * state_width_) {
  std::ranges::copy(values, values_.begin());
}

void SharedRows::read(std::span<float> into) const {
  ANTDT_CHECK(into.size() <= values_.size(), "{} floats of {}", into.size(), values_.size());
  load(values_, into);
}

void SharedRows::update(std::span<const float> gradients, float scale, std::size_t first) {
  ANTDT_CHECK(gradients.size() <= values_.size(), "{} gradients of {} floats", gradients.size(),
              values_.size());
  Row copy{std::vector<float>(width_), std::vector<float>(state_width_),
           std::vector<float>(width_)};
  for (std::size_t i = 0; i < rows(); ++i) {
    update_row((first + i) % rows(), gradients, scale, copy);
  }
}

void SharedRows::update_row(std::size_t row, std::span<const float> gradients, float scale,
                            Row& copy) {
  const std::size_t begin = std::min(row * width_, gradients.size());
  const std::size_t count = std::min(width_, gradients.size() - begin);
  const auto end = std::ranges::copy(gradients.subspan(begin, count), copy.gradient.begin()).out;
  std::fill(end, copy.gradient.end(), 0.0F);
  const auto values = std::span(values_).subspan(row * width_, width_);
  const auto state = std::span(state_).subspan(row * state_width_, state_width_);
  load(values, copy.values);
  load(state, copy.state);
  rule_.apply(copy.values, copy.state, copy.gradient, scale);
  store(copy.values, values);
  store(copy.state, state);
}

void SharedRows::clear_state() { std::ranges::fill(state_, 0.0F); }

}  // namespace antdt::hogwild
