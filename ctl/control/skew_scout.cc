#include "ctl/control/skew_scout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace antdt::ctl::skew {

double cost_of(const Objective& objective, double accuracy_loss, double bytes_ratio) {
  return objective.weight_loss * std::max(0.0, accuracy_loss - objective.tolerated_loss) +
         objective.weight_bytes * bytes_ratio;
}

SkewScout::SkewScout(const ScoutOptions& options) : options_(options) {
  ANTDT_CHECK(options.every >= 1 && options.factor > 1 && options.least > 0, "every {}, factor {}",
              options.every, options.factor);
  check_invariants();
}

void SkewScout::step(const Input& input, MonoTime now, Effects& out) {
  std::visit([&](const auto& event) { on(event, now, out); }, input);
  check_invariants();
}

// from: training, to: visiting, once enough was trained. While visits are under way, what other
// domains still train is counted with the next threshold.
void SkewScout::on(const Trained& input, MonoTime /*now*/, Effects& out) {
  round_.batches += input.batches;
  round_.sent_bytes += input.sent_bytes;
  round_.dense_bytes += input.dense_bytes;
  if (state_ != State::kTraining || round_.batches < options_.every || round_.dense_bytes <= 0) {
    return;
  }
  state_ = State::kVisiting;
  out.emplace_back(Visit{});
}

void SkewScout::on(const Visited& input, MonoTime now, Effects& out) {
  if (state_ != State::kVisiting) return;
  // A replica that has diverged: that says nothing of the threshold.
  if (!std::isfinite(input.accuracy_loss)) return on(VisitsFailed{}, now, out);
  state_ = State::kTraining;
  const double ratio = round_.sent_bytes / round_.dense_bytes;
  const double cost = cost_of(options_.objective, input.accuracy_loss, ratio);
  measured_[level_] = {cost, ++visits_};
  round_ = {};
  forget_old();
  const bool tolerated = input.accuracy_loss <= options_.objective.tolerated_loss;
  calm_ = tolerated ? calm_ + 1 : 0;
  const std::optional<int> next = tolerated ? looser(input.accuracy_loss, ratio) : another();
  if (!next) return;
  calm_ = 0;
  const double before = threshold();
  level_ = *next;
  const auto known = measured_.find(level_);
  out.emplace_back(SetThreshold{
      threshold(),
      fmt::format(
          "threshold {:.4g} -> {:.4g}: replicas did {:.1f}% worse on other domains' records, with "
          "{:.1f}% of the bytes, cost {:.3f}{}",
          before, threshold(), 100 * std::max(0.0, input.accuracy_loss), 100 * ratio, cost,
          known == measured_.end() ? "" : fmt::format(" (it was {:.3f})", known->second.cost))});
}

// from: visiting, to: training. What was trained is not measured with this threshold.
void SkewScout::on(const VisitsFailed& /*input*/, MonoTime /*now*/, Effects& /*out*/) {
  if (state_ != State::kVisiting) return;
  state_ = State::kTraining;
  round_ = {};
}

void SkewScout::forget_old() {
  std::erase_if(measured_, [&](const auto& one) { return one.second.visit + kFresh < visits_; });
}

// The loss is tolerated. A looser threshold costs fewer bytes; a tighter one cannot be better.
std::optional<int> SkewScout::looser(double accuracy_loss, double bytes_ratio) const {
  const int level = level_ + 1;
  if (calm_ < kCalm || !in_bounds(level)) return std::nullopt;
  if (measured_.contains(level)) {
    return is_known_to_be_better(level) ? std::optional(level) : std::nullopt;
  }
  const double there =
      cost_of(options_.objective, options_.factor * accuracy_loss, bytes_ratio / options_.factor);
  return there < measured_.at(level_).cost ? std::optional(level) : std::nullopt;
}

// The loss is too large. A tighter threshold lessens it; the looser one is right only if it is
// known to save more by its bytes.
std::optional<int> SkewScout::another() const {
  for (const int level : {level_ - 1, level_ + 1}) {
    if (is_known_to_be_better(level)) return level;
  }
  const int tighter = level_ - 1;
  if (in_bounds(tighter) && !measured_.contains(tighter)) return tighter;
  return std::nullopt;
}

bool SkewScout::is_known_to_be_better(int level) const {
  const auto known = measured_.find(level);
  return known != measured_.end() && known->second.cost < measured_.at(level_).cost;
}

double SkewScout::threshold_of(int level) const {
  return options_.initial * std::pow(options_.factor, level);
}

bool SkewScout::in_bounds(int level) const {
  // A bound may itself be initial * factor^level, and rounding must not exclude it.
  constexpr double kRounding = 1e-9;
  const double threshold = threshold_of(level);
  return threshold >= options_.least * (1 - kRounding) &&
         threshold <= options_.most * (1 + kRounding);
}

void SkewScout::check_invariants() const {
  ANTDT_CHECK(in_bounds(level_), "threshold {} is not within {} to {}", threshold(), options_.least,
              options_.most);
}

}  // namespace antdt::ctl::skew
