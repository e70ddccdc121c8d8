#include "sim/checks.h"

#include <algorithm>
#include <set>
#include <utility>

#include "sim/servers/tally.h"

namespace antdt::sim {
namespace {

// A try that failed is repeated after two seconds.
constexpr Duration kChange = std::chrono::seconds(6);
// A longer silence means that the daemon was away, or that its machine was suspended.
constexpr Duration kAway = std::chrono::seconds(1);

std::uint64_t by_program(const shard_server::EpochAccount& account) {
  std::uint64_t records = 0;
  for (const auto& reason : account.skipped_by_program) {
    if (!reason.text.starts_with("the training was ended")) records += reason.records;
  }
  return records;
}

}  // namespace

Checks::Checks(World& world, std::uint64_t seed, const JobShape& shape)
    : world_(world),
      ledger_(grown_config(shape, seed).ledger),  // it reads the images of all times
      shape_(shape),
      servers_(world, shape.grown_records(), shape.sync) {}

void Checks::check_data(const Program& who) {
  if (who.host() != other_host_) return;
  world_.violate("other data", fmt::format("{}.{} trains on {}, which has other data",
                                           who.member().worker, who.member().attempt, who.host()));
}

void Checks::check_pin(const Program& who, Record record) {
  if (shape_.pins.empty() || shape_.pinned_to(record) == shape_.domain_of(who.host())) return;
  world_.violate("pinned", fmt::format("record {} is pinned to {}, and {} has it on {}", record,
                                       shape_.pins.name_of(shape_.pinned_to(record)), who.doing(),
                                       who.host()));
}

void Checks::gave_up(const ctl::JobMachine* machine, const Program& program) {
  if (machine == nullptr || !machine->lifecycle().is_current(program.member())) return;
  world_.violate("a current member is not refused", program.doing());
}

void Checks::took(const Worker& worker, Record record) {
  check_pin(worker, record);
  auto& hands = taken_[{worker.generation(), worker.phase().phase}];
  const auto skips = skips_.find(worker.phase().epoch.value);
  if (skips != skips_.end() && skips->second.contains(record) && skips->second.at(record) &&
      worker.generation() > *skips->second.at(record)) {
    world_.violate("skipped",
                   fmt::format("record {} was skipped, and is taken; {}", record, worker.doing()));
  }
  const auto [at, first] = hands.try_emplace(record, worker.member());
  if (first) return;
  world_.violate("one hand",
                 fmt::format("record {} was taken by {}.{} and by {}.{} in generation {}", record,
                             at->second.worker, at->second.attempt, worker.member().worker,
                             worker.member().attempt, worker.generation()));
}

void Checks::trained(const Worker& worker, Record record) {
  check_data(worker);
  const bool over = shape_.ends_at != Step{} && worker.step() >= shape_.ends_at;
  if (over && !shape_.ends_alone) {
    world_.violate("end of training", worker.doing() + " makes a step behind the last one");
  }
  const unsigned times = worker.model().tally.at(record);
  const unsigned epoch = worker.phase().epoch.value;
  const unsigned expected = epochs_with(record, epoch + 1);
  if (times <= expected && times + skips_before(epoch, record) >= expected) return;
  world_.violate("exactly once", fmt::format("record {} was trained {} times by epoch {}; {}",
                                             record, times, expected, worker.doing()));
}

void Checks::phase_done(const Worker& worker) {
  contains(worker.doing(), worker.model(), full(worker.phase().epoch.value + 1), true,
           "exactly once");
}

void Checks::consolidated(const Worker& worker) {
  check_entire(worker.doing(), worker.model());
  const std::uint64_t hash = worker.model().hash();
  const auto at = consolidated_.try_emplace({worker.generation(), worker.step()}, hash).first;
  if (at->second == hash) return;
  world_.violate("equal replicas", fmt::format("{} has another replica than members with which it "
                                               "was consolidated",
                                               worker.doing()));
}

void Checks::check_entire(const std::string& who, const Model& model) {
  if (model.held.empty()) return;
  const HeldUpdate& held = model.held.begin()->second;
  world_.violate("entire", fmt::format("{} has {} updates in part, the first one of domain {}", who,
                                       model.held.size(), held.domain));
}

void Checks::decided(Generation generation, std::uint32_t home, const wire::PsDecision& decision) {
  if (!exact()) return;  // its servers may differ, which "promise" checks
  servers_.decided(generation, home, decision, [this](std::uint32_t epoch, Record record) {
    const unsigned most = epochs_with(record, epoch + 1);
    return std::pair<unsigned, unsigned>(
        most - std::min<unsigned>(most, skips_before(epoch, record)), most);
  });
}

void Checks::phase_done(const PsWorker& worker) {
  servers_.phase_done(worker);
  const Model* const model = servers_.model_of(worker.generation());
  if (model == nullptr || !exact()) return;
  // Other members may already be in the next epoch.
  contains(worker.doing(), *model, full(worker.phase().epoch.value + 1), false, "model and ledger");
}

void Checks::skipped(const ctl::JobMachine& machine, const ctl::job::Skip& skip, bool durable) {
  const std::vector<Record>& order = order_of(skip.epoch);
  auto& skips = skips_[skip.epoch.value];
  skipped_[skip.epoch.value].add({skip.order.from, skip.order.to});
  for (std::uint64_t p = skip.order.from; p < skip.order.to; ++p) {
    auto& since = skips[order[p]];
    if (durable && !since) since = machine.generation();
  }
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
  if (!exact()) return check_promise(checkpoint, committed(*ledger));
  if (!shape_.in_collective()) servers_.stored(checkpoint.state.model);
  if (shape_.has_served_rows()) check_both_parts(checkpoint);
  const auto accounts = shard_server::Accounts::restore(checkpoint.accounts_image);
  if (!accounts) return world_.violate("saved", accounts.error().message);
  const std::string who = fmt::format("the checkpoint of step {}", checkpoint.state.step);
  check_entire(who, checkpoint.state.model);
  check_program_skips(who, checkpoint.state.model, *accounts);
  contains(who, checkpoint.state.model, committed(*ledger), true, "saved");
}

void Checks::check_both_parts(const SharedFiles::Checkpoint& checkpoint) {
  const Model rows = tally_of(checkpoint.slices, shape_.grown_records());
  for (std::size_t r = 0; r < rows.tally.size(); ++r) {
    if (rows.tally[r] == checkpoint.state.model.tally[r]) continue;
    return world_.violate("rows as the replica",
                          fmt::format("a checkpoint's rows have record {} {} times, and its dense "
                                      "part {} times",
                                      r, rows.tally[r], checkpoint.state.model.tally[r]));
  }
}

// The daemon ends such a process after 10 s without movement (machine_config).
void Checks::killed(const ctl::JobMachine& machine, const Worker& worker) {
  constexpr Duration kLong = std::chrono::seconds(8);
  const ctl::WorkerProcess* process = machine.lifecycle().find(worker.member().worker);
  const bool hung = process != nullptr && process->hung() && process->member() == worker.member();
  if (!hung || worker.moves_bytes_for() < kLong) return;
  world_.violate("patience",
                 fmt::format("{} is ended ({}), and has read or written for {:.0f} s",
                             worker.doing(), process->error, to_seconds(worker.moves_bytes_for())));
}

void Checks::check_promise(const SharedFiles::Checkpoint& checkpoint, const Tally& tally) {
  const auto accounts = shard_server::Accounts::restore(checkpoint.accounts_image);
  if (!accounts) return world_.violate("saved", accounts.error().message);
  std::set<Record> partial;
  for (Epoch epoch; epoch.value < shape_.epochs; ++epoch.value) {
    for (const auto& interval : accounts->partial(epoch.value).intervals()) {
      const auto& order = order_of(epoch);
      partial.insert(order.begin() + static_cast<std::ptrdiff_t>(interval.from),
                     order.begin() + static_cast<std::ptrdiff_t>(interval.to));
    }
  }
  const bool may_repeat = shape_.delivery == Delivery::kAtLeastOnce;
  const RowTally rows = row_tally_of(checkpoint.slices, shape_.grown_records());
  for (Record r = 0; r < shape_.grown_records(); ++r) {
    const bool too_often = rows.most[r] > tally.most[r];
    const bool too_seldom = rows.least[r] < tally.least[r];
    const bool allowed = partial.contains(r) && !(may_repeat ? too_seldom : too_often);
    if (allowed || (!too_often && !too_seldom)) continue;
    return world_.violate(
        "promise", fmt::format("{}: record {} is in the rows of the checkpoint of step {} {} to {} "
                               "times, {} to {} are committed{}",
                               to_string(shape_.delivery), r, checkpoint.state.step, rows.least[r],
                               rows.most[r], tally.least[r], tally.most[r],
                               partial.contains(r) ? ", and it is there in part" : ""));
  }
}

// -------------------------------------------------------------- the durable state

void Checks::durable(const ctl::JobMachine& machine,
                     const std::vector<std::shared_ptr<Worker>>& living, const SharedFiles& files) {
  const shard_server::Ledger& ledger = machine.ledger();
  if (ledger.phase().number > 0 && ledger.phase().kind == shard_server::PhaseKind::kTrain) {
    const auto size = sizes_.try_emplace(ledger.phase().epoch.value, ledger.records()).first;
    if (size->second != ledger.records()) {
      world_.violate("grown", fmt::format("epoch {} has {} records, and had {} before", size->first,
                                          ledger.records(), size->second));
    }
  }
  see_cut(machine);
  check_hands(ledger);
  check_monotone(machine);
  check_change(machine);
  shape_.in_collective() ? check_models(machine, living, files) : check_servers(machine);
}

void Checks::check_change(const ctl::JobMachine& machine) {
  const bool may_change = faults_are_over_ && machine.lifecycle().servers_wanted() > 0 &&
                          machine.lifecycle().state() == ctl::JobState::kTraining &&
                          machine.server_group().serving();
  const Duration now = world_.elapsed();
  const Duration passed = now - std::exchange(looked_, now);
  if (!may_change) return void(idle_ = {});
  const ctl::LifecycleImage image = machine.lifecycle().image();
  const bool all_here =
      std::ranges::all_of(machine.lifecycle().workers(), [](const ctl::WorkerProcess& w) {
        return !w.apart() || w.state == ctl::WorkerProcess::kJoined ||
               w.state == ctl::WorkerProcess::kRemoved;
      });
  if (!all_here || image.last_cut > 0) return void(idle_ = {});
  if (!image.checkpoint_pending && passed < kAway) idle_ += passed;
  if (idle_ <= kChange) return;
  world_.violate("change", fmt::format("nothing is done about {} servers that are to become {}",
                                       machine.lifecycle().servers(), image.servers_wanted));
}

void Checks::see_cut(const ctl::JobMachine& machine) {
  const shard_server::Phase& phase = machine.ledger().phase();
  const std::uint32_t epoch = phase.epoch.value;
  const bool is_cut = phase.number > 0 && !machine.accounts().cut(epoch).empty();
  if (cut_ && !is_cut) {
    skips_[cut_->epoch] = std::move(cut_->skips);
    skipped_[cut_->epoch] = std::move(cut_->skipped);
    cut_.reset();
  }
  if (!is_cut || cut_) return;
  cut_ = Cut{epoch, skips_[epoch], skipped_[epoch]};
  const std::vector<Record>& order = order_of(Epoch{epoch});
  skipped_[epoch].add({0, order.size()});
  for (const Record record : order) {
    auto& since = skips_[epoch][record];
    if (!since) since = machine.generation();
  }
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
        // A record that is skipped after it was committed is no longer remembered as committed.
        if (skipped_[ledger.phase().epoch.value].outside(lost).empty()) continue;
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
    none.tally.resize(shape_.grown_records());
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
      contains(worker->doing(), worker->model(), least, in_new, "model and ledger");
      if (in_new) check_program_skips(worker->doing(), worker->model(), machine.accounts());
    }
  }
  if (newly) settled_ = membership.base;
}

void Checks::check_servers(const ctl::JobMachine& machine) {
  const Generation generation = machine.server_group().generation();
  const Model* const model = servers_.model_of(generation);
  if (!machine.server_group().serving() || model == nullptr || !exact()) return;
  contains(fmt::format("the group of generation {}", generation), *model,
           committed(machine.ledger()), false, "model and ledger");
}

void Checks::ended(const ctl::JobMachine& machine, const SharedFiles& files,
                   const ctl::Outcome& outcome) {
  if (outcome.state != JobEnd::kDone || outcome.code != 0) {
    return world_.violate("it ends well", fmt::format("{} {}: {}", outcome.state,
                                                      outcome.exit_class, outcome.first_cause));
  }
  check_accounts(machine);
  if (files.checkpoints.empty()) return world_.violate("saved", "the model was not kept");
  if (!shape_.in_collective() && exact())
    servers_.ended(files.checkpoints.rbegin()->second.state.model);
  if (!exact()) return;  // the last checkpoint already contains all records: see stored()
  const Model& kept = files.checkpoints.rbegin()->second.state.model;
  contains("the last checkpoint", kept, full(epochs_of(machine)), true, "exactly once");
  check_program_skips("the last checkpoint", kept, machine.accounts());
  std::uint64_t trained = 0, accounted = 0;
  for (const std::uint8_t times : kept.tally) trained += times;
  for (const shard_server::EpochAccount& e : machine.accounts().epochs()) {
    accounted += e.once + by_program(e);
  }
  if (trained < accounted) {
    world_.violate("accounts", fmt::format("{} are called trained once, and the model has {}",
                                           accounted, trained));
  }
}

std::uint32_t Checks::epochs_of(const ctl::JobMachine& machine) const {
  const auto& ends = machine.lifecycle().training_ends();
  return ends ? ends->epochs : shape_.epochs;
}

void Checks::check_program_skips(const std::string& who, const Model& model,
                                 const shard_server::Accounts& accounts) {
  for (const shard_server::EpochAccount& e : accounts.epochs()) {
    if (by_program(e) == model.skipped_in(e.epoch)) continue;
    world_.violate("program skips",
                   fmt::format("{} has {} skipped records of epoch {}, and {} are accounted", who,
                               model.skipped_in(e.epoch), e.epoch, by_program(e)));
  }
}

void Checks::check_accounts(const ctl::JobMachine& machine) {
  const shard_server::Accounts& accounts = machine.accounts();
  for (const shard_server::EpochAccount& e : accounts.epochs()) {
    const auto skips = skips_.find(e.epoch);
    const std::size_t may_miss = skips == skips_.end() ? 0 : skips->second.size();
    const std::uint64_t in_part = accounts.partial(e.epoch).size();
    const bool whole =
        e.once + e.repeated + e.lost + e.skipped == e.records && e.records == records_of(e.epoch);
    const bool kept =
        is_kept(shape_.delivery, e.repeated, e.lost) && e.repeated + e.lost <= in_part;
    const bool at_home = e.elsewhere == 0 && e.domains.empty() == shape_.pins.empty();
    if (at_home && whole && kept && e.skipped <= may_miss + by_program(e) && e.remaining == 0)
      continue;
    world_.violate("accounts",
                   fmt::format("epoch {}: {} once, {} repeated, {} lost, {} remaining, {} skipped "
                               "of {} that may be, {} in another domain",
                               e.epoch, e.once, e.repeated, e.lost, e.remaining, e.skipped,
                               may_miss, e.elsewhere));
  }
  if (accounts.epochs().size() != epochs_of(machine)) {
    world_.violate("accounts", fmt::format("{} epochs", accounts.epochs().size()));
  }
}

// ------------------------------------------------------------------------ helpers

const std::vector<Record>& Checks::order_of(Epoch epoch) {
  const std::uint64_t records = records_of(epoch.value);
  auto [at, is_new] = orders_.try_emplace({epoch, records});
  if (is_new) {
    shard_server::DataSet data = ledger_.train;
    data.records = records;
    const shard_server::EpochStream stream(data, epoch, shard_server::PhaseKind::kTrain);
    for (const wire::Piece& piece : stream.pieces(0, stream.size())) {
      append_records(piece, at->second);
    }
  }
  return at->second;
}

std::uint8_t Checks::skips_before(std::uint32_t epoch, Record record) const {
  std::uint8_t times = 0;
  for (const auto& [of, records] : skips_) {
    if (of < epoch && records.contains(record)) ++times;
  }
  return times;
}

std::uint64_t Checks::records_of(std::uint32_t epoch) const {
  const auto size = sizes_.find(epoch);
  return size == sizes_.end() ? shape_.train_records : size->second;
}

unsigned Checks::epochs_with(Record record, std::uint32_t epochs) const {
  if (record < shape_.train_records) return epochs;
  unsigned count = 0;
  for (std::uint32_t epoch = 0; epoch < epochs; ++epoch) count += record < records_of(epoch);
  return count;
}

Checks::Tally Checks::full(std::uint32_t epochs) const {
  Tally tally;
  for (Record r = 0; r < shape_.grown_records(); ++r) {
    tally.least.push_back(static_cast<std::uint8_t>(epochs_with(r, epochs)));
  }
  tally.most = tally.least;
  if (skips_.empty()) return tally;
  for (Record r = 0; r < tally.least.size(); ++r) tally.least[r] -= skips_before(epochs, r);
  return tally;
}

Checks::Tally Checks::committed(const shard_server::Ledger& ledger) {
  const shard_server::Phase& phase = ledger.phase();
  const bool trains = phase.number > 0 && phase.kind == shard_server::PhaseKind::kTrain;
  const bool evaluates = phase.number > 0 && !trains;
  Tally tally = full(phase.epoch.value + (evaluates ? 1 : 0));
  if (!trains) return tally;
  const std::vector<Record>& order = order_of(phase.epoch);
  for (const auto& interval : ledger.committed_positions().intervals()) {
    for (std::uint64_t p = interval.from; p < interval.to; ++p) {
      ++tally.least[order[p]];
      ++tally.most[order[p]];
    }
  }
  // A record that is skipped after it was committed is no longer remembered as committed.
  const auto skips = skips_.find(phase.epoch.value);
  if (skips == skips_.end()) return tally;
  for (const auto& [record, generation] : skips->second) {
    tally.most[record] = static_cast<std::uint8_t>(epochs_with(record, phase.epoch.value + 1));
  }
  return tally;
}

void Checks::contains(const std::string& who, const Model& model, const Tally& tally, bool exactly,
                      const char* invariant) {
  for (std::size_t r = 0; r < tally.least.size(); ++r) {
    const std::uint8_t times = model.tally[r];
    if (times >= tally.least[r] && (!exactly || times <= tally.most[r])) continue;
    return world_.violate(
        invariant, fmt::format("{} has trained record {} {} times, and it must be {}{}", who, r,
                               times, exactly ? "" : "at least ", tally.least[r]));
  }
}

}  // namespace antdt::sim
