#include "trainer/ps_link/server_loop.h"

#include <algorithm>
#include <utility>

#include "trainer/ps_link/slice_file.h"

namespace antdt::ps {
namespace {

wire::Envelope of_server(const Group& group, std::uint32_t index) {
  wire::Envelope envelope;
  envelope.worker = {'s', index};
  envelope.generation = group.generation;
  return envelope;
}

}  // namespace

Result<std::unique_ptr<ServerLoop>> ServerLoop::open(EventLoop& loop, transport::Context& context,
                                                     Group group, std::uint32_t index) {
  ANTDT_TRY(auto socket, transport::Socket::bind_ipc(context, group.sockets.at(index)));
  std::unique_ptr<ServerLoop> server(
      new ServerLoop(loop, std::move(group), index, std::move(socket)));
  for (std::uint32_t other = 0; other < server->group_.sockets.size(); ++other) {
    if (other == index) continue;
    ANTDT_TRY(auto link, transport::Socket::connect_ipc(context, server->group_.sockets[other]));
    server->connect(other, std::move(link));
  }
  return server;
}

ServerLoop::ServerLoop(EventLoop& loop, Group group, std::uint32_t index, transport::Socket socket)
    : loop_(loop),
      group_(std::move(group)),
      index_(index),
      socket_(std::move(socket)),
      server_(group_.consistency, group_.version),
      closer_(group_.consistency == Consistency::kBarrier, group_.version),
      cut_writer_(loop) {
  server_.add_workers(group_.workers);
  std::vector<Member> own;
  std::ranges::copy_if(group_.workers, std::back_inserter(own),
                       [&](Member m) { return group_.home_of(m) == index_; });
  Closer::Effects effects;
  closer_.add_workers(own, group_.backups, effects);
  run(effects);
  loop_.watch_socket(socket_, [this] { receive(); });
  loop_.at_turn_end([this] { flush(); });
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

// ------------------------------------------------------------------- requests

void ServerLoop::receive() {
  // A bounded number, so that acknowledgements get their turn too.
  for (int n = 0; n < 64; ++n) {
    const auto packet = socket_.receive();
    if (!packet) return;
    ++requests_;
    on_packet(*packet);
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
  if (kind == wire::PsCut::kKind) return on_cut(packet, *envelope);
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
  ask_server<wire::PsIdle>(packet, envelope);
  Closer::Effects effects;
  closer_.idle({envelope.worker, envelope.attempt}, effects);
  run(effects);
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
      // Applied here first: whoever hears of it and pulls from here sees it.
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
  answer(packet, envelope, apply(envelope.worker.index, *decision));
}

wire::PsApplied ServerLoop::apply(std::uint32_t home, const wire::PsDecision& decision) {
  const std::uint64_t before = server_.decided(home);
  const wire::PsApplied applied = server_.apply(home, decision, replies_);
  if (decision.cut != 0 && applied.number > before) begin_cut(decision);
  return applied;
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
  for (const wire::PsDecision& decision : decisions_) {
    if (decision.number <= std::max(peer.sent, peer.acknowledged)) continue;
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
    if (group_.server_of_slice(slice) == index_) own.push_back(slice);
  }
  return own;
}

Status ServerLoop::restore_slices() {
  if (group_.restore.empty()) return {};
  for (const std::uint32_t slice : own_slices()) {
    ANTDT_RETURN_IF_ERROR(read_slice(group_.restore, *server_.store(), slice));
  }
  return {};
}

void ServerLoop::on_cut(const wire::Packet& packet, const wire::Envelope& envelope) {
  const auto message = wire::decode<wire::PsCut>(packet.body);
  if (!message || message->number == 0) {
    return answer(packet, envelope, wire::Refused{"invalid", "not a checkpoint's number"});
  }
  if (group_.consistency != Consistency::kBarrier) {
    return answer(packet, envelope,
                  wire::Refused{"unsupported", "checkpoints need sync = \"ps-bsp\" so far"});
  }
  if (server_.store() == nullptr) {
    return answer(packet, envelope, wire::Refused{"invalid", "no worker has opened a table yet"});
  }
  Cut& cut = cut_of(message->number);
  std::erase_if(cut.askers, [&](const auto& before) { return before.first.peer == packet.peer; });
  cut.askers.emplace_back(packet, envelope);
  if (cut.outcome) return answer_cut(cut);
  if (index_ != 0) return;
  Closer::Effects effects;
  closer_.cut(message->number, message->directory, effects);
  run(effects);
}

// Old ones make room: whoever still asks for one of them orders a new one.
ServerLoop::Cut& ServerLoop::cut_of(std::uint64_t number) {
  if (!cuts_.contains(number) && cuts_.size() >= kCutsKept) cuts_.erase(cuts_.begin());
  return cuts_[number];
}

void ServerLoop::begin_cut(const wire::PsDecision& decision) {
  const std::uint64_t number = decision.cut;
  if (server_.store() == nullptr) return;  // whoever asks is told so
  const auto done = [this, number, version = server_.version()](Result<CutWriter::Files> files) {
    Cut& cut = cut_of(number);
    if (files) {
      cut.outcome = wire::PsSaved{number, version, cut.pause_us, std::move(*files)};
    } else {
      cut.outcome = tl::unexpected<Error>(std::move(files).error());
    }
    answer_cut(cut);
  };
  const auto pause = cut_writer_.begin(*server_.store(), own_slices(), decision.directory, done);
  if (pause) {
    cut_of(number).pause_us = static_cast<std::uint64_t>(*pause / std::chrono::microseconds(1));
  } else {
    done(tl::unexpected<Error>(pause.error()));
  }
}

void ServerLoop::answer_cut(Cut& cut) {
  for (const auto& [packet, envelope] : std::exchange(cut.askers, {})) {
    if (*cut.outcome) {
      answer(packet, envelope, **cut.outcome);
    } else {
      answer(packet, envelope, wire::Refused{"io", cut.outcome->error().message});
    }
  }
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
