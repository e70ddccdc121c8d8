#include "trainer/ps_link/server_loop.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "trainer/ps_link/placement.h"
#include "trainer/ps_link/slice_file.h"

namespace antdt::ps {
namespace {

constexpr const char* kOvertaken = "a later checkpoint was ordered before it";

wire::Envelope of_server(const Group& group, std::uint32_t index) {
  wire::Envelope envelope;
  envelope.worker = {'s', index};
  envelope.generation = group.generation;
  return envelope;
}

std::string below(const std::string& root, const std::string& directory) {
  return std::filesystem::path(root) / directory;
}

}  // namespace

Result<std::unique_ptr<ServerLoop>> ServerLoop::open(EventLoop& loop, transport::Context& context,
                                                     transport::Socket& socket, Group group,
                                                     std::uint32_t index) {
  std::unique_ptr<ServerLoop> server(new ServerLoop(loop, std::move(group), index, socket));
  for (std::uint32_t other = 0; other < server->group_.sockets.size(); ++other) {
    if (other == index) continue;
    ANTDT_TRY(auto link, transport::Socket::connect_ipc(context, server->group_.sockets[other]));
    server->connect(other, std::move(link));
  }
  return server;
}

ServerLoop::ServerLoop(EventLoop& loop, Group group, std::uint32_t index, transport::Socket& socket)
    : loop_(loop),
      group_(std::move(group)),
      index_(index),
      socket_(socket),
      server_(group_.consistency, group_.version,
              homes_of(group_.consistency, group_.sockets.size())),
      // The updates before the group are counted once (PsIdled).
      closer_(group_.consistency == Consistency::kBarrier, index == 0 ? group_.version : 0),
      cut_writer_(loop) {
  add_workers(group_.workers);
  loop_.watch_socket(socket_, [this] { receive(); });
  say_again();
}

ServerLoop::~ServerLoop() {
  loop_.cancel(again_);
  for (const auto& peer : peers_) loop_.unwatch_socket(peer->socket);
  loop_.unwatch_socket(socket_);
}

void ServerLoop::connect(std::uint32_t index, transport::Socket link) {
  Peer& peer = *peers_.emplace_back(std::make_unique<Peer>(Peer{index, std::move(link)}));
  loop_.watch_socket(peer.socket, [this, &peer] { on_acknowledged(peer); });
}

// --------------------------------------------------------------------- workers

bool ServerLoop::is_home_of(const wire::PsMember& member) const {
  return home_of(group_.consistency, member.worker, group_.sockets.size()) == index_;
}

void ServerLoop::add_workers(const std::vector<Member>& workers) {
  server_.add_workers(workers);
  std::vector<Member> own;
  std::ranges::copy_if(workers, std::back_inserter(own), [&](Member m) {
    return is_home_of({m.worker, m.attempt});
  });
  Closer::Effects effects;
  closer_.add_workers(own, group_.backups, effects);
  run(effects);
}

void ServerLoop::serve(const wire::PsServe& now) {
  group_.backups = now.backups;
  std::vector<Member> workers;
  for (const wire::PsMember& m : now.workers) workers.push_back({m.worker, m.attempt});
  add_workers(workers);
  Closer::Effects effects;
  for (const wire::PsMember& m : now.leaving) {
    if (is_home_of(m)) std::ignore = closer_.revoke({m.worker, m.attempt}, effects);
  }
  run(effects);
  flush();
}

std::vector<wire::PsPlaces> ServerLoop::left(const std::vector<wire::PsMember>& members) const {
  std::vector<wire::PsPlaces> places;
  for (const wire::PsMember& m : members) {
    if (is_home_of(m)) places.push_back(closer_.places({m.worker, m.attempt}));
  }
  return places;
}

wire::PsStats ServerLoop::stats() {
  wire::PsStats stats;
  if (const Store* store = server_.store()) {
    stats.rows = store->rows();
    stats.bytes = store->bytes();
  }
  stats.version = server_.version();
  stats.requests = requests_;
  const auto times = service_times_.take();
  stats.service_us_p50 = times.p50;
  stats.service_us_p99 = times.p99;
  stats.pushes_applied = closer_.counts().applied;
  stats.pushes_late = closer_.counts().late;
  stats.pushes_repeated = closer_.counts().repeated;
  stats.staleness_pushes = server_.staleness().pushes;
  stats.staleness_sum = server_.staleness().sum;
  stats.staleness_max = server_.staleness().most;
  return stats;
}

// ------------------------------------------------------------------- requests

void ServerLoop::receive() {
  // A bounded number, so that acknowledgements get their turn too.
  for (int n = 0; n < 64; ++n) {
    const auto packet = socket_.receive();
    if (!packet) return;
    ++requests_;
    const SteadyClock clock;
    const MonoTime begun = clock.now();
    on_packet(*packet);
    flush();
    service_times_.add(clock.now() - begun);
  }
}

void ServerLoop::on_packet(const wire::Packet& packet) {
  const auto envelope = wire::open_envelope(packet);
  if (!envelope) return;  // no message of ours: nobody to answer
  if (envelope->generation != group_.generation) {
    return answer(packet, *envelope,
                  wire::Refused{"stale", fmt::format("the server group is of generation {}, not {}",
                                                     group_.generation, envelope->generation)});
  }
  const std::string& kind = envelope->kind;
  if (kind == wire::PsPull::kKind) return ask_server<wire::PsPull>(packet, *envelope);
  if (kind == wire::PsPush::kKind) return ask_server<wire::PsPush>(packet, *envelope);
  if (kind == wire::PsCommit::kKind) return on_commit(packet, *envelope);
  if (kind == wire::PsDecision::kKind) return on_decision(packet, *envelope);
  if (kind == wire::PsIdle::kKind) return on_idle(packet, *envelope);
  if (kind == wire::PsOpen::kKind) return on_open(packet, *envelope);
  if (kind == wire::PsPut::kKind) return ask_server<wire::PsPut>(packet, *envelope);
  answer(packet, *envelope,
         wire::Refused{"unknown", fmt::format("a parameter server knows no '{}'", kind)});
}

template <class M>
void ServerLoop::ask_server(const wire::Packet& packet, const wire::Envelope& envelope) {
  const auto message = wire::decode<M>(packet.body);
  if (!message) {
    return answer(packet, envelope, wire::Refused{"invalid", message.error().message});
  }
  server_.on({packet.peer, {envelope.worker, envelope.attempt}, envelope.seq}, *message, replies_);
}

void ServerLoop::on_open(const wire::Packet& packet, const wire::Envelope& envelope) {
  const bool first = server_.store() == nullptr;
  ask_server<wire::PsOpen>(packet, envelope);
  if (!first || server_.store() == nullptr) return;
  if (const Status restored = restore_slices(); !restored) {
    server_.forget_store();
    replies_.back().body = wire::Refused{"corrupt", restored.error().message};
  }
}

void ServerLoop::on_idle(const wire::Packet& packet, const wire::Envelope& envelope) {
  const auto message = wire::decode<wire::PsIdle>(packet.body);
  if (!message) {
    return answer(packet, envelope, wire::Refused{"invalid", message.error().message});
  }
  const Member member{envelope.worker, envelope.attempt};
  // First the step that waited for nobody else: the answer counts it.
  Closer::Effects effects;
  closer_.idle(member, effects);
  run(effects);
  server_.on({packet.peer, member, envelope.seq}, *message, replies_, closer_.updates());
}

void ServerLoop::on_commit(const wire::Packet& packet, const wire::Envelope& envelope) {
  const auto message = wire::decode<wire::PsCommit>(packet.body);
  if (!message) {
    return answer(packet, envelope, wire::Refused{"invalid", message.error().message});
  }
  const Member member{envelope.worker, envelope.attempt};
  committing_[member] = {packet.peer, member, envelope.seq};
  Closer::Effects effects;
  closer_.commit(member, *message, effects);
  run(effects);
}

void ServerLoop::run(const Closer::Effects& effects) {
  const auto tell = [&](Member member, const auto& body) {
    const auto asker = committing_.find(member);
    if (asker == committing_.end()) return;
    wire::Envelope envelope;
    envelope.worker = member.worker;
    envelope.attempt = member.attempt;
    envelope.seq = asker->second.seq;
    wire::Packet packet = wire::make_packet(envelope, body);
    packet.peer = asker->second.peer;
    unsent_.push_back(std::move(packet));
    committing_.erase(asker);
  };
  for (const Closer::Effect& effect : effects) {
    if (const auto* decision = std::get_if<wire::PsDecision>(&effect)) {
      // Applied here first: whoever hears of it and pulls from here sees it, unless it
      // waits for a cut.
      std::ignore = apply(index_, *decision);
      if (!peers_.empty()) decisions_.push_back(*decision);
    } else if (const auto* a = std::get_if<Closer::Answer>(&effect)) {
      tell(a->to, a->decided);
    } else {
      const auto& refuse = std::get<Closer::Refuse>(effect);
      tell(refuse.to, refuse.refused);
    }
  }
}

// ------------------------------------------------------------------ decisions

void ServerLoop::on_decision(const wire::Packet& packet, const wire::Envelope& envelope) {
  const auto decision = wire::decode<wire::PsDecision>(packet.body);
  const bool of_peer = envelope.worker.role == 's' && envelope.worker.index != index_ &&
                       envelope.worker.index < group_.sockets.size();
  if (!decision || !of_peer) {
    return answer(packet, envelope, wire::Refused{"invalid", "not a decision of this group"});
  }
  const wire::PsApplied applied = apply(envelope.worker.index, *decision);
  // A home that hears of a cut before it is told to make it does not wait for that:
  // decisions are held back until every home has put its marker.
  if (decision->cut != 0) mark_cut(decision->cut, decision->directory);
  answer(packet, envelope, applied);
}

wire::PsApplied ServerLoop::apply(std::uint32_t home, const wire::PsDecision& decision) {
  std::ignore = server_.apply(home, decision, replies_);
  while (const auto cut = server_.due()) {
    begin_cut(*cut);
    server_.go_on(replies_);
  }
  return {server_.decided(home)};
}

void ServerLoop::on_acknowledged(Peer& peer) {
  while (const auto packet = peer.socket.receive()) {
    const auto applied = wire::open_reply<wire::PsApplied>(*packet);
    if (applied) peer.acknowledged = std::max(peer.acknowledged, applied->number);
  }
  std::uint64_t least = peer.acknowledged;
  for (const auto& other : peers_) least = std::min(least, other->acknowledged);
  while (!decisions_.empty() && decisions_.front().number <= least) {
    decisions_.pop_front();
  }
}

void ServerLoop::distribute(Peer& peer) {
  if (decisions_.empty()) return;
  const std::uint64_t told = std::max(peer.sent, peer.acknowledged);
  const std::uint64_t first = decisions_.front().number;  // numbers in a row
  for (std::size_t i = told < first ? 0 : told - first + 1; i < decisions_.size(); ++i) {
    const wire::PsDecision& decision = decisions_[i];
    const auto sent = peer.socket.send(wire::make_packet(of_server(group_, index_), decision));
    if (sent != transport::SendOutcome::kSent) return;
    peer.sent = decision.number;
  }
}

void ServerLoop::say_again() {
  for (const auto& peer : peers_) {
    // Acknowledged since the last time: what is on its way will be too.
    if (std::exchange(peer->acknowledged_before, peer->acknowledged) == peer->acknowledged) {
      peer->sent = peer->acknowledged;
    }
    distribute(*peer);
  }
  again_ = loop_.call_after(kAgain, [this] { say_again(); });
}

// ---------------------------------------------------------------- checkpoints

std::vector<std::uint32_t> ServerLoop::own_slices() const {
  std::vector<std::uint32_t> own;
  for (std::uint32_t slice = 0; slice < kSlices; ++slice) {
    if (server_of_slice(slice, group_.sockets.size()) == index_) own.push_back(slice);
  }
  return own;
}

Status ServerLoop::restore_slices() {
  if (group_.restore.empty()) return {};
  for (const std::uint32_t slice : own_slices()) {
    ANTDT_RETURN_IF_ERROR(read_slice(below(group_.root, group_.restore), *server_.store(), slice));
  }
  return {};
}

std::string ServerLoop::hindrance(std::uint64_t number) const {
  if (number == 0) return "checkpoints are numbered from 1";
  if (!cuts_.contains(number) && !cuts_.empty() && number < cuts_.rbegin()->first) {
    return kOvertaken;
  }
  if (server_.store() == nullptr) return "no worker has opened a table yet";
  return {};
}

void ServerLoop::cut(const wire::PsCut& order, Saved done) {
  const auto known = cuts_.find(order.number);
  if (known != cuts_.end() && known->second.outcome) return done(*known->second.outcome);
  wire::PsSaved saved;
  saved.number = order.number;
  saved.error = hindrance(order.number);
  if (!saved.error.empty()) return done(saved);
  cut_of(order.number).askers.push_back(std::move(done));
  mark_cut(order.number, order.directory);
  flush();
}

void ServerLoop::mark_cut(std::uint64_t number, const std::string& directory) {
  if (index_ >= homes_of(group_.consistency, group_.sockets.size())) return;
  Closer::Effects effects;
  closer_.cut(number, directory, effects);
  if (effects.empty()) return;
  cut_of(number).places = closer_.places();
  run(effects);
}

// Old ones make room: whoever still asks for one of them orders a new one.
ServerLoop::Cut& ServerLoop::cut_of(std::uint64_t number) {
  if (!cuts_.contains(number) && cuts_.size() >= kCutsKept) cuts_.erase(cuts_.begin());
  return cuts_[number];
}

void ServerLoop::begin_cut(const Server::Cut& due) {
  drop_cuts_before(due.number);
  Cut& cut = cut_of(due.number);
  cut.begun = true;
  wire::PsSaved saved;
  saved.number = due.number;
  saved.version = server_.version();
  saved.places = cut.places;
  if (server_.store() == nullptr) {
    saved.error = "no worker has opened a table yet";
    return finish_cut(std::move(saved));
  }
  // The child ends after the call that made it has told how long it took.
  const auto pause_us = std::make_shared<std::uint64_t>(0);
  const auto done = [this, saved, pause_us](Result<CutWriter::Files> files) mutable {
    saved.pause_us = *pause_us;
    if (files) {
      saved.files = std::move(*files);
    } else {
      saved.error = files.error().message;
    }
    finish_cut(std::move(saved));
  };
  const auto pause =
      cut_writer_.begin(*server_.store(), own_slices(), below(group_.root, due.directory), done);
  if (pause) {
    *pause_us = static_cast<std::uint64_t>(*pause / std::chrono::microseconds(1));
  } else {
    saved.error = pause.error().message;
    finish_cut(std::move(saved));
  }
}

// Their markers were passed by those of a later one.
void ServerLoop::drop_cuts_before(std::uint64_t number) {
  for (auto& [earlier, cut] : cuts_) {
    if (earlier >= number || cut.begun || cut.outcome) continue;
    wire::PsSaved saved;
    saved.number = earlier;
    saved.error = kOvertaken;
    finish_cut(std::move(saved));
  }
}

void ServerLoop::finish_cut(wire::PsSaved saved) {
  Cut& cut = cut_of(saved.number);
  const wire::PsSaved& outcome = cut.outcome.emplace(std::move(saved));
  for (const Saved& done : std::exchange(cut.askers, {})) done(outcome);
}

// -------------------------------------------------------------------- answers

template <class T>
void ServerLoop::answer(const wire::Packet& packet, const wire::Envelope& envelope, const T& body) {
  wire::Packet reply = wire::make_packet(envelope, body);
  reply.peer = packet.peer;
  unsent_.push_back(std::move(reply));
}

void ServerLoop::flush() {
  for (const ReplyTo& reply : replies_) {
    wire::Envelope envelope;
    envelope.worker = reply.to.member.worker;
    envelope.attempt = reply.to.member.attempt;
    envelope.seq = reply.to.seq;
    wire::Packet packet =
        std::visit([&](const auto& body) { return wire::make_packet(envelope, body); }, reply.body);
    packet.peer = reply.to.peer;
    unsent_.push_back(std::move(packet));
  }
  replies_.clear();
  // A peer that is gone or does not read asks again; it holds up nobody else.
  for (const wire::Packet& packet : unsent_) std::ignore = socket_.send(packet);
  unsent_.clear();
  for (const auto& peer : peers_) distribute(*peer);
}

}  // namespace antdt::ps
