#include "bench/synchronisation/descent.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "core/permutation.h"

namespace antdt::bench::synchronisation {
namespace {

using Vector = std::vector<double>;

Vector normal_numbers(std::uint32_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  Vector numbers(count);
  for (double& x : numbers) x = normal(random);
  return numbers;
}

Vector mean_of(const std::vector<Vector>& replicas, const std::vector<std::uint32_t>& group) {
  Vector mean(replicas.front().size(), 0);
  for (const std::uint32_t rank : group) {
    for (std::size_t k = 0; k < mean.size(); ++k) mean[k] += replicas[rank][k];
  }
  for (double& x : mean) x /= static_cast<double>(group.size());
  return mean;
}

double distance_from_mean(const std::vector<Vector>& replicas, const Vector& mean) {
  double squares = 0;
  double length = 0;
  for (const double x : mean) length += x * x;
  for (const Vector& replica : replicas) {
    for (std::size_t k = 0; k < mean.size(); ++k) {
      squares += (replica[k] - mean[k]) * (replica[k] - mean[k]);
    }
  }
  return std::sqrt(squares / static_cast<double>(replicas.size()) / length);
}

}  // namespace

sync::Groups groups_of(Mixing mixing, const sync::ds_sync::GroupSchedule& schedule,
                       std::uint64_t step) {
  switch (mixing) {
    case Mixing::kNone:
      return {};
    case Mixing::kFixedGroups:
      return schedule.groups(Step{0});
    case Mixing::kRowsAndColumns:
      return schedule.groups(Step{step % 2 * (schedule.cycle() - 1)});
    case Mixing::kDsSync:
      return schedule.groups(Step{step});
    case Mixing::kAll:
      return sync::one_group(schedule.members());
  }
  return {};
}

Outcome descend(const Descent& about, Mixing mixing) {
  const std::uint32_t n = about.members;
  const sync::ds_sync::GroupSchedule schedule(n, about.seed);
  const auto everybody = sync::one_group(n).front();
  const Vector optimum = normal_numbers(about.dimensions, about.seed);
  std::vector<Vector> own(n);  // optima
  std::vector<std::mt19937_64> random;
  for (std::uint32_t i = 0; i < n; ++i) {
    own[i] = normal_numbers(about.dimensions, combine_seed(about.seed, 2 * i + 2));
    for (std::size_t k = 0; k < own[i].size(); ++k) {
      own[i][k] = optimum[k] + about.skew * own[i][k];
    }
    random.emplace_back(combine_seed(about.seed, 2 * i + 1));
  }
  Vector curvature(about.dimensions);
  for (std::size_t k = 0; k < curvature.size(); ++k) {
    curvature[k] = std::pow(0.01, static_cast<double>(k) / (about.dimensions - 1));
  }

  std::vector<Vector> replicas(n, Vector(about.dimensions, 0));
  std::normal_distribution<double> noise(0, about.noise);
  const std::uint32_t last = std::max(about.steps / 10, 1U);
  Outcome outcome;
  for (std::uint32_t step = 0; step < about.steps; ++step) {
    for (const auto& group : groups_of(mixing, schedule, step)) {
      const Vector mixed = mean_of(replicas, group);
      for (const std::uint32_t rank : group) replicas[rank] = mixed;
    }
    if (step + last >= about.steps) {
      outcome.consensus_error += distance_from_mean(replicas, mean_of(replicas, everybody)) / last;
    }
    for (std::uint32_t i = 0; i < n; ++i) {
      for (std::size_t k = 0; k < curvature.size(); ++k) {
        const double gradient = curvature[k] * (replicas[i][k] - own[i][k]) + noise(random[i]);
        replicas[i][k] -= about.rate * gradient;
      }
    }
  }
  outcome.mean = mean_of(replicas, everybody);
  for (std::size_t k = 0; k < curvature.size(); ++k) {
    const double far = outcome.mean[k] - optimum[k];
    outcome.loss += curvature[k] * far * far / 2;
  }
  return outcome;
}

}  // namespace antdt::bench::synchronisation
