// Sums of an evaluation that only the program knows the meaning of: true positives, tokens.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/wire/message.h"

namespace antdt::wire {

struct NamedSum {
  static constexpr std::size_t kMostNames = 64;    // of an evaluation
  static constexpr std::size_t kLongestName = 64;  // bytes
  std::string name;
  double sum = 0;  // over records
  bool operator==(const NamedSum&) const = default;
  ANTDT_PART {
    v("name", m.name);
    v("sum", m.sum);
  }
};
// By rising name, each name once.
using NamedSums = std::vector<NamedSum>;

// Names stand in JSON, in tags of TensorBoard and in messages.
[[nodiscard]] inline bool is_sum_name(std::string_view name) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./@";
  return !name.empty() && name.size() <= NamedSum::kLongestName &&
         name.find_first_not_of(kAllowed) == std::string_view::npos;
}

// Checks what a program or a peer gave. The error (kUsage) names the fault: too many sums, a name
// that cannot be, is there twice or is not in its place. A sum may be infinite or not a number, as
// a loss may.
[[nodiscard]] inline Status check_sums(const NamedSums& sums) {
  if (sums.size() > NamedSum::kMostNames) {
    return fail(ErrorKind::kUsage, "{} named sums: {} at most", sums.size(), NamedSum::kMostNames);
  }
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const std::string& name = sums[i].name;
    if (!is_sum_name(name)) {
      return fail(ErrorKind::kUsage,
                  "named sum {}: its name is not 1 to {} letters, digits and _ - . / @", i,
                  NamedSum::kLongestName);
    }
    if (i > 0 && name <= sums[i - 1].name) {
      return fail(ErrorKind::kUsage, "the sum '{}' is there twice, or behind a greater name", name);
    }
  }
  return {};
}

inline void add(NamedSums& sums, const NamedSums& more) {
  for (const NamedSum& next : more) {
    const auto at = std::ranges::lower_bound(sums, next.name, {}, &NamedSum::name);
    if (at != sums.end() && at->name == next.name) {
      at->sum += next.sum;
    } else {
      sums.insert(at, next);
    }
  }
}

}  // namespace antdt::wire
