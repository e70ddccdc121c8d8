#include "shard_server/accounts/evaluation.h"

#include <utility>

namespace antdt::shard_server {

Status check_partial(const wire::EvalPartial& partial) {
  const std::size_t bins = partial.bins.size();
  if (partial.negatives.size() != bins || partial.positives.size() != bins) {
    return fail(ErrorKind::kRefused,
                "partial evaluation: {} bins with {} counts of negatives and {} of positives", bins,
                partial.negatives.size(), partial.positives.size());
  }
  for (std::size_t i = 0; i < bins; ++i) {
    if (partial.bins[i] >= wire::EvalPartial::kScoreBins ||
        (i > 0 && partial.bins[i] <= partial.bins[i - 1])) {
      return fail(ErrorKind::kRefused,
                  "partial evaluation: bin {} is number {} of the list; bins rise and are below {}",
                  partial.bins[i], i, wire::EvalPartial::kScoreBins);
    }
  }
  if (const Status named = wire::check_sums(partial.named); !named) {
    return fail(ErrorKind::kRefused, "partial evaluation: {}", named.error().message);
  }
  return {};
}

void merge(wire::EvalPartial& sum, const wire::EvalPartial& part) {
  sum.records += part.records;
  sum.loss_sum += part.loss_sum;
  sum.correct += part.correct;
  wire::add(sum.named, part.named);
  if (part.bins.empty()) return;

  wire::EvalPartial merged;
  const auto take = [&merged](const wire::EvalPartial& from, std::size_t i) {
    if (merged.bins.empty() || merged.bins.back() != from.bins[i]) {
      merged.bins.push_back(from.bins[i]);
      merged.negatives.push_back(0);
      merged.positives.push_back(0);
    }
    merged.negatives.back() += from.negatives[i];
    merged.positives.back() += from.positives[i];
  };
  std::size_t a = 0, b = 0;
  while (a < sum.bins.size() || b < part.bins.size()) {
    const bool from_sum =
        b == part.bins.size() || (a < sum.bins.size() && sum.bins[a] <= part.bins[b]);
    from_sum ? take(sum, a++) : take(part, b++);
  }
  sum.bins = std::move(merged.bins);
  sum.negatives = std::move(merged.negatives);
  sum.positives = std::move(merged.positives);
}

EvalMetrics metrics(const wire::EvalPartial& sum) {
  EvalMetrics result;
  result.records = sum.records;
  if (sum.records > 0) {
    result.log_loss = sum.loss_sum / static_cast<double>(sum.records);
    result.accuracy = static_cast<double>(sum.correct) / static_cast<double>(sum.records);
    result.named = sum.named;
  }
  // Counts pairs of a negative and a positive sample in which the positive one has the higher
  // score.
  double ordered_pairs = 0, negatives = 0, positives = 0;
  for (std::size_t i = 0; i < sum.bins.size(); ++i) {
    const auto here = static_cast<double>(sum.positives[i]);
    ordered_pairs += here * (negatives + 0.5 * static_cast<double>(sum.negatives[i]));
    negatives += static_cast<double>(sum.negatives[i]);
    positives += here;
  }
  if (negatives > 0 && positives > 0) result.auc = ordered_pairs / (negatives * positives);
  return result;
}

}  // namespace antdt::shard_server
