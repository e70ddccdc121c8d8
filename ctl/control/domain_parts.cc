#include "ctl/control/domain_parts.h"

#include <algorithm>
#include <limits>

#include "ctl/control/plan.h"

namespace antdt::ctl {
namespace {

// A domain is left alone if it ends by so little later than the first one, as a part of its time,
// or if all end within so many steps.
constexpr double kMuchLonger = 0.1;
constexpr double kFewSteps = 20;

bool has(const DomainRest& rest, WorkerId worker) {
  return std::ranges::binary_search(rest.workers, worker);
}

double records_of_all(const DomainRests& rests) {
  double all = 0;
  for (const DomainRest& rest : rests) all += static_cast<double>(rest.records);
  return all;
}

// Samples of a step.
double of_domain(const wire::Plan& plan, const DomainRest& rest) {
  double samples = 0;
  for (const wire::PlanEntry& entry : plan.entries) {
    if (has(rest, entry.worker)) samples += share_of(entry);
  }
  return samples;
}

}  // namespace

std::vector<double> by_domain(std::span<const WorkerId> workers, std::vector<double> weights,
                              const DomainRests& rests) {
  if (records_of_all(rests) == 0) return weights;
  std::vector<double> scaled(weights.size(), 0);
  for (const DomainRest& rest : rests) {
    double sum = 0, count = 0;
    for (std::size_t i = 0; i < workers.size(); ++i) {
      if (!has(rest, workers[i])) continue;
      sum += weights[i];
      ++count;
    }
    for (std::size_t i = 0; i < workers.size(); ++i) {
      if (!has(rest, workers[i])) continue;
      const double part = sum > 0 ? weights[i] / sum : 1 / count;
      scaled[i] = part * static_cast<double>(rest.records);
    }
  }
  return scaled;
}

std::optional<LongerDomain> longest_domain(const wire::Plan& plan, const DomainRests& rests) {
  double global = 0;
  for (const wire::PlanEntry& entry : plan.entries) global += share_of(entry);
  double shortest = std::numeric_limits<double>::max(), longest = 0;
  const DomainRest* last = nullptr;
  for (const DomainRest& rest : rests) {
    const double samples = std::max(of_domain(plan, rest), 1.0);
    const double steps = static_cast<double>(rest.records) / samples;
    shortest = std::min(shortest, steps);
    if (steps > longest) {
      longest = steps;
      last = &rest;
    }
  }
  if (last == nullptr || last->workers.empty() || longest < kFewSteps ||
      longest - shortest < kMuchLonger * longest) {
    return std::nullopt;
  }
  return LongerDomain{last->domain, last->workers.front(),
                      static_cast<double>(last->records) / records_of_all(rests),
                      of_domain(plan, *last) / global};
}

}  // namespace antdt::ctl
