#include "sim/checks.h"

#include <algorithm>

namespace antdt::sim {

Checks::Checks(World& world, shard_server::LedgerConfig ledger, const JobShape& shape)
    : world_(world), ledger_(ledger), shape_(shape) {}

void Checks::took(const Worker& worker, Record record) {
  auto& hands = taken_[{worker.generation(), worker.phase().phase}];
  const auto [at, first] = hands.try_emplace(record, worker.member());
  if (first) return;
  world_.violate("one hand",
                 fmt::format("record {} was taken by {}.{} and by {}.{} in generation {}", record,
                             at->second.worker, at->second.attempt, worker.member().worker,
                             worker.member().attempt, worker.generation()));
}

void Checks::trained(const Worker& worker, Record record) {
  const unsigned times = worker.state().model.tally.at(record);
  const unsigned expected = worker.phase().epoch.value + 1;
  if (times == expected) return;
  world_.violate("exactly once", fmt::format("record {} was trained {} times by epoch {}; {}",
                                             record, times, expected, worker.doing()));
}

void Checks::phase_done(const Worker& worker) {
  const std::vector<std::uint8_t> full(shape_.train_records,
                                       static_cast<std::uint8_t>(worker.phase().epoch.value + 1));
  contains(worker.doing(), worker.state().model, full, true, "exactly once");
}

void Checks::said_end(const ctl::JobMachine& machine, std::uint64_t phase) {
  const shard_server::Ledger& ledger = machine.ledger();
  if (ledger.phase().number > phase || ledger.complete()) return;
  world_.violate("end", fmt::format("phase {} has {} committed of {} records", phase,
                                    ledger.committed(), ledger.records()));
}

void Checks::stored(const SharedFiles::Checkpoint& checkpoint) {
  const auto ledger = shard_server::Ledger::restore(ledger_, checkpoint.ledger_image);
  if (!ledger) return world_.violate("saved", ledger.error().message);
  contains(fmt::format("the checkpoint of step {}", checkpoint.state.step), checkpoint.state.model,
           committed(*ledger), true, "saved");
}

// -------------------------------------------------------------- the durable state

void Checks::durable(const ctl::JobMachine& machine,
                     const std::vector<std::shared_ptr<Worker>>& living, const SharedFiles& files) {
  check_hands(machine.ledger());
  check_monotone(machine);
  check_models(machine, living, files);
}

void Checks::check_hands(const shard_server::Ledger& ledger) {
  const auto again = shard_server::Ledger::restore(ledger_, ledger.image());
  if (!again) world_.violate("one hand", again.error().message);
}

void Checks::check_monotone(const ctl::JobMachine& machine) {
  const shard_server::Ledger& ledger = machine.ledger();
  const Lineage lineage = machine.membership().lineage();
  shard_server::IntervalSet now = ledger.committed_positions();
  if (lineage == lineage_ && ledger.phase().number == phase_) {
    for (const auto& interval : committed_.intervals()) {
      for (const auto& lost : now.outside(interval)) {
        world_.violate("monotone", fmt::format("positions {}:{} of phase {} were committed",
                                               lost.from, lost.to, phase_));
      }
    }
  } else if (lineage == lineage_ && ledger.phase().number < phase_) {
    world_.violate("monotone",
                   fmt::format("phase {} after phase {}", ledger.phase().number, phase_));
  }
  lineage_ = lineage;
  phase_ = ledger.phase().number;
  committed_ = std::move(now);
}

void Checks::check_models(const ctl::JobMachine& machine,
                          const std::vector<std::shared_ptr<Worker>>& living,
                          const SharedFiles& files) {
  const auto least = committed(machine.ledger());
  const ctl::MembershipImage membership = machine.membership().image();
  if (membership.base == Generation{}) {
    Model none;
    none.tally.resize(shape_.train_records);
    const auto saved = files.checkpoints.find(membership.restore);
    const bool from = saved != files.checkpoints.end();
    return contains(from ? membership.restore : "the beginning",
                    from ? saved->second.state.model : none, least, true, "model and ledger");
  }
  const bool newly = machine.membership().settled() && membership.base != settled_;
  for (const auto& worker : living) {
    const bool in_new = newly && worker->generation() == membership.base &&
                        machine.membership().contains(worker->member());
    if (in_new || worker->settled() == membership.base) {
      contains(worker->doing(), worker->state().model, least, in_new, "model and ledger");
    }
  }
  if (newly) settled_ = membership.base;
}

void Checks::ended(const ctl::JobMachine& machine, const SharedFiles& files,
                   const ctl::Outcome& outcome) {
  if (outcome.state != "done" || outcome.code != 0) {
    return world_.violate("it ends well", fmt::format("{} {}: {}", outcome.state,
                                                      outcome.exit_class, outcome.first_cause));
  }
  for (const shard_server::EpochAccount& e : machine.accounts().epochs()) {
    if (e.once == shape_.train_records && e.repeated + e.lost + e.remaining == 0) continue;
    world_.violate("accounts", fmt::format("epoch {}: {} once, {} repeated, {} lost, {} remaining",
                                           e.epoch, e.once, e.repeated, e.lost, e.remaining));
  }
  if (machine.accounts().epochs().size() != shape_.epochs) {
    world_.violate("accounts", fmt::format("{} epochs", machine.accounts().epochs().size()));
  }
  const std::vector<std::uint8_t> full(shape_.train_records,
                                       static_cast<std::uint8_t>(shape_.epochs));
  if (files.checkpoints.empty()) return world_.violate("saved", "the model was not kept");
  contains("the last checkpoint", files.checkpoints.rbegin()->second.state.model, full, true,
           "exactly once");
}

// ------------------------------------------------------------------------ helpers

const std::vector<Record>& Checks::order_of(Epoch epoch) {
  auto [at, is_new] = orders_.try_emplace(epoch);
  if (is_new) {
    const shard_server::EpochStream stream(ledger_.train, epoch, shard_server::PhaseKind::kTrain);
    for (const wire::Piece& piece : stream.pieces(0, stream.size())) {
      append_records(piece, at->second);
    }
  }
  return at->second;
}

std::vector<std::uint8_t> Checks::committed(const shard_server::Ledger& ledger) {
  const shard_server::Phase& phase = ledger.phase();
  const bool trains = phase.number > 0 && phase.kind == shard_server::PhaseKind::kTrain;
  const bool evaluates = phase.number > 0 && !trains;
  std::vector<std::uint8_t> tally(
      shape_.train_records, static_cast<std::uint8_t>(phase.epoch.value + (evaluates ? 1 : 0)));
  if (!trains) return tally;
  const std::vector<Record>& order = order_of(phase.epoch);
  for (const auto& interval : ledger.committed_positions().intervals()) {
    for (std::uint64_t p = interval.from; p < interval.to; ++p) ++tally[order[p]];
  }
  return tally;
}

void Checks::contains(const std::string& who, const Model& model,
                      const std::vector<std::uint8_t>& least, bool exactly, const char* invariant) {
  for (std::size_t r = 0; r < least.size(); ++r) {
    if (model.tally[r] == least[r] || (!exactly && model.tally[r] > least[r])) continue;
    return world_.violate(
        invariant, fmt::format("{} has trained record {} {} times, and it must be "
                               "{}{}",
                               who, r, model.tally[r], exactly ? "" : "at least ", least[r]));
  }
}

}  // namespace antdt::sim
