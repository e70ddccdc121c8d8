#include "trainer/torch/evaluation.h"

#include <algorithm>
#include <map>

namespace antdt::trainer {
namespace {

// A score that is no number counts as the lowest.
float clamp(float score) { return score >= 0 ? std::min(score, 1.0F) : 0.0F; }
bool is_positive(float label) { return label > 0.5F; }

struct BinCounts {
  std::uint64_t negatives = 0;
  std::uint64_t positives = 0;
};

// A histogram of predicted probabilities.
void count_scores(const torch::Tensor& scores, const torch::Tensor& labels,
                  wire::EvalPartial& partial) {
  constexpr std::uint32_t kBins = wire::EvalPartial::kScoreBins;
  if (!labels.defined() || labels.numel() != scores.numel()) {
    throw kit::UsageError("a metric with scores needs a column 'labels', one for each score");
  }
  const torch::Tensor score_row = scores.to(torch::kFloat32).contiguous();
  const torch::Tensor label_row = labels.to(torch::kFloat32).contiguous();
  const float* const score = score_row.data_ptr<float>();
  const float* const label = label_row.data_ptr<float>();
  std::map<std::uint32_t, BinCounts> counts;
  for (std::int64_t i = 0; i < scores.numel(); ++i) {
    const float clamped = clamp(score[i]);
    const auto bin = std::min(kBins - 1, static_cast<std::uint32_t>(clamped * kBins));
    ++(is_positive(label[i]) ? counts[bin].positives : counts[bin].negatives);
  }
  for (const auto& [bin, count] : counts) {
    partial.bins.push_back(bin);
    partial.negatives.push_back(count.negatives);
    partial.positives.push_back(count.positives);
  }
}

std::uint64_t right_at_half(const torch::Tensor& scores, const torch::Tensor& labels) {
  const float* const score = scores.data_ptr<float>();
  const float* const label = labels.data_ptr<float>();
  std::uint64_t right = 0;
  for (std::int64_t i = 0; i < scores.numel(); ++i) {
    right += (clamp(score[i]) >= 0.5F) == is_positive(label[i]) ? 1 : 0;
  }
  return right;
}

}  // namespace

kit::Sums count_by_label(const torch::Tensor& output, const Batch& batch) {
  if (!batch.labels.defined()) {
    throw kit::UsageError(
        "the data have no labels: register a metric and name it as trainer.metric, or let the "
        "reader make a column 'labels'");
  }
  kit::Sums sums;
  sums.loss = sample_losses(output, batch).sum(torch::kFloat64).item<double>();
  if (batch.classes == 2) {
    sums.scores = output.sigmoid().contiguous();
    sums.correct = right_at_half(sums.scores, batch.labels);
  }
  if (batch.classes > 2) {
    const torch::Tensor right = output.argmax(1).eq(batch.labels.to(torch::kInt64));
    sums.correct = static_cast<std::uint64_t>(right.sum().item<std::int64_t>());
  }
  return sums;
}

wire::EvalPartial evaluate_batch(Model& model, const kit::Metric& metric, const Batch& batch) {
  const torch::NoGradGuard no_grad;
  return evaluate_output(metric, model.forward(batch), batch);
}

wire::EvalPartial evaluate_output(const kit::Metric& metric, const torch::Tensor& output,
                                  const Batch& batch) {
  const kit::Sums sums = metric(output, batch);
  wire::EvalPartial partial;
  partial.records = static_cast<std::uint64_t>(batch.records);
  partial.loss_sum = sums.loss;
  partial.correct = sums.correct;
  if (sums.scores.defined()) count_scores(sums.scores, batch.labels, partial);
  return partial;
}

}  // namespace antdt::trainer
