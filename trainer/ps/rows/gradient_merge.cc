#include "trainer/ps/rows/gradient_merge.h"

#include <algorithm>
#include <queue>

namespace antdt::ps {
namespace {

struct Head {
  std::uint64_t key;
  std::size_t part;
  bool operator>(const Head& other) const {
    return key != other.key ? key > other.key : part > other.part;
  }
};

}  // namespace

Gradient merge(std::span<const Gradient* const> parts, std::uint32_t width) {
  std::priority_queue<Head, std::vector<Head>, std::greater<>> heads;
  std::vector<std::size_t> at(parts.size());
  std::size_t most = 0;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    most += parts[p]->keys.size();
    if (!parts[p]->keys.empty()) heads.push({parts[p]->keys.front(), p});
  }
  Gradient sum;
  sum.keys.reserve(most);
  sum.values.reserve(most * width);
  while (!heads.empty()) {
    const Head head = heads.top();
    heads.pop();
    const Gradient& part = *parts[head.part];
    const auto row = std::span(part.values).subspan(at[head.part] * width, width);
    if (sum.keys.empty() || sum.keys.back() != head.key) {
      sum.keys.push_back(head.key);
      sum.values.insert(sum.values.end(), row.begin(), row.end());
    } else {
      float* into = sum.values.data() + sum.values.size() - width;
      for (std::uint32_t i = 0; i < width; ++i) into[i] += row[i];
    }
    if (++at[head.part] < part.keys.size()) {
      heads.push({part.keys[at[head.part]], head.part});
    }
  }
  return sum;
}

}  // namespace antdt::ps
