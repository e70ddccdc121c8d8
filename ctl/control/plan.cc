#include "ctl/control/plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace antdt::ctl {

namespace {

// Parts in units of `multiple_of`, as real numbers: the quota of each worker, and whether a bound
// fixed it.
struct Quota {
  double units = 0;
  bool fixed = false;
};

// Proportional parts within [low, high]. If both bounds bind, the side with the greater total
// violation is fixed first (as CSS flexbox resolves flexible lengths): each round fixes at least
// one part and leaves the rest feasible.
std::vector<Quota> clamp_quotas(double total, std::span<const double> weights, double low,
                                double high) {
  std::vector<Quota> quotas(weights.size());
  for (std::size_t round = 0; round <= weights.size(); ++round) {
    double free_total = total;
    double free_weight = 0;
    for (std::size_t i = 0; i < quotas.size(); ++i) {
      if (quotas[i].fixed) {
        free_total -= quotas[i].units;
      } else {
        free_weight += weights[i];
      }
    }
    const auto free_count = static_cast<double>(
        std::count_if(quotas.begin(), quotas.end(), [](const Quota& q) { return !q.fixed; }));
    double below = 0;
    double above = 0;
    for (std::size_t i = 0; i < quotas.size(); ++i) {
      if (quotas[i].fixed) continue;
      quotas[i].units =
          free_weight > 0 ? free_total * weights[i] / free_weight : free_total / free_count;
      below += std::max(0.0, low - quotas[i].units);
      above += std::max(0.0, quotas[i].units - high);
    }
    if (below == 0 && above == 0) break;
    for (Quota& q : quotas) {
      if (q.fixed) continue;
      if (below >= above && q.units <= low) q = {low, true};
      if (above >= below && q.units >= high) q = {high, true};
    }
  }
  return quotas;
}

// Whole numbers with the given sum: round down, then add one to those with the largest remainders.
std::vector<std::uint64_t> round_quotas(std::uint64_t total, const std::vector<Quota>& quotas,
                                        std::uint64_t high) {
  std::vector<std::uint64_t> units(quotas.size());
  std::uint64_t given = 0;
  for (std::size_t i = 0; i < quotas.size(); ++i) {
    // Sums of doubles give quotas such as 2.9999999999, which count as whole.
    units[i] = static_cast<std::uint64_t>(std::floor(quotas[i].units + 1e-9));
    given += units[i];
  }
  std::vector<std::size_t> order(quotas.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto remainder = [&](std::size_t i) {
    return std::round((quotas[i].units - static_cast<double>(units[i])) * 1e9);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return remainder(a) > remainder(b); });
  while (given < total) {
    for (const std::size_t i : order) {
      if (given == total) break;
      if (units[i] >= high) continue;
      ++units[i];
      ++given;
    }
  }
  return units;
}

std::uint64_t div_up(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

// One worker's part as micro-batches.
struct Part {
  std::uint64_t samples = 0;
  std::uint64_t accumulation = 1;
};

std::uint64_t largest_micro_batch(const BatchRules& rules) {
  return rules.max / rules.multiple_of * rules.multiple_of;
}

// The smallest accumulation that cuts `samples` into equal micro-batches that the rules allow. 0 if
// there is none below four times the necessary number; more would make the micro-batches uselessly
// small.
std::uint64_t whole_accumulation(std::uint64_t samples, const BatchRules& rules) {
  const std::uint64_t least =
      div_up(std::max<std::uint64_t>(samples, 1), largest_micro_batch(rules));
  for (std::uint64_t c = least; c <= 4 * least; ++c) {
    if (samples % (c * rules.multiple_of) == 0) return c;
  }
  return 0;
}

// Rounds parts down to whole micro-batches and returns what is left over.
std::uint64_t round_down(std::vector<Part>& parts, const BatchRules& rules) {
  std::uint64_t left = 0;
  for (Part& p : parts) {
    p.accumulation = div_up(std::max<std::uint64_t>(p.samples, 1), largest_micro_batch(rules));
    const std::uint64_t rest = p.samples % (p.accumulation * rules.multiple_of);
    p.samples -= rest;
    left += rest;
  }
  return left;
}

// Gives `left` samples to parts that can take them in whole micro-batches, and reduces `left` by
// what was given.
bool place_rest(std::vector<Part>& parts, std::uint64_t& left, const BatchRules& rules) {
  const std::uint64_t max = largest_micro_batch(rules);
  for (bool moved = true; moved && left > 0;) {
    moved = false;
    for (Part& p : parts) {
      const std::uint64_t grain = p.accumulation * rules.multiple_of;
      if (grain > left || p.samples + grain > max * p.accumulation) continue;
      p.samples += grain;
      left -= grain;
      moved = true;
    }
  }
  if (left == 0) return true;
  Part* best = nullptr;
  for (Part& p : parts) {
    const std::uint64_t c = whole_accumulation(p.samples + left, rules);
    if (c != 0 && (best == nullptr || c < whole_accumulation(best->samples + left, rules)))
      best = &p;
  }
  if (best == nullptr) return false;
  best->samples += left;
  best->accumulation = whole_accumulation(best->samples, rules);
  left = 0;
  return true;
}

// Two parts may absorb what one cannot: `one` is cut differently, and `other` takes what then
// remains, if that is a whole number of micro-batches.
bool place_in_two(Part& one, Part& other, std::uint64_t left, const BatchRules& rules) {
  const std::uint64_t both = one.samples + other.samples + left;
  for (std::uint64_t c = one.accumulation; c <= 2 * one.accumulation; ++c) {
    const std::uint64_t grain = c * rules.multiple_of;
    for (std::uint64_t steps = one.samples / grain; steps <= one.samples / grain + 1; ++steps) {
      const std::uint64_t mine = steps * grain;
      if (steps == 0 || steps * rules.multiple_of > rules.max || mine >= both) continue;
      const std::uint64_t accumulation = whole_accumulation(both - mine, rules);
      if (accumulation == 0) continue;
      one = {mine, c};
      other = {both - mine, accumulation};
      return true;
    }
  }
  return false;
}

// Large groups do not need this, because they have parts that take the rest.
bool place_rest_in_pairs(std::vector<Part>& parts, std::uint64_t left, const BatchRules& rules) {
  const std::size_t count = std::min<std::size_t>(parts.size(), 32);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < count; ++j) {
      if (i != j && place_in_two(parts[i], parts[j], left, rules)) return true;
    }
  }
  return false;
}

// Gives every worker the same accumulation. This is possible if the global batch has a fitting
// divisor.
Result<std::vector<Part>> common_accumulation(std::span<const double> weights, std::uint64_t least,
                                              const BatchRules& rules) {
  for (std::uint64_t c = least; c <= least + 64; ++c) {
    const std::uint64_t grain = c * rules.multiple_of;
    const std::uint64_t max = c * largest_micro_batch(rules);
    if (rules.global_batch % grain != 0 || max > UINT32_MAX) continue;
    const auto shares =
        distribute(rules.global_batch, weights,
                   {static_cast<std::uint32_t>(grain), rules.min, static_cast<std::uint32_t>(max)});
    if (!shares) continue;
    std::vector<Part> parts;
    for (const std::uint32_t s : *shares) parts.push_back({s, c});
    return parts;
  }
  return fail(ErrorKind::kUsage,
              "a global batch of {} samples cannot be cut into micro-batches of at most {} "
              "(a multiple of {}) for {} workers: choose a [batch] global with more divisors, or "
              "raise [batch] max",
              rules.global_batch, rules.max, rules.multiple_of, weights.size());
}

Result<std::vector<Part>> split(const std::vector<std::uint32_t>& shares,
                                std::span<const double> weights, const BatchRules& rules) {
  std::vector<Part> parts;
  for (const std::uint32_t s : shares) parts.push_back({s, 1});
  if (rules.adjust == Adjust::kAccumulation) {
    for (Part& p : parts) p.accumulation = p.samples / rules.base;
    return parts;
  }
  if (rules.adjust != Adjust::kBoth || rules.max == 0) return parts;
  std::uint64_t left = round_down(parts, rules);
  const auto too_small = [&](const Part& p) { return p.samples < rules.min; };
  const bool placed = place_rest(parts, left, rules) || place_rest_in_pairs(parts, left, rules);
  if (placed && std::none_of(parts.begin(), parts.end(), too_small)) {
    return parts;
  }
  std::uint64_t least = 1;
  for (const Part& p : parts) least = std::max(least, p.accumulation);
  return common_accumulation(weights, least, rules);
}

}  // namespace

Result<Adjust> parse_adjust(std::string_view text) {
  if (const auto adjust = by_name<Adjust>(text)) return *adjust;
  return fail(ErrorKind::kUsage,
              "[batch] adjust = \"{}\" is none of \"size\", \"accumulation\", \"both\", \"none\"",
              text);
}

Result<std::vector<std::uint32_t>> distribute(std::uint32_t total, std::span<const double> weights,
                                              const Bounds& bounds) {
  const std::uint64_t n = weights.size();
  if (n == 0)
    return fail(ErrorKind::kUsage, "a batch of {} samples needs at least one worker", total);
  if (total % bounds.multiple_of != 0) {
    return fail(ErrorKind::kUsage,
                "a global batch of {} samples is no multiple of {}, in which parts are dealt: "
                "change [batch] global or multiple_of",
                total, bounds.multiple_of);
  }
  const std::uint64_t units = total / bounds.multiple_of;
  const std::uint64_t low = div_up(bounds.min, bounds.multiple_of);
  const std::uint64_t high = bounds.max == 0 ? units : bounds.max / bounds.multiple_of;
  if (low * n > units) {
    return fail(ErrorKind::kUsage,
                "{} workers with at least {} samples each exceed the global batch of {}: lower "
                "[batch] min or multiple_of, or use fewer workers",
                n, low * bounds.multiple_of, total);
  }
  if (high * n < units) {
    return fail(ErrorKind::kUsage,
                "{} workers with at most {} samples each cannot make a global batch of {}: raise "
                "[batch] max, use more workers, or let them accumulate (adjust = \"both\")",
                n, high * bounds.multiple_of, total);
  }
  const auto quotas = clamp_quotas(static_cast<double>(units), weights, static_cast<double>(low),
                                   static_cast<double>(std::min(high, units)));
  std::vector<std::uint32_t> shares;
  for (const std::uint64_t u : round_quotas(units, quotas, high)) {
    shares.push_back(static_cast<std::uint32_t>(u * bounds.multiple_of));
  }
  return shares;
}

Bounds share_bounds(const BatchRules& rules) {
  switch (rules.adjust) {
    case Adjust::kAccumulation:
      return {rules.base, std::max(rules.min, rules.base), 0};
    case Adjust::kBoth:
      return {rules.multiple_of, rules.min, 0};
    case Adjust::kSize:
    case Adjust::kNone:
      break;
  }
  return {rules.multiple_of, rules.min, rules.max};
}

std::uint32_t accumulation_base(const BatchRules& rules, std::size_t workers) {
  if (rules.max != 0) return rules.max / rules.multiple_of * rules.multiple_of;
  const std::uint64_t limit = rules.global_batch / (4 * std::max<std::size_t>(workers, 1));
  for (std::uint64_t base = limit / rules.multiple_of * rules.multiple_of; base > 0;
       base -= rules.multiple_of) {
    if (rules.global_batch % base == 0) return static_cast<std::uint32_t>(base);
  }
  return rules.multiple_of;
}

Result<wire::Plan> make_plan(PlanVersion version, std::span<const WorkerId> workers,
                             std::span<const double> weights, const BatchRules& rules) {
  if (rules.multiple_of == 0 || (rules.adjust == Adjust::kAccumulation && rules.base == 0) ||
      (rules.max != 0 && rules.max < rules.multiple_of)) {
    return fail(ErrorKind::kUsage,
                "[batch] multiple_of = {} and max = {} leave no possible micro-batch",
                rules.multiple_of, rules.max);
  }
  const std::vector<double> equal(weights.size(), 1.0);
  const auto used = rules.adjust == Adjust::kNone ? std::span<const double>(equal) : weights;
  ANTDT_TRY(const auto shares, distribute(rules.global_batch, used, share_bounds(rules)));
  ANTDT_TRY(const auto parts, split(shares, used, rules));
  wire::Plan plan{version, {}};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    plan.entries.push_back({workers[i],
                            static_cast<std::uint32_t>(parts[i].samples / parts[i].accumulation),
                            static_cast<std::uint32_t>(parts[i].accumulation)});
  }
  return plan;
}

Result<wire::Plan> equal_plan(PlanVersion version, std::span<const WorkerId> workers,
                              const BatchRules& rules) {
  const std::vector<double> weights(workers.size(), 1.0);
  return make_plan(version, workers, weights, rules);
}

}  // namespace antdt::ctl
