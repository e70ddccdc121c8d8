#include "trainer/torch/evaluation.h"

#include <algorithm>
#include <map>

namespace antdt::trainer {
namespace {

struct BinCounts {
  std::uint64_t negatives = 0;
  std::uint64_t positives = 0;
};

void count_scores(const torch::Tensor& logits, const TensorBatch& batch,
                  wire::EvalPartial& partial) {
  constexpr std::uint32_t kBins = wire::EvalPartial::kScoreBins;
  const torch::Tensor scores = logits.sigmoid().contiguous();
  const float* const score = scores.data_ptr<float>();
  const float* const label = batch.labels.data_ptr<float>();
  std::map<std::uint32_t, BinCounts> counts;
  for (std::int64_t i = 0; i < scores.numel(); ++i) {
    // A score that is no number counts as the lowest.
    const float clamped = score[i] >= 0 ? std::min(score[i], 1.0F) : 0.0F;
    const auto bin = std::min(kBins - 1, static_cast<std::uint32_t>(clamped * kBins));
    const bool positive = label[i] > 0.5F;
    ++(positive ? counts[bin].positives : counts[bin].negatives);
    partial.correct += (clamped >= 0.5F) == positive ? 1 : 0;
  }
  for (const auto& [bin, count] : counts) {
    partial.bins.push_back(bin);
    partial.negatives.push_back(count.negatives);
    partial.positives.push_back(count.positives);
  }
}

}  // namespace

wire::EvalPartial evaluate_batch(const torch::Tensor& logits, const TensorBatch& batch,
                                 const data::DataShape& shape) {
  wire::EvalPartial partial;
  partial.records = static_cast<std::uint64_t>(batch.labels.numel());
  partial.loss_sum = sample_losses(logits, batch.labels, shape).sum(torch::kFloat64).item<double>();
  if (shape.classes == 2) count_scores(logits, batch, partial);
  if (shape.classes > 2) {
    const torch::Tensor right = logits.argmax(1).eq(batch.labels.to(torch::kInt64));
    partial.correct = static_cast<std::uint64_t>(right.sum().item<std::int64_t>());
  }
  return partial;
}

}  // namespace antdt::trainer
