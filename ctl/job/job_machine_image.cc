// What the journal is told of the job beside the ledger: the image of what may still change, and
// once each what is past (past.h).
#include <algorithm>
#include <utility>

#include "core/wire/packet.h"
#include "ctl/job/job_machine.h"

namespace antdt::ctl {
namespace {

ImageEpoch image_of(const EpochReport& e) {
  ImageEpoch kept{0, e.train_loss, e.seconds, e.samples, e.eval.has_value(), 0, {}, {}, {}};
  if (!e.eval) return kept;
  kept.eval_records = e.eval->records;
  kept.auc = e.eval->auc;
  kept.log_loss = e.eval->log_loss;
  kept.accuracy = e.eval->accuracy;
  return kept;
}

}  // namespace

// The image of a turn has what may still change, however long the job runs: the epoch that is
// trained and the one before it, whose evaluation may be under way, and the newest failures.
void JobMachine::persist_past() {
  constexpr std::size_t kPresentEpochs = 2;
  past_.keep_epochs(epochs_.size());
  while (past_.epochs().size() + kPresentEpochs < epochs_.size()) {
    past_.add(image_of(epochs_[past_.epochs().size()]));
    image_dirty_ = true;
  }
  for (FailureRecord& failure : lifecycle_.take_old_failures()) {
    past_.add(std::move(failure));
    image_dirty_ = true;
  }
  for (auto& [kind, bytes] : past_.take_records()) {
    out_->emplace_back(out::Persist{kind, std::move(bytes)});
  }
}

std::optional<std::string> JobMachine::image_if_changed() {
  if (!image_dirty_) return {};
  image_dirty_ = false;
  return wire::encode(image());
}

std::vector<shard_server::JournalEntry> JobMachine::snapshot() const {
  return {{std::string(shard_server::kLedgerKind), ledger_.image()},
          {std::string(shard_server::kAccountsKind), accounts_.image()},
          past_.section(),
          {std::string(kImageRecord), wire::encode(image())}};
}

JobImage JobMachine::image() const {
  JobImage image;
  image.lifecycle = lifecycle_.image();
  image.membership = membership_.image();
  image.servers = servers_.image();
  image.cut_phase = cut_phase_;
  image.injected = injected_;
  image.devices = devices_.said();
  image.plan = controller_.plan();
  for (const shard_server::SuspiciousDeath& d : suspects_.deaths()) {
    ImageDeath death{d.epoch, d.member.worker, d.member.attempt, {}};
    for (const shard_server::Interval& i : d.hand) {
      death.bounds.insert(death.bounds.end(), {i.from, i.to});
    }
    image.deaths.push_back(std::move(death));
  }
  image.epochs_before = std::min(past_.epochs().size(), epochs_.size());
  for (std::size_t i = image.epochs_before; i < epochs_.size(); ++i) {
    image.epochs.push_back(image_of(epochs_[i]));
  }
  return image;
}

}  // namespace antdt::ctl
