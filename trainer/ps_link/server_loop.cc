#include "trainer/ps_link/server_loop.h"

#include <algorithm>
#include <filesystem>
#include <thread>
#include <tuple>
#include <utility>

#include "core/log/log.h"
#include "core/wire/dispatch.h"
#include "trainer/ps/replica/copied.h"
#include "trainer/ps_link/group_links.h"
#include "trainer/ps_link/slice_file.h"

namespace antdt::ps {
namespace {

constexpr Duration kTurn = std::chrono::milliseconds(10);

std::uint64_t microseconds(Duration d) {
  return static_cast<std::uint64_t>(d / std::chrono::microseconds(1));
}

std::string below(const std::string& root, const std::string& directory) {
  return std::filesystem::path(root) / directory;
}

node::Start start_of(const Group& group, std::uint32_t index) {
  return {group.generation,  index,         static_cast<std::uint32_t>(group.sockets.size()),
          group.consistency, group.workers, group.backups,
          group.restore,     group.version};
}

template <class... M>
node::Request request_of(const wire::Packet& packet, const std::string& kind) {
  node::Request request =
      node::Unreadable{{"unknown", fmt::format("a parameter server knows no '{}'", kind)}};
  std::ignore = wire::dispatch<M...>(kind, packet.body, [&](auto message) {
    if (message) {
      request = std::move(*message);
    } else {
      request = node::Unreadable{{"invalid", message.error().message}};
    }
  });
  return request;
}

}  // namespace

Result<std::unique_ptr<ServerLoop>> ServerLoop::open(EventLoop& loop, transport::Context& context,
                                                     transport::Socket& socket, Group group,
                                                     std::uint32_t index) {
  std::unique_ptr<ServerLoop> server(
      new ServerLoop(loop, context, std::move(group), index, socket));
  // A backup says nothing to anybody.
  if (server->speaks()) {
    ANTDT_RETURN_IF_ERROR(server->connect_to_others());
  }
  ANTDT_RETURN_IF_ERROR(server->connect_to_backup());
  return server;
}

ServerLoop::ServerLoop(EventLoop& loop, transport::Context& context, Group group,
                       std::uint32_t index, transport::Socket& socket)
    : loop_(loop),
      context_(context),
      group_(std::move(group)),
      index_(index),
      socket_(socket),
      replica_(start_of(group_, index), group_.role, group_.view),
      cut_writer_(loop, group_.hang_after),
      state_maker_(loop, group_.hang_after) {
  loop_.watch_socket(socket_, [this] { receive(); });
  tick_ = loop_.call_after(ServerNode::kAgain, [this] { tick(); });
}

ServerLoop::~ServerLoop() {
  loop_.cancel(tick_);
  for (const auto& peer : peers_) loop_.unwatch_socket(peer->socket);
  if (backup_) loop_.unwatch_socket(*backup_);
  loop_.unwatch_socket(socket_);
}

// Those that are where they were keep their link.
Status ServerLoop::connect_to_others() {
  for (std::uint32_t other = 0; other < group_.sockets.size(); ++other) {
    if (other == index_) continue;
    const std::string& endpoint = group_.sockets[other];
    const auto known = std::ranges::find(peers_, other, [](const auto& p) { return p->index; });
    if (known != peers_.end()) {
      if ((*known)->endpoint == endpoint) continue;
      loop_.unwatch_socket((*known)->socket);
      peers_.erase(known);
      // What was on its way there is said here.
      no_room_.push_back({other, 1});
    }
    const std::string key = other < group_.keys.size() ? group_.keys[other] : std::string();
    ANTDT_TRY(auto link, connect_to_server(context_, endpoint, key, group_.own));
    Peer& peer =
        *peers_.emplace_back(std::make_unique<Peer>(Peer{other, endpoint, std::move(link)}));
    loop_.watch_socket(peer.socket, [this, &peer] { hear_from(peer); });
  }
  return {};
}

Status ServerLoop::connect_to_backup() {
  if (backup_) loop_.unwatch_socket(*backup_);
  backup_.reset();
  if (group_.backup.empty()) return {};
  ANTDT_TRY(backup_, connect_to_server(context_, group_.backup, group_.backup_key, group_.own));
  loop_.watch_socket(*backup_, [this] { hear_from_backup(); });
  return {};
}

// --------------------------------------------------------------- what is heard

void ServerLoop::serve(const wire::PsServe& now, Serving done) {
  const bool next_view = now.view > replica_.view();
  const bool moved = group_.sockets != now.servers;
  group_.sockets = now.servers;
  group_.keys = server_keys(now);
  if (next_view || (moved && speaks())) {
    if (const Status connected = connect_to_others(); !connected) {
      log_warn("{}", connected.error().message);
    }
    note_no_room();
  }
  if (next_view) take_up_view(now);
  if (done && speaks()) serving_.emplace(now.number, std::move(done));
  step(node::Event(node::Serve{now}));
}

// Whatever the other one still says is of an earlier view.
void ServerLoop::take_up_view(const wire::PsServe& now) {
  const bool promoted = role() == replica::Role::kBackup;
  const bool joins = now.replica == "primary";
  if (!joins && !now.replica.empty()) {
    return run(replica::Broken{"it is told to begin anew, and is a server already"});
  }
  log_info("s{} goes on alone in view {}{}{}", index_, now.view, promoted ? ": promoted" : "",
           joins ? "; another one joins" : "");
  group_.backup = joins ? now.other : std::string();
  group_.backup_key = now.other_key;
  if (const Status connected = connect_to_backup(); !connected) {
    log_warn("{}", connected.error().message);
  }
  joins ? step(replica::Join{now.view}) : step(replica::Alone{now.view});
}

void ServerLoop::cut(const wire::PsCut& order, Saved done) {
  ordered_.emplace(order.number, std::move(done));
  step(node::Event(node::OrderCut{order}));
}

void ServerLoop::tick() {
  tick_ = loop_.call_after(ServerNode::kAgain, [this] { tick(); });
  step(node::Event(node::Tick{}));
}

void ServerLoop::receive() {
  const SteadyClock clock;
  const MonoTime turn = clock.now();
  MonoTime now = turn;
  // A bounded time, so that everybody else gets a turn too.
  for (int n = 0; n < 64 && now - turn < kTurn; ++n) {
    const auto packet = socket_.receive();
    if (!packet) return;
    ++requests_;
    const MonoTime begun = now;
    hear(*packet);
    if (group_.drill.after_request) group_.drill.after_request(begun, requests_);
    now = clock.now();
    service_times_.add(now - begun);
    busy_ += now - begun;
  }
}

void ServerLoop::hear(const wire::Packet& packet) {
  const auto envelope = wire::open_envelope(packet);
  if (!envelope) return;  // no message of ours: nobody to answer
  if (envelope->kind == wire::PsCopied::kKind || envelope->kind == wire::PsImage::kKind) {
    return hear_primary(packet, *envelope);
  }
  auto request = request_of<wire::PsPull, wire::PsPush, wire::PsCommit, wire::PsDecision,
                            wire::PsIdle, wire::PsOpen, wire::PsPut>(packet, envelope->kind);
  if (!may_speak(packet.user, *envelope)) {
    request = node::Unreadable{
        {"invalid", fmt::format("the key of this link is that of {}, not of attempt {} of {}",
                                packet.user, envelope->attempt, envelope->worker)}};
  }
  step(node::Event(node::Asked{{packet.peer, {envelope->worker, envelope->attempt}, envelope->seq},
                               envelope->generation,
                               std::move(request)}));
}

// By the primary of this server, or by one that was; the view tells.
void ServerLoop::hear_primary(const wire::Packet& packet, const wire::Envelope& envelope) {
  const bool ours = envelope.worker == WorkerId{'s', index_} &&
                    envelope.generation == group_.generation && may_speak(packet.user, envelope);
  if (!ours) return;
  if (envelope.kind == wire::PsImage::kKind) {
    const auto image = wire::decode<wire::PsImage>(packet.body);
    if (!image) return run(replica::Broken{image.error().message});
    copied_by_ = packet.peer;
    return step(*image);
  }
  const auto message = wire::decode<wire::PsCopied>(packet.body);
  auto copied =
      message ? from_wire(*message, group_.generation) : tl::unexpected<Error>(message.error());
  if (!copied) return run(replica::Broken{copied.error().message});
  copied_by_ = packet.peer;
  step(*copied);
}

void ServerLoop::hear_from_backup() {
  while (backup_) {
    const auto packet = backup_->receive();
    if (!packet) return;
    const auto taken = wire::open_reply<wire::PsTaken>(*packet);
    if (taken) step(*taken);
  }
}

void ServerLoop::hear_from(Peer& peer) {
  while (const auto packet = peer.socket.receive()) {
    const auto applied = wire::open_reply<wire::PsApplied>(*packet);
    if (applied) step(node::Event(node::Acknowledged{peer.index, *applied}));
  }
}

wire::PsStats ServerLoop::stats() {
  wire::PsStats stats = replica_.node().stats();
  stats.requests = requests_;
  stats.busy_us = microseconds(busy_);
  const auto times = service_times_.take();
  stats.service_us_p50 = times.p50;
  stats.service_us_p99 = times.p99;
  stats.cuts = cuts_;
  stats.cut_pause_us_sum = microseconds(cut_pauses_);
  stats.cut_pause_us_max = microseconds(longest_cut_pause_);
  return stats;
}

// ---------------------------------------------------------------- what is done

void ServerLoop::step(const replica::Event& event) {
  for (const replica::Effect& effect : replica_.step(event)) {
    std::visit([this](const auto& e) { run(e); }, effect);
  }
  note_no_room();
}

void ServerLoop::note_no_room() {
  for (const node::NoRoom& full : std::exchange(no_room_, {})) {
    std::ignore = replica_.step(node::Event(full));
  }
}

void ServerLoop::run(const node::Effect& effect) {
  std::visit([this](const auto& e) { run(e); }, effect);
}

template <class M>
void ServerLoop::say_to_backup(const M& message) {
  wire::Envelope envelope;
  envelope.worker = {'s', index_};
  envelope.generation = group_.generation;
  // What finds no room is said again.
  if (backup_) std::ignore = backup_->send(wire::make_packet(envelope, message));
}

void ServerLoop::run(const replica::Copied& effect) { say_to_backup(to_wire(effect)); }

void ServerLoop::run(const replica::KeepState& effect) {
  const Status kept = state_maker_.begin(replica_.node());
  if (kept) return;
  log_warn("{}", kept.error().message);
  step(replica::Made{effect.image, {}, kept.error().message});
}

void ServerLoop::run(const replica::MakePiece& effect) {
  state_maker_.next([this, image = effect.image](Result<StatePiece> piece) {
    if (piece) return step(replica::Made{image, std::move(*piece), {}});
    log_warn("{}", piece.error().message);
    step(replica::Made{image, {}, piece.error().message});
  });
}

void ServerLoop::run(const replica::Taken& effect) {
  wire::Packet packet = wire::make_packet(wire::Envelope{}, effect);
  packet.peer = copied_by_;
  std::ignore = socket_.send(packet);
}

void ServerLoop::run(const replica::Broken& effect) {
  if (broken_) broken_(effect.error);
}

void ServerLoop::run(const ReplyTo& effect) {
  // It asked the primary that this one has replaced, and asks again here.
  if (effect.to.peer.empty()) return;
  wire::Envelope envelope;
  envelope.worker = effect.to.member.worker;
  envelope.attempt = effect.to.member.attempt;
  envelope.seq = effect.to.seq;
  wire::Packet packet =
      std::visit([&](const auto& body) { return wire::make_packet(envelope, body); }, effect.body);
  packet.peer = effect.to.peer;
  if (group_.drill.answer_delay) {
    std::this_thread::sleep_for(group_.drill.answer_delay(packet.body.size()));
  }
  // A peer that is gone or does not read asks again; it holds up nobody else.
  std::ignore = socket_.send(packet);
}

void ServerLoop::run(const node::Tell& effect) {
  wire::Envelope envelope;
  envelope.worker = {'s', index_};
  envelope.generation = group_.generation;
  const auto peer =
      std::ranges::find(peers_, effect.server, [](const auto& p) { return p->index; });
  // While it is being opened not everybody is there: what is lost is said again.
  if (peer == peers_.end()) return;
  const auto sent = (*peer)->socket.send(wire::make_packet(envelope, effect.decision));
  if (sent != transport::SendOutcome::kSent) {
    no_room_.push_back({effect.server, effect.decision.number});
  }
}

void ServerLoop::run(const node::Saved& effect) {
  const auto [from, to] = ordered_.equal_range(effect.saved.number);
  std::vector<Saved> askers;
  for (auto asker = from; asker != to; ++asker) askers.push_back(std::move(asker->second));
  ordered_.erase(from, to);
  for (const Saved& done : askers) done(effect.saved);
}

void ServerLoop::run(const node::Serving& effect) {
  const auto [from, to] = serving_.equal_range(effect.serving.number);
  std::vector<Serving> askers;
  for (auto asker = from; asker != to; ++asker) askers.push_back(std::move(asker->second));
  // Of those before it nobody waits for an answer any more.
  serving_.erase(serving_.begin(), to);
  for (const Serving& done : askers) done(effect.serving);
}

void ServerLoop::run(const node::Restore& effect) {
  const Status restored = restore_slices(effect.directory);
  step(node::Event(node::Restored{restored ? std::string() : restored.error().message}));
}

Status ServerLoop::restore_slices(const std::string& directory) {
  ServerNode& node = replica_.node();
  const std::string path = below(group_.root, directory);
  return read_slices(path, node.own_slices(), *node.store(),
                     [&](std::uint64_t done, std::uint64_t total) {
                       if (group_.reads) group_.reads(path, done, total);
                     });
}

void ServerLoop::run(const node::BeginCut& effect) {
  const auto done = [this, number = effect.number](Result<CutWriter::Files> files) {
    node::CutWritten written{number, {}, {}};
    if (files) {
      written.files = std::move(*files);
    } else {
      written.error = files.error().message;
    }
    step(node::Event(written));
  };
  // Who orders the next one waits for it no more, and may be about to end the job with that.
  const SteadyClock clock;
  const MonoTime stands_still = clock.now();
  const CutWriter::Done given_up = cut_writer_.give_up();
  ServerNode& node = replica_.node();
  const Status writes = cut_writer_.begin(*node.store(), node.own_slices(),
                                          below(group_.root, effect.directory), done);
  node::CutBegun begun{effect.number, 0, {}};
  if (writes) {
    const Duration pause = clock.now() - stands_still;
    begun.pause_us = microseconds(pause);
    ++cuts_;
    cut_pauses_ += pause;
    longest_cut_pause_ = std::max(longest_cut_pause_, pause);
  } else {
    begun.error = writes.error().message;
  }
  step(node::Event(begun));
  if (given_up) given_up(fail(ErrorKind::kRefused, "a later checkpoint was begun"));
}

}  // namespace antdt::ps
