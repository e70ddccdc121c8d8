#include "ctl/control/batch_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace antdt::ctl {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// If the shortest time has no exact sum, longer times are tried in steps that double, beginning
// with this one.
constexpr double kFirstStep = 1e-3;

std::uint64_t rounded_up(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

// The cheapest way for one class to compute each part s, in multiples.
struct Table {
  std::vector<double> seconds;  // kNever: there is no way
  std::vector<std::uint32_t> accumulation;
  // the least of the seconds of s and of all larger parts, so that the list rises
  std::vector<double> from_here;

  [[nodiscard]] std::uint64_t largest_within(double time_s) const {
    const auto end = std::upper_bound(from_here.begin(), from_here.end(), time_s);
    return end == from_here.begin() ? 0 : static_cast<std::uint64_t>(end - from_here.begin() - 1);
  }
};

// Members that all compute the same part.
struct Group {
  const Table* table;
  std::size_t cls;
  std::uint64_t members;
};

Table table_of(const BatchClass& c, std::uint64_t most, std::uint64_t multiple_of) {
  Table t;
  t.seconds.assign(most + 1, kNever);
  t.accumulation.assign(most + 1, 0);
  const std::uint64_t least = std::max<std::uint64_t>(1, rounded_up(c.least, multiple_of));
  for (std::uint64_t i = 0; i < c.seconds.size(); ++i) {
    const std::uint64_t size = least + i;
    std::uint64_t times = most / size;
    if (c.most_accumulation != 0) times = std::min<std::uint64_t>(times, c.most_accumulation);
    for (std::uint64_t n = 1; n <= times; ++n) {
      const double seconds = static_cast<double>(n) * c.seconds[i];
      const std::uint64_t part = n * size;
      const bool better =
          seconds < t.seconds[part] || (seconds == t.seconds[part] && n < t.accumulation[part]);
      if (!better) continue;
      t.seconds[part] = seconds;
      t.accumulation[part] = static_cast<std::uint32_t>(n);
    }
  }
  const std::uint64_t least_part = std::min(rounded_up(c.least_part, multiple_of), most + 1);
  std::fill_n(t.seconds.begin(), least_part, kNever);
  t.from_here = t.seconds;
  for (std::size_t s = most; s-- > 0;)
    t.from_here[s] = std::min(t.from_here[s], t.from_here[s + 1]);
  return t;
}

// Sets of small numbers, as bits.
class Bits {
 public:
  explicit Bits(std::uint64_t size) : words_(size / 64 + 1) {}
  [[nodiscard]] bool has(std::uint64_t i) const { return (words_[i / 64] >> (i % 64) & 1) != 0; }
  void set(std::uint64_t i) { words_[i / 64] |= std::uint64_t{1} << (i % 64); }
  // Adds every number of `other`, increased by `by`.
  void add(const Bits& other, std::uint64_t by) {
    const std::size_t whole = by / 64;
    const unsigned rest = by % 64;
    for (std::size_t i = words_.size(); i-- > whole;) {
      std::uint64_t word = other.words_[i - whole] << rest;
      if (rest != 0 && i > whole) word |= other.words_[i - whole - 1] >> (64 - rest);
      words_[i] |= word;
    }
  }

 private:
  std::vector<std::uint64_t> words_;
};

class Search {
 public:
  Search(std::vector<Group> groups, std::uint64_t total)
      : groups_(std::move(groups)), total_(total) {
    // A group of many members can only change the sum in large steps. It has few choices, so it
    // comes first.
    std::stable_sort(groups_.begin(), groups_.end(),
                     [](const Group& a, const Group& b) { return a.members > b.members; });
  }

  // A lower bound of the time in which any batches, alike or not, can make the total; kNever if
  // none can.
  [[nodiscard]] double bound() const {
    double least = kNever;
    for (const Group& g : groups_) {
      const auto& times = g.table->from_here;
      const auto enough = std::partition_point(times.begin(), times.end(), [&](double time_s) {
        return time_s < kNever && at_most(time_s) < total_;
      });
      if (enough != times.end()) least = std::min(least, *enough);
    }
    return at_most(least) < total_ ? kNever : least;
  }

  // The least time with an exact sum. The parts are in the order of groups().
  [[nodiscard]] std::optional<std::vector<std::uint64_t>> run() const {
    const double bound_s = bound();
    if (bound_s == kNever) return std::nullopt;
    auto best = parts_within(bound_s);
    if (best) return best;
    if (!may_add_up()) return std::nullopt;
    double below_s = bound_s;
    const double longest_s = longest();
    for (double step = kFirstStep; !best; step *= 2) {
      const double time_s = std::min(bound_s * (1 + step), longest_s);
      best = parts_within(time_s);
      if (!best && time_s >= longest_s) return std::nullopt;
      if (!best) below_s = time_s;
    }
    return refine(below_s, std::move(*best));
  }

  [[nodiscard]] const std::vector<Group>& groups() const { return groups_; }
  [[nodiscard]] double seconds(const std::vector<std::uint64_t>& parts) const {
    double longest_s = 0;
    for (std::size_t i = 0; i < parts.size(); ++i)
      longest_s = std::max(longest_s, groups_[i].table->seconds[parts[i]]);
    return longest_s;
  }

 private:
  [[nodiscard]] std::uint64_t at_most(double time_s) const {
    std::uint64_t sum = 0;
    for (const Group& g : groups_) {
      const std::uint64_t part = g.table->largest_within(time_s);
      if (part == 0) return 0;  // a member cannot take part
      sum += g.members * part;
    }
    return sum;
  }

  [[nodiscard]] double longest() const {
    double time_s = 0;
    for (const Group& g : groups_) {
      for (const double s : g.table->seconds) {
        if (s < kNever) time_s = std::max(time_s, s);
      }
    }
    return time_s;
  }

  // Whether the sums can have the same remainder as the total.
  [[nodiscard]] bool may_add_up() const {
    std::uint64_t step = 0;
    std::uint64_t some = 0;
    for (const Group& g : groups_) {
      std::uint64_t first = 0;
      for (std::uint64_t s = 1; s < g.table->seconds.size(); ++s) {
        if (g.table->seconds[s] == kNever) continue;
        if (first == 0) first = s;
        step = std::gcd(step, g.members * (s - first));
        if (step == 1) return true;
      }
      some += g.members * first;
    }
    if (step == 0) return some == total_;
    return (total_ > some ? total_ - some : some - total_) % step == 0;
  }

  // Calls use(part, shortfall) for each part from the largest down; the shortfall is what the
  // members then lack of their largest part.
  template <class Use>
  static void each_part(const Group& g, std::uint64_t largest, double time_s, std::uint64_t excess,
                        Use&& use) {
    for (std::uint64_t s = largest; s > 0 && g.members * (largest - s) <= excess; --s) {
      if (g.table->seconds[s] <= time_s && !use(s, g.members * (largest - s))) return;
    }
  }

  [[nodiscard]] std::optional<std::vector<std::uint64_t>> parts_within(double time_s) const {
    const std::uint64_t most = at_most(time_s);
    if (most < total_) return std::nullopt;
    const std::uint64_t excess = most - total_;
    std::vector<std::uint64_t> largest;
    for (const Group& g : groups_) largest.push_back(g.table->largest_within(time_s));
    std::vector<Bits> reached{Bits(excess)};
    reached.back().set(0);
    for (std::size_t i = 0; i + 1 < groups_.size(); ++i) {
      Bits next(excess);
      each_part(groups_[i], largest[i], time_s, excess, [&](std::uint64_t, std::uint64_t lack) {
        next.add(reached[i], lack);
        return true;
      });
      reached.push_back(std::move(next));
    }
    std::vector<std::uint64_t> parts(groups_.size(), 0);
    std::uint64_t left = excess;
    for (std::size_t i = groups_.size(); i-- > 0;) {
      each_part(groups_[i], largest[i], time_s, left, [&](std::uint64_t s, std::uint64_t lack) {
        if (!reached[i].has(left - lack)) return true;
        parts[i] = s;
        left -= lack;
        return false;
      });
      if (parts[i] == 0) return std::nullopt;
    }
    return parts;
  }

  // Finds the least time above `below_s`, which is too short, and up to the time of `best`.
  [[nodiscard]] std::vector<std::uint64_t> refine(double below_s,
                                                  std::vector<std::uint64_t> best) const {
    std::vector<double> times;
    const double best_s = seconds(best);
    for (const Group& g : groups_) {
      for (const double s : g.table->seconds) {
        if (s > below_s && s < best_s) times.push_back(s);
      }
    }
    std::sort(times.begin(), times.end());
    times.erase(std::unique(times.begin(), times.end()), times.end());
    std::size_t low = 0;
    for (std::size_t high = times.size(); low < high;) {
      const std::size_t middle = (low + high) / 2;
      if (auto parts = parts_within(times[middle])) {
        best = std::move(*parts);
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return best;
  }

  std::vector<Group> groups_;
  std::uint64_t total_;
};

// The whole search, in multiples. There are no tables if the limits make a solution impossible.
class Problem {
 public:
  Problem(std::span<const BatchClass> classes, std::uint32_t global_batch,
          std::uint32_t multiple_of)
      : classes_(classes), multiple_(multiple_of), total_(global_batch / multiple_of) {
    if (classes.empty() || multiple_of == 0 || global_batch % multiple_of != 0) return;
    std::uint64_t least = 0;
    for (const BatchClass& c : classes) least += c.members * least_part(c);
    if (least > total_) return;
    for (const BatchClass& c : classes) {
      if (c.members == 0 || c.seconds.empty()) return;
      tables_.push_back(
          table_of(c, rounded_up(total_ - least, c.members) + least_part(c), multiple_));
    }
  }

  [[nodiscard]] bool possible() const {
    return tables_.size() == classes_.size() && !tables_.empty();
  }
  [[nodiscard]] std::vector<Group> alike() const {
    std::vector<Group> groups;
    for (std::size_t i = 0; i < tables_.size(); ++i)
      groups.push_back({&tables_[i], i, classes_[i].members});
    return groups;
  }

  // Divides the members of class `odd` into three groups: one member alone; as many of the others
  // with a smaller micro-batch as bring the sum down to the total, or so near to it that whole
  // classes can do the rest; and the remaining ones.
  [[nodiscard]] std::vector<Group> with_odd(std::size_t odd, double bound_s) const {
    std::vector<Group> groups = alike();
    std::uint64_t excess = 0;
    // the unit by which the other classes can change the sum; 0: they cannot
    std::uint64_t whole = 0;
    for (const Group& g : groups) {
      excess += g.members * g.table->largest_within(bound_s);
      if (g.cls != odd) whole = std::gcd(whole, g.members);
    }
    excess -= total_;
    const Table& table = *groups[odd].table;
    const std::uint64_t others = groups[odd].members - 1;
    const std::uint64_t smaller = smaller_members(table, others, bound_s, excess, whole);
    groups[odd].members = 1;
    for (const std::uint64_t members : {smaller, others - smaller}) {
      if (members > 0) groups.push_back({&table, odd, members});
    }
    return groups;
  }

  [[nodiscard]] std::optional<BatchesFound> solve(std::vector<Group> groups) const {
    const Search search(std::move(groups), total_);
    const auto parts = search.run();
    if (!parts) return std::nullopt;
    BatchesFound found{search.seconds(*parts), {}};
    for (std::size_t i = 0; i < parts->size(); ++i) {
      const Group& g = search.groups()[i];
      const std::uint32_t times = g.table->accumulation[(*parts)[i]];
      found.parts.push_back({g.cls, static_cast<std::uint32_t>(g.members),
                             static_cast<std::uint32_t>((*parts)[i] / times * multiple_), times});
    }
    std::stable_sort(found.parts.begin(), found.parts.end(),
                     [](const ClassBatches& a, const ClassBatches& b) { return a.cls < b.cls; });
    return found;
  }

  [[nodiscard]] double bound() const { return Search(alike(), total_).bound(); }

 private:
  [[nodiscard]] std::uint64_t least_part(const BatchClass& c) const {
    return std::max<std::uint64_t>(1, rounded_up(std::max(c.least, c.least_part), multiple_));
  }

  // How many of `others` get along with a micro-batch that is one multiple smaller than fits in the
  // time, if one more member is free to compute any part.
  static std::uint64_t smaller_members(const Table& table, std::uint64_t others, double bound_s,
                                       std::uint64_t excess, std::uint64_t whole) {
    const std::uint64_t part = table.largest_within(bound_s);
    const std::uint64_t step = std::max<std::uint64_t>(table.accumulation[part], 1);
    const std::uint64_t tries = 4 * step + 64;
    for (std::uint64_t lack = 0; lack < std::min({part, excess + 1, tries}); ++lack) {
      if (table.seconds[part - lack] > bound_s) continue;
      const std::uint64_t most = std::min(others, (excess - lack) / step);
      for (std::uint64_t back = 0; back <= std::min(most, std::max<std::uint64_t>(whole, 1));
           ++back) {
        const std::uint64_t rest = excess - lack - (most - back) * step;
        if (whole == 0 ? rest == 0 : rest % whole == 0) return most - back;
      }
    }
    return std::min(excess / step, others);
  }

  std::span<const BatchClass> classes_;
  std::uint64_t multiple_;
  std::uint64_t total_;
  std::vector<Table> tables_;
};

}  // namespace

std::optional<BatchesFound> search_alike(std::span<const BatchClass> classes,
                                         std::uint32_t global_batch, std::uint32_t multiple_of) {
  const Problem problem(classes, global_batch, multiple_of);
  if (!problem.possible()) return std::nullopt;
  return problem.solve(problem.alike());
}

std::optional<BatchesFound> search_batches(std::span<const BatchClass> classes,
                                           std::uint32_t global_batch, std::uint32_t multiple_of) {
  const Problem problem(classes, global_batch, multiple_of);
  if (!problem.possible()) return std::nullopt;
  auto best = problem.solve(problem.alike());
  const double bound_s = problem.bound();
  if (bound_s == kNever || (best && best->step_s <= (1 + kUnlikeGain) * bound_s)) return best;
  for (std::size_t cls = 0; cls < classes.size(); ++cls) {
    if (classes[cls].members < 2) continue;
    auto found = problem.solve(problem.with_odd(cls, bound_s));
    const double limit_s = best ? best->step_s / (1 + kUnlikeGain / 2) : kNever;
    if (found && found->step_s < limit_s) best = std::move(found);
  }
  return best;
}

}  // namespace antdt::ctl
