// What the machine wants done.
#include "sim/daemon.h"
#include "sim/servers/ps_server_loop.h"

namespace antdt::sim {
namespace {

constexpr std::size_t kKeep = 3;

}  // namespace

void Daemon::perform(const ctl::job::PersistRecord& o) {
  pending_.push_back({std::string(o.kind), o.bytes});
}

void Daemon::perform(const ctl::job::SendToWorker& o) {
  const ctl::WorkerProcess* w = machine_->lifecycle().find(o.to.worker);
  const bool answers = inbound_ && inbound_->first == o.to;
  if (!answers && w == nullptr) return;
  ctl::job::SendToWorker message = o;
  if (sabotage_ != Sabotage::kNone) sabotage(message);
  if (const auto* grants = std::get_if<wire::Grants>(&message.body)) {
    if (grants->status == wire::GrantStatus::kEnd) outside_.said_end(*machine_, grants->phase);
  }
  send(answers ? inbound_->second : w->place.host, std::move(message));
}

void Daemon::sabotage(ctl::job::SendToWorker& message) {
  auto* grants = std::get_if<wire::Grants>(&message.body);
  if (grants == nullptr || grants->status == wire::GrantStatus::kStale) return;
  if (sabotage_ == Sabotage::kEndEarly && !machine_->ledger().complete() &&
      world_.rng().chance(0.02)) {
    grants->status = wire::GrantStatus::kEnd;
    grants->pieces.clear();
  }
  if (sabotage_ == Sabotage::kGrantTwice && !grants->pieces.empty()) {
    if (granted_ && granted_->phase == grants->phase && world_.rng().chance(0.1)) {
      grants->pieces = granted_->pieces;
    }
    granted_ = *grants;
  }
}

void Daemon::perform(const ctl::lifecycle::StartWorker& o) {
  requests_.asked(o.member, clock_.now());
  send(o.host, Start{o.member});
}

void Daemon::perform(const ctl::lifecycle::StopWorker& o) {
  requests_.asked(o.member, clock_.now());
  if (o.grace == Duration::zero()) outside_.killed(*machine_, o.member);
  send(o.host, Stop{o.member, o.grace});
}

// In files at once, and answered by a later turn: a crash may find a checkpoint that the journal
// does not know.
void Daemon::perform(const ctl::job::StoreCheckpoint& o) {
  const std::string name = fmt::format("l{:05}-s{:08}-g{:05}-{}.{}", o.lineage, o.written.step,
                                       o.generation, o.writer.worker, o.writer.attempt);
  const std::string error = store(o, name);
  feed_soon(ctl::job::CheckpointStored{o.written.number, o.written.step, error.empty() ? name : "",
                                       error});
}

std::string Daemon::store(const ctl::job::StoreCheckpoint& o, const std::string& name) {
  const bool of_servers = config_.spec.servers > 0;
  if (of_servers && !take_slices(o)) return "not all of its slices are there";
  const auto written = files_.written.find(o.written.directory);
  if (files_.checkpoints.contains(name)) {
    files_.written.erase(o.written.directory);
    return {};
  }
  if (written == files_.written.end()) return "no such directory";
  if (files_.full) return "no room for its manifest";
  auto& kept = files_.checkpoints[name] = {
      std::move(written->second), {}, o.lineage, o.ledger_image, o.accounts_image};
  files_.written.erase(written);
  if (of_servers) kept.slices = std::move(files_.slices.extract(o.written.directory).mapped());
  outside_.stored(kept);
  while (files_.checkpoints.size() > kKeep) files_.checkpoints.erase(files_.checkpoints.begin());
  return {};
}

// As one checkpoint: what each server wrote of it.
bool Daemon::take_slices(const ctl::job::StoreCheckpoint& o) {
  const auto slices = files_.slices.find(o.written.directory);
  if (slices == files_.slices.end() || slices->second.size() != o.written.files.size()) {
    return false;
  }
  Trained& state = files_.written[o.written.directory];
  state.model = tally_of(slices->second, config_.spec.train_records);
  state.step = o.written.step;
  return true;
}

// The newest that is whole.
void Daemon::perform(const ctl::job::FindCheckpoint&) {
  ctl::job::CheckpointFound found;
  for (const auto& [name, checkpoint] : files_.checkpoints) {
    if (checkpoint.damaged) continue;
    found = {name, checkpoint.state.step, checkpoint.ledger_image, checkpoint.accounts_image};
  }
  feed_soon(std::move(found));  // the end of that turn declares the skips
}

void Daemon::perform(const ctl::job::PublishNote& o) { world_.say("note {}: {}", o.kind, o.text); }

// Said to anybody when it is durable.
void Daemon::perform(const ctl::lifecycle::EndJob& o) {
  for (const std::string& host : hosts_) send(host, wire::Detach{});
  outcome_ = o.outcome;
}

}  // namespace antdt::sim
