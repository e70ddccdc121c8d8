#include "ctl/control/memory_limits.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ctl/control/batch_search.h"

namespace antdt::ctl {

namespace {

// The most different combinations of part and limit for which the search is feasible.
constexpr std::size_t kMostClasses = 8;

std::uint32_t limit_of(WorkerId worker, const MemoryLimits& limits, const BatchRules& rules) {
  const auto found = limits.find(worker);
  const std::uint32_t own = found == limits.end() ? 0 : found->second;
  const std::uint32_t limit = own == 0         ? rules.max
                              : rules.max == 0 ? own
                                               : std::min(own, rules.max);
  return limit == 0 ? rules.global_batch : limit;
}

Error too_little_memory(WorkerId worker, std::uint32_t samples, std::uint32_t limit) {
  return Error{ErrorKind::kUsage,
               fmt::format("{} cannot hold micro-batches of {} samples, {} is its limit: let it "
                           "accumulate ([batch] adjust = \"both\"), lower [batch] max, or use more "
                           "workers",
                           worker, samples, limit)};
}

// Makes the same part of more and smaller micro-batches, if there are such.
bool cut(wire::PlanEntry& entry, std::uint32_t limit, const BatchRules& rules) {
  const std::uint64_t part = share_of(entry);
  const std::uint64_t least = (part + limit - 1) / limit;
  for (std::uint64_t c = least; c <= 4 * least; ++c) {
    if (part % (c * rules.multiple_of) != 0) continue;
    entry.micro_batch = static_cast<std::uint32_t>(part / c);
    entry.accumulation = static_cast<std::uint32_t>(c);
    return true;
  }
  return false;
}

// Finds the parts again, in the same proportions, with the search for devices: a worker with part p
// takes b / p for b samples.
Result<wire::Plan> searched(wire::Plan plan, const MemoryLimits& limits, const BatchRules& rules) {
  using Kind = std::pair<std::uint32_t, std::uint32_t>;  // part and limit
  std::map<Kind, std::vector<std::size_t>> members;
  for (std::size_t i = 0; i < plan.entries.size(); ++i) {
    const wire::PlanEntry& e = plan.entries[i];
    members[{share_of(e), limit_of(e.worker, limits, rules)}].push_back(i);
  }
  std::vector<BatchClass> classes;
  for (const auto& [kind, entries] : members) {
    BatchClass c;
    c.members = static_cast<std::uint32_t>(entries.size());
    c.least = rules.multiple_of;
    c.least_part = rules.min;
    c.most_accumulation = rules.adjust == Adjust::kSize ? 1 : 0;
    const double weight = std::max<double>(kind.first, 0.5);
    for (std::uint64_t b = c.least; b <= kind.second; b += rules.multiple_of)
      c.seconds.push_back(static_cast<double>(b) / weight);
    classes.push_back(std::move(c));
  }
  const auto found = classes.size() > kMostClasses
                         ? std::nullopt
                         : search_batches(classes, rules.global_batch, rules.multiple_of);
  if (!found) {
    return fail(ErrorKind::kUsage,
                "a global batch of {} samples cannot be cut into micro-batches that the workers' "
                "memory holds: let them accumulate ([batch] adjust = \"both\"), choose a [batch] "
                "global with more divisors, or use more workers",
                rules.global_batch);
  }
  std::vector<std::vector<std::size_t>> entries_of;
  for (auto& [kind, entries] : members) entries_of.push_back(entries);
  for (const ClassBatches& part : found->parts) {
    for (std::uint32_t n = 0; n < part.members; ++n) {
      wire::PlanEntry& entry = plan.entries[entries_of[part.cls].back()];
      entries_of[part.cls].pop_back();
      entry.micro_batch = part.micro_batch;
      entry.accumulation = part.accumulation;
    }
  }
  return plan;
}

}  // namespace

Result<wire::Plan> within_memory(wire::Plan plan, const MemoryLimits& limits,
                                 const BatchRules& rules) {
  bool whole = true;
  wire::Plan next = plan;
  for (wire::PlanEntry& entry : next.entries) {
    const std::uint32_t limit = limit_of(entry.worker, limits, rules);
    if (entry.micro_batch <= limit) continue;
    const bool moves = rules.adjust == Adjust::kBoth || rules.adjust == Adjust::kSize;
    if (!moves || limit < rules.multiple_of)
      return tl::unexpected(too_little_memory(entry.worker, entry.micro_batch, limit));
    whole = rules.adjust == Adjust::kBoth && cut(entry, limit, rules) && whole;
  }
  if (whole) return next;
  return searched(std::move(plan), limits, rules);
}

Status check_plan(const wire::Plan& plan, const MemoryLimits& limits, const BatchRules& rules) {
  std::uint64_t sum = 0;
  for (const wire::PlanEntry& e : plan.entries) {
    sum += std::uint64_t{e.micro_batch} * e.accumulation;
    const std::uint32_t limit = limit_of(e.worker, limits, rules);
    if (e.micro_batch > limit)
      return tl::unexpected(too_little_memory(e.worker, e.micro_batch, limit));
    if (e.micro_batch == 0 || e.accumulation == 0 || e.micro_batch % rules.multiple_of != 0 ||
        std::uint64_t{e.micro_batch} * e.accumulation < rules.min) {
      return fail(ErrorKind::kUsage,
                  "{} x {} samples of {} break [batch] multiple_of = {} or min = {}",
                  e.accumulation, e.micro_batch, e.worker, rules.multiple_of, rules.min);
    }
    const bool fixed = (rules.adjust == Adjust::kSize && e.accumulation != 1) ||
                       (rules.adjust == Adjust::kAccumulation && e.micro_batch != rules.base) ||
                       rules.adjust == Adjust::kNone;
    if (fixed) {
      return fail(ErrorKind::kUsage, "{} x {} samples of {} are not what [batch] adjust allows",
                  e.accumulation, e.micro_batch, e.worker);
    }
  }
  if (sum == rules.global_batch) return {};
  return fail(ErrorKind::kUsage, "the parts add up to {} samples, the global batch is {}", sum,
              rules.global_batch);
}

}  // namespace antdt::ctl
