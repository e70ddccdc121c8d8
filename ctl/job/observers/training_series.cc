#include "ctl/job/observers/training_series.h"

#include <fmt/format.h>

#include <algorithm>

namespace antdt::ctl {

void TrainingSeries::restore(const std::vector<ImageEpoch>& past,
                             const std::vector<ImageEpoch>& present) {
  const auto put = [this](const ImageEpoch& e) {
    EpochReport report{e.train_loss, e.samples, e.seconds, std::nullopt};
    if (e.evaluated) report.eval = {e.auc, e.log_loss, e.accuracy, e.eval_records};
    epochs_.push_back(report);
  };
  std::ranges::for_each(past, put);
  std::ranges::for_each(present, put);
}

std::optional<std::string> TrainingSeries::open_phase(const wire::PhaseStart& start,
                                                      const shard_server::Phase& before,
                                                      MonoTime now) {
  std::optional<std::string> said;
  const bool trained = before.kind == shard_server::PhaseKind::kTrain && before.number > 0;
  // All members have reported what they did.
  if (members_add_up_ && trained) said = close(before.epoch, now);
  own_.clear();
  if (start.what != wire::PhaseKind::kTrain && start.what != wire::PhaseKind::kEval) return said;
  if (epochs_.size() <= start.epoch.value) epochs_.resize(start.epoch.value + 1);
  if (start.what == wire::PhaseKind::kTrain) progress_.begin_phase(start.phase, now);
  return said;
}

void TrainingSeries::hear(Member member, const wire::Progress& progress, std::uint64_t open_phase,
                          MonoTime now) {
  if (!members_add_up_) return progress_.update(progress, now);
  if (progress.phase != open_phase) return;
  own_[member] = progress;
  // Members that have left reported before what they did.
  wire::Progress all = progress;
  all.samples = 0;
  all.loss_sum = all.weight_sum = 0;
  for (const auto& [who, own] : own_) {
    all.step = std::max(all.step, own.step);
    all.samples += own.samples;
    all.loss_sum += own.loss_sum;
    all.weight_sum += own.weight_sum;
  }
  progress_.update(all, now);
}

std::optional<std::string> TrainingSeries::member_done(Epoch epoch, MonoTime now) {
  return members_add_up_ ? std::nullopt : close(epoch, now);
}

std::optional<std::string> TrainingSeries::close(Epoch epoch, MonoTime now) {
  const EpochReport& report = epochs_.at(epoch.value);
  if (report.samples > 0) return {};  // an earlier member's report was used
  fill(epoch, now);
  return fmt::format("epoch {}: training loss {:.4f}, {:.0f} samples/s", epoch.value + 1,
                     report.train_loss,
                     static_cast<double>(report.samples) / std::max(report.seconds, 1e-9));
}

void TrainingSeries::fill(Epoch epoch, MonoTime now) {
  EpochReport& report = epochs_.at(epoch.value);
  report.train_loss = progress_.phase_loss();
  report.samples = progress_.samples_in_phase();
  report.seconds = progress_.phase_seconds(now);
  progress_.end_phase(now);
}

std::string TrainingSeries::evaluated(Epoch epoch, const EpochReport::Eval& eval) {
  epochs_.at(epoch.value).eval = eval;
  std::string text = fmt::format("epoch {}:", epoch.value + 1);
  if (eval.auc) text += fmt::format(" AUC {:.4f}", *eval.auc);
  if (eval.accuracy) text += fmt::format(" accuracy {:.4f}", *eval.accuracy);
  if (eval.log_loss) text += fmt::format(" log loss {:.4f}", *eval.log_loss);
  return fmt::format("{} on {} records", text, eval.records);
}

std::optional<wire::Evaluated> TrainingSeries::newest_evaluation() const {
  const auto has = [](const EpochReport& epoch) { return epoch.eval.has_value(); };
  const auto found = std::find_if(epochs_.rbegin(), epochs_.rend(), has);
  if (found == epochs_.rend()) return {};
  const EpochReport::Eval& eval = *found->eval;
  const auto epoch = static_cast<std::uint32_t>(epochs_.rend() - found - 1);
  return wire::Evaluated{Epoch{epoch}, eval.records, eval.auc, eval.log_loss, eval.accuracy};
}

void TrainingSeries::go_back(const shard_server::Phase& phase, MonoTime now) {
  epochs_.resize(std::min<std::size_t>(epochs_.size(), phase.epoch.value));
  progress_ = {};
  if (phase.number == 0) return;
  epochs_.resize(phase.epoch.value + 1);
  progress_.begin_phase(phase.number, now);
}

void TrainingSeries::cut_short(const wire::PhaseStart& open, MonoTime now) {
  const bool in_training =
      open.what == wire::PhaseKind::kTrain && open.epoch.value < epochs_.size();
  if (in_training && epochs_[open.epoch.value].samples == 0) fill(open.epoch, now);
}

ImageEpoch TrainingSeries::image_of(std::size_t epoch) const {
  const EpochReport& e = epochs_.at(epoch);
  ImageEpoch kept{0, e.train_loss, e.seconds, e.samples, e.eval.has_value(), 0, {}, {}, {}};
  if (!e.eval) return kept;
  kept.eval_records = e.eval->records;
  kept.auc = e.eval->auc;
  kept.log_loss = e.eval->log_loss;
  kept.accuracy = e.eval->accuracy;
  return kept;
}

}  // namespace antdt::ctl
