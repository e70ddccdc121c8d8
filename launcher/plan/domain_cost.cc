#include "launcher/plan/domain_cost.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace antdt::launcher::plan {
namespace {

// docs/results/gaia.md, "The filter".
constexpr double kFilteredBytesPerS = 6e9;  // of both arrays
constexpr double kAppliedBytesPerS = 0.45e9;
constexpr double kRoom = 1.25;  // trainer/loop/domains/domain_links.cc

double ring_s(const Paths& paths, double bytes) {
  const std::uint32_t n = paths.members();
  // When a member has what it sends in this round, and when its link to the next one is free.
  std::vector<double> has(n, 0), free(n, 0), arrived(n, 0);
  for (std::uint32_t round = 0; round < 2 * (n - 1); ++round) {
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::uint32_t next = (i + 1) % n;
      const double begins = std::max(has[i], free[i]);
      free[i] = begins + paths.sending_s(i, next, bytes / n);
      arrived[next] = begins + paths.arriving_s(i, next, bytes / n);
    }
    has = arrived;
  }
  return *std::ranges::max_element(has);
}

double doubling_s(const Paths& paths, double bytes) {
  const std::uint32_t n = paths.members();
  const std::uint32_t power = std::bit_floor(n);
  std::vector<double> at(n, 0);
  for (std::uint32_t i = power; i < n; ++i) {
    at[i - power] = paths.arriving_s(i, i - power, bytes);
  }
  for (std::uint32_t distance = 1; distance < power; distance *= 2) {
    const std::vector<double> before = at;
    for (std::uint32_t i = 0; i < power; ++i) {
      const std::uint32_t partner = i ^ distance;
      at[i] = std::max(before[i], before[partner] + paths.arriving_s(partner, i, bytes));
    }
  }
  for (std::uint32_t i = power; i < n; ++i) {
    at[i] = at[i - power] + paths.arriving_s(i - power, i, bytes);
  }
  return *std::ranges::max_element(at);
}

double bytes_of(const ModelSize& model) { return model.dense_bytes() + model.table_bytes(); }

double share_with_whole(const GaiaStep& step) {
  return step.share + (1 - step.share) / std::max(1.0, step.whole_every);
}

// The leaders gather their messages, for which they leave a quarter more room than the ones before
// took. What is longer, as a whole message is, follows in a second exchange.
double updates_s(const Paths& leaders, const ModelSize& model, const GaiaStep& step) {
  const double all = leaders.members() * bytes_of(model);
  const double room = std::min(1.0, kRoom * step.share);
  return gather_s(leaders, room * all) +
         gather_s(leaders, (1 - room) * all) / std::max(1.0, step.whole_every);
}

}  // namespace

Paths::Paths(const DomainLinks& links, std::vector<Group> groups)
    : groups_(std::move(groups)), within_(links.within.value_or(Link{})), between_(links.between) {}

Paths Paths::of_domain(const DomainLinks& links, std::uint32_t domain) {
  std::vector<Group> groups;
  for (const Group& group : links.groups) {
    if (group.domain == domain) groups.push_back(group);
  }
  return {links, std::move(groups)};
}

Paths Paths::of_leaders(const DomainLinks& links) {
  std::vector<Group> groups;
  for (const Group& group : links.groups) {
    const bool known = std::ranges::find(groups, group.domain, &Group::domain) != groups.end();
    if (!known) groups.push_back(group);
  }
  return {links, std::move(groups)};
}

std::uint32_t Paths::workers() const {
  std::uint32_t all = 0;
  for (const Group& group : groups_) all += group.workers;
  return all;
}

double Paths::sending_s(std::uint32_t from, std::uint32_t to, double bytes) const {
  const Link& by = link(from, to);
  return by.bytes_per_s > 0 ? bytes / by.bytes_per_s : 0;
}

double Paths::arriving_s(std::uint32_t from, std::uint32_t to, double bytes) const {
  return link(from, to).latency_s + sending_s(from, to, bytes);
}

double sum_s(const Paths& paths, double bytes) {
  if (paths.members() < 2) return 0;
  return doubling_is_quicker(paths.members(), bytes) ? doubling_s(paths, bytes)
                                                     : ring_s(paths, bytes);
}

double gather_s(const Paths& paths, double bytes) {
  const std::uint32_t n = paths.members();
  if (n < 2) return 0;
  std::vector<double> at(n, 0);
  for (std::uint32_t distance = 1; distance < n; distance *= 2) {
    const std::vector<double> before = at;
    const double sent = bytes / n * std::min(distance, n - distance);
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::uint32_t from = (i + distance) % n;
      at[i] = std::max(before[i], before[from] + paths.arriving_s(from, i, sent));
    }
  }
  return *std::ranges::max_element(at);
}

double allreduce_s(const Paths& paths, const ModelSize& model, const AllReduceStep& step) {
  const Exchanges exchanges{paths.members(), [&](double bytes) { return sum_s(paths, bytes); },
                            [&](double bytes) { return gather_s(paths, bytes); }};
  return allreduce_s(exchanges, model, step);
}

double ds_sync_s(const DomainLinks& links, const ModelSize& model) {
  std::vector<std::uint32_t> workers(links.names.size(), 0);
  for (const Group& group : links.groups) workers[group.domain] += group.workers;
  const Paths all = Paths::of_job(links);
  const double n = all.workers();
  if (n < 2) return 0;
  const double g = n <= 3 ? n : std::ceil(std::sqrt(n));
  // Pairs meet once in a cycle, and a step waits for the slowest of its pairs.
  const double largest = *std::ranges::max_element(workers);
  const double crossing = g > 2 ? 1 : (n - largest) / (n - 1);
  const double bytes = model.mixed * bytes_of(model);
  const double rate = links.between.bytes_per_s;
  const double mixing =
      2 * (g - 1) * links.between.latency_s + (rate > 0 ? 2 * (g - 1) / g * bytes / rate : 0);
  return crossing * mixing + gather_s(all, slots_bytes(all.workers()));
}

double bytes_of_elements(double share) {
  constexpr double kBitmap = 1.0 / 32;
  return std::min({1.0, 1.5 * share, kBitmap + share});
}

double gaia_s(const DomainLinks& links, const ModelSize& model, const GaiaStep& step) {
  const auto others = static_cast<double>(links.names.size() - 1);
  double sum = 0, passed = 0;
  for (std::uint32_t d = 0; d < links.names.size(); ++d) {
    const Paths paths = Paths::of_domain(links, d);
    if (paths.members() < 2) continue;
    AllReduceStep within;
    within.rows_of_all = step.rows_of_worker * paths.workers();
    within.sends_rows = rows_are_quicker(model, paths.workers(), within.rows_of_all);
    sum = std::max(sum, allreduce_s(paths, model, within));
    // The leader passes on what it was sent, to one after the other around the domain.
    passed =
        std::max(passed, paths.arriving_s(0, 1, others * share_with_whole(step) * bytes_of(model)));
  }
  const Paths all = Paths::of_job(links);
  return sum + updates_s(Paths::of_leaders(links), model, step) + passed +
         gather_s(all, slots_bytes(all.workers()));
}

double gaia_work_s(const DomainLinks& links, const ModelSize& model, const GaiaStep& step) {
  const auto others = static_cast<double>(links.names.size() - 1);
  return 2 * bytes_of(model) / kFilteredBytesPerS +
         others * share_with_whole(step) * bytes_of(model) / kAppliedBytesPerS;
}

}  // namespace antdt::launcher::plan
