#include "ctl/job/observers/training_series.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace antdt::ctl {
namespace {

constexpr double kNotKnown = std::numeric_limits<double>::quiet_NaN();

}  // namespace

void TrainingSeries::restore(const std::vector<ImageEpoch>& past,
                             const std::vector<ImageEpoch>& present,
                             const std::optional<ImageTraining>& training, double seconds) {
  const auto put = [this](const ImageEpoch& e) {
    EpochReport report{e.train_loss, e.samples, e.seconds, std::nullopt};
    if (e.evaluated) report.eval = {e.auc, e.log_loss, e.accuracy, e.eval_records, e.eval_named};
    epochs_.push_back(report);
  };
  std::ranges::for_each(past, put);
  std::ranges::for_each(present, put);
  if (!training) return progress_.restore(0, std::nullopt, std::nullopt);
  const auto& began_s = training->phase_began_s;
  progress_.restore(training->phase, began_s ? std::optional(seconds - *began_s) : std::nullopt,
                    training->seconds);
}

void TrainingSeries::resume_phase(std::uint64_t phase, MonoTime now) {
  progress_.resume_phase(phase, now);
  saw_begin_ = false;
}

std::optional<std::string> TrainingSeries::open_phase(const wire::PhaseStart& start,
                                                      const shard_server::Phase& before,
                                                      std::uint64_t committed, MonoTime now) {
  std::optional<std::string> said;
  const bool trained = before.kind == shard_server::PhaseKind::kTrain && before.number > 0;
  // All members have reported what they did.
  if (members_add_up_ && trained) said = close(before.epoch, committed, now);
  forget_members();
  saw_begin_ = true;
  if (start.what != wire::PhaseKind::kTrain && start.what != wire::PhaseKind::kEval) return said;
  if (epochs_.size() <= start.epoch.value) epochs_.resize(start.epoch.value + 1);
  if (start.what == wire::PhaseKind::kTrain) progress_.begin_phase(start.phase, now);
  return said;
}

void TrainingSeries::hear(Member member, const wire::Progress& progress, std::uint64_t open_phase,
                          MonoTime now) {
  if (!members_add_up_) return progress_.update(progress, now);
  if (progress.phase != open_phase) return;
  if (!own_.contains(member) && !saw_begin_) progress_.leave_out_of_recent(progress);
  add_up(member, progress);
  // Members that have left reported before what they did.
  wire::Progress all = progress;
  all.step = sums_.step;
  all.samples = sums_.samples;
  all.loss_sum = sums_.loss;
  all.weight_sum = sums_.weight;
  progress_.update(all, now);
}

void TrainingSeries::Sums::add(const wire::Progress& part) {
  step = std::max(step, part.step);
  samples += part.samples;
  loss += part.loss_sum;
  weight += part.weight_sum;
}

void TrainingSeries::Sums::take_out(const wire::Progress& part) {
  samples -= part.samples;
  loss -= part.loss_sum;
  weight -= part.weight_sum;
}

void TrainingSeries::add_up(Member member, const wire::Progress& progress) {
  const auto [own, is_new] = own_.try_emplace(member);
  if (!is_new) sums_.take_out(own->second);
  own->second = progress;
  sums_.add(progress);
  if (++heard_ < own_.size()) return;
  heard_ = 0;
  sums_ = {};
  for (const auto& [_, part] : own_) sums_.add(part);
}

void TrainingSeries::forget_members() {
  own_.clear();
  sums_ = {};
  heard_ = 0;
}

std::optional<std::string> TrainingSeries::diverged(const wire::Progress& progress) {
  if (std::isfinite(progress.loss_sum) || diverged_in_ == progress.phase) return {};
  diverged_in_ = progress.phase;
  return fmt::format(
      "the training loss is {} by step {}. antdt data which RUN --step {} names the records of a "
      "step; a lower learning rate or clipped gradients may help",
      progress.loss_sum, progress.step, progress.step);
}

std::optional<std::string> TrainingSeries::compared(const wire::StepKinds& kinds) {
  if (std::exchange(kinds_, kinds) == kinds) return {};
  const auto ms = [](std::uint64_t us) { return static_cast<double>(us) / 1000; };
  return fmt::format(
      "steps {}: a shared step takes {:.2f} ms, and {:.2f} ms if each worker computes "
      "its own part alone",
      kinds.shares ? "stay shared" : "are not shared for now", ms(kinds.shared_us),
      ms(kinds.alone_us));
}

std::optional<std::string> TrainingSeries::member_done(Epoch epoch, MonoTime now) {
  return members_add_up_ ? std::nullopt : close(epoch, 0, now);
}

std::optional<std::string> TrainingSeries::close(Epoch epoch, std::uint64_t committed,
                                                 MonoTime now) {
  const EpochReport& report = epochs_.at(epoch.value);
  if (report.samples > 0) return {};  // an earlier member's report was used
  fill(epoch, committed, now);
  std::string text = fmt::format("epoch {}: ", epoch.value + 1);
  const auto loss = progress_.phase_loss();
  text += loss ? fmt::format("training loss {:.4f}", *loss) : "trained, its loss is not known";
  if (report.seconds > 0) {
    text += fmt::format(", {:.0f} samples/s", static_cast<double>(report.samples) / report.seconds);
  }
  return text;
}

// A member that left before this incarnation began tells it nothing of what it trained.
void TrainingSeries::fill(Epoch epoch, std::uint64_t committed, MonoTime now) {
  EpochReport& report = epochs_.at(epoch.value);
  report.train_loss = progress_.phase_loss().value_or(kNotKnown);
  report.samples = std::max(progress_.samples_in_phase(), committed);
  report.seconds = progress_.end_phase(now).value_or(0);
}

std::string TrainingSeries::evaluated(Epoch epoch, const EpochReport::Eval& eval) {
  epochs_.at(epoch.value).eval = eval;
  std::string text = fmt::format("epoch {}:", epoch.value + 1);
  if (eval.auc) text += fmt::format(" AUC {:.4f}", *eval.auc);
  if (eval.accuracy) text += fmt::format(" accuracy {:.4f}", *eval.accuracy);
  if (eval.log_loss) text += fmt::format(" log loss {:.4f}", *eval.log_loss);
  for (const wire::NamedSum& sum : eval.named) {
    text += fmt::format(" {} {:.4g}", sum.name, sum.sum / static_cast<double>(eval.records));
  }
  return fmt::format("{} on {} records", text, eval.records);
}

std::optional<wire::Evaluated> TrainingSeries::newest_evaluation() const {
  const auto has = [](const EpochReport& epoch) { return epoch.eval.has_value(); };
  const auto found = std::find_if(epochs_.rbegin(), epochs_.rend(), has);
  if (found == epochs_.rend()) return {};
  const EpochReport::Eval& eval = *found->eval;
  const auto epoch = static_cast<std::uint32_t>(epochs_.rend() - found - 1);
  return wire::Evaluated{Epoch{epoch},  eval.records,  eval.auc,
                         eval.log_loss, eval.accuracy, eval.named};
}

// The time of what is trained once more was spent on the same records, so it is counted.
void TrainingSeries::go_back(const shard_server::Phase& phase, MonoTime now) {
  const bool is_open = progress_.open_phase() == phase.number;
  std::optional<double> spent = progress_.end_phase(now);
  progress_.forget();
  forget_members();
  saw_begin_ = false;
  diverged_in_ = 0;
  if (phase.number == 0) return epochs_.clear();
  epochs_.resize(phase.epoch.value + 1);
  EpochReport& epoch = epochs_.back();
  epoch.eval.reset();
  if (phase.kind != shard_server::PhaseKind::kTrain) return;
  if (!is_open) spent = epoch.seconds > 0 ? std::optional(epoch.seconds) : std::nullopt;
  epoch = {};
  progress_.reopen_phase(phase.number, spent, now);
}

void TrainingSeries::end(Epoch epochs) {
  if (epochs_.size() > epochs.value) epochs_.resize(epochs.value);
}

void TrainingSeries::cut_short(const wire::PhaseStart& open, std::uint64_t committed,
                               MonoTime now) {
  const bool in_training =
      open.what == wire::PhaseKind::kTrain && open.epoch.value < epochs_.size();
  if (in_training && epochs_[open.epoch.value].samples == 0) fill(open.epoch, committed, now);
}

ImageEpoch TrainingSeries::image_of(std::size_t epoch) const {
  const EpochReport& e = epochs_.at(epoch);
  ImageEpoch kept{0, e.train_loss, e.seconds, e.samples, e.eval.has_value(), 0, {}, {}, {}, {}};
  if (!e.eval) return kept;
  kept.eval_records = e.eval->records;
  kept.auc = e.eval->auc;
  kept.log_loss = e.eval->log_loss;
  kept.accuracy = e.eval->accuracy;
  kept.eval_named = e.eval->named;
  return kept;
}

ImageTraining TrainingSeries::image(double seconds, MonoTime now) const {
  ImageTraining kept{progress_.open_phase(), {}, progress_.ended_seconds()};
  if (const auto spent = progress_.phase_seconds(now)) kept.phase_began_s = seconds - *spent;
  return kept;
}

}  // namespace antdt::ctl
