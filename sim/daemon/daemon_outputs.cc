#include "sim/daemon/daemon_outputs.h"

#include "sim/daemon/daemon.h"

namespace antdt::sim {
namespace {

constexpr Duration kPauseBeforeLook = std::chrono::seconds(2);

}  // namespace

void DaemonOutputs::perform(ctl::job::Effects& effects) {
  for (ctl::job::Effect& effect : effects) {
    std::visit([this](const auto& o) { on(o); }, effect);
  }
}

void DaemonOutputs::repeat_requests() {
  const auto due = requests_.due(daemon_.machine_->lifecycle(), daemon_.clock_.now());
  for (const auto& request : due) std::visit([this](const auto& o) { on(o); }, request);
}

void DaemonOutputs::send(const std::string& host, decltype(ToAgent::body) body) {
  outbox_.push_back({host, {daemon_.incarnation_, std::move(body)}});
}

void DaemonOutputs::release() {
  for (Outgoing& out : std::exchange(outbox_, {})) {
    daemon_.outside_.to_agent(out.host, std::move(out.message));
  }
  for (const ctl::job::StoreCheckpoint& order : std::exchange(stores_, {})) store(order);
}

void DaemonOutputs::on(const ctl::job::PersistRecord& o) {
  pending.push_back({std::string(o.kind), o.bytes});
}

void DaemonOutputs::on(const ctl::job::SendToWorker& o) {
  const ctl::WorkerProcess* w = daemon_.machine_->lifecycle().find(o.to.worker);
  const bool answers = inbound_ && inbound_->first == o.to;
  if (!answers && w == nullptr) return;
  ctl::job::SendToWorker message = o;
  if (daemon_.run_.sabotage != Sabotage::kNone) sabotage(message);
  if (const auto* grants = std::get_if<wire::Grants>(&message.body)) {
    if (grants->status == wire::GrantStatus::kEnd) {
      daemon_.outside_.said_end(*daemon_.machine_, grants->phase);
    }
  }
  send(answers ? inbound_->second : w->place.host, std::move(message));
}

void DaemonOutputs::sabotage(ctl::job::SendToWorker& message) {
  auto* grants = std::get_if<wire::Grants>(&message.body);
  if (grants == nullptr || grants->status == wire::GrantStatus::kStale) return;
  Rng& rng = daemon_.world_.rng();
  if (daemon_.run_.sabotage == Sabotage::kEndEarly && !daemon_.machine_->ledger().complete() &&
      rng.chance(0.02)) {
    grants->status = wire::GrantStatus::kEnd;
    grants->pieces.clear();
  }
  if (daemon_.run_.sabotage == Sabotage::kGrantTwice && !grants->pieces.empty()) {
    if (granted_ && granted_->phase == grants->phase && rng.chance(0.1)) {
      grants->pieces = granted_->pieces;
    }
    granted_ = *grants;
  }
}

void DaemonOutputs::on(const ctl::lifecycle::StartWorker& o) {
  requests_.asked(o.member, daemon_.clock_.now());
  send(o.host, Start{o.member});
}

void DaemonOutputs::on(const ctl::lifecycle::StopWorker& o) {
  requests_.asked(o.member, daemon_.clock_.now());
  if (o.grace == Duration::zero()) daemon_.outside_.killed(*daemon_.machine_, o.member);
  send(o.host, Stop{o.member, o.grace});
}

// The files are stored at once, and a later turn answers: after a crash there may be a checkpoint
// that the journal does not know.
void DaemonOutputs::store(const ctl::job::StoreCheckpoint& o) {
  daemon_.feed_soon(daemon_.run_.files.store(o, daemon_.run_.config.spec, daemon_.outside_.stored));
}

// The skips are declared at the end of the turn that reads the answer.
void DaemonOutputs::on(const ctl::job::FindCheckpoint& o) {
  if (std::exchange(looking_, true)) return;
  const auto look = [this] {
    looking_ = false;
    daemon_.feed_soon(daemon_.run_.files.newest());
  };
  if (o.unread.empty()) return look();
  daemon_.process_.after(daemon_.clock_.real(kPauseBeforeLook), look);
}

void DaemonOutputs::on(const ctl::job::RemoveUnfinished& o) {
  daemon_.run_.files.remove_unfinished(o.up_to);
}

void DaemonOutputs::on(const ctl::job::PublishNote& o) {
  daemon_.world_.say("note {}: {}", o.kind, o.text);
}

// The end is announced to others only when it is durable.
void DaemonOutputs::on(const ctl::lifecycle::EndJob& o) {
  for (const std::string& host : daemon_.run_.hosts) send(host, wire::Detach{});
  outcome_ = o.outcome;
}

}  // namespace antdt::sim
