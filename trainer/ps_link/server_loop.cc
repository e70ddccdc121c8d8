#include "trainer/ps_link/server_loop.h"

#include <algorithm>
#include <filesystem>
#include <thread>
#include <tuple>
#include <utility>

#include "core/check.h"
#include "core/log/log.h"
#include "core/wire/dispatch.h"
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

template <class... M>
node::Request request_of(const wire::Packet& packet, const std::string& kind) {
  node::Request request = node::Unreadable{
      {wire::RefusalCode::kUnknown, fmt::format("a parameter server knows no '{}'", kind)}};
  std::ignore = wire::dispatch<M...>(kind, packet.body, [&](auto message) {
    if (message) {
      request = std::move(*message);
    } else {
      request = node::Unreadable{{wire::RefusalCode::kInvalid, message.error().message}};
    }
  });
  return request;
}

void warn_of(const Status& opened) {
  if (!opened) log_warn("{}", opened.error().message);
}

}  // namespace

linked::Start start_of(const Group& group, std::uint32_t index) {
  return {{group.generation, index, static_cast<std::uint32_t>(group.sockets.size()),
           group.consistency, group.workers, group.backups, group.restore, group.version},
          group.role,
          group.view,
          group.sockets,
          group.keys,
          group.backup,
          group.backup_key};
}

Group group_of(const linked::Start& start) {
  Group group;
  group.generation = start.node.generation;
  group.sockets = start.endpoints;
  group.consistency = start.node.consistency;
  group.workers = start.node.workers;
  group.backups = start.node.backups;
  group.restore = start.node.restore;
  group.version = start.node.version;
  group.keys = start.keys;
  group.role = start.role;
  group.view = start.view;
  group.backup = start.backup;
  group.backup_key = start.backup_key;
  return group;
}

Result<std::unique_ptr<ServerLoop>> ServerLoop::open(EventLoop& loop, transport::Context& context,
                                                     transport::Socket& socket, Group group,
                                                     std::uint32_t index) {
  std::unique_ptr<ServerLoop> server(
      new ServerLoop(loop, context, std::move(group), index, socket));
  linked::Effects links;
  server->server_.begin(links);
  for (const linked::Effect& effect : links) {
    if (const auto* link = std::get_if<linked::OpenLink>(&effect)) {
      ANTDT_RETURN_IF_ERROR(server->links_.open(link->server, link->endpoint, link->key));
    } else if (const auto* backup = std::get_if<linked::OpenBackupLink>(&effect)) {
      ANTDT_RETURN_IF_ERROR(server->links_.open_backup(backup->endpoint, backup->key));
    }
  }
  return server;
}

ServerLoop::ServerLoop(EventLoop& loop, transport::Context& context, Group group,
                       std::uint32_t index, transport::Socket& socket)
    : loop_(loop),
      group_(std::move(group)),
      index_(index),
      socket_(socket),
      server_(start_of(group_, index)),
      links_(loop, context, group_.own,
             {[this](std::uint32_t from, const wire::Packet& packet) {
                const auto applied = wire::open_reply<wire::PsApplied>(packet);
                if (applied) feed(linked::of_node(node::DecisionsApplied{from, *applied}));
              },
              [this](const wire::Packet& packet) {
                const auto taken = wire::open_reply<wire::PsTaken>(packet);
                if (taken) feed(linked::BackupAnswered{*taken});
              }}),
      cut_writer_(loop, group_.hang_after),
      state_maker_(loop, group_.hang_after) {
  loop_.watch_socket(socket_, [this] { receive(); });
  tick_ = loop_.call_after(ServerNode::kAgain, [this] { tick(); });
}

ServerLoop::~ServerLoop() {
  loop_.cancel(tick_);
  loop_.unwatch_socket(socket_);
}

// --------------------------------------------------------------- what is heard

void ServerLoop::serve(const wire::PsServe& now, Serving done) {
  const bool next_view = now.view > server_.replica().view();
  const bool promoted = next_view && server_.replica().role() == replica::Role::kBackup;
  if (done) serving_.emplace(now.number, std::move(done));
  feed(linked::GroupOrdered{now});
  if (next_view && speaks()) {
    log_info("s{} goes on alone in view {}{}{}", index_, now.view, promoted ? ": promoted" : "",
             now.replica == wire::ReplicaRole::kPrimary ? "; another one joins" : "");
  }
}

void ServerLoop::cut(const wire::PsCut& order, Saved done) {
  ordered_.emplace(order.number, std::move(done));
  feed(linked::of_node(node::SlicesOrdered{order}));
}

void ServerLoop::tick() {
  tick_ = loop_.call_after(ServerNode::kAgain, [this] { tick(); });
  feed(linked::of_node(node::TimePassed{}));
}

void ServerLoop::receive() {
  const SteadyClock clock;
  const MonoTime turn = clock.now();
  MonoTime now = turn;
  // For a bounded time, so that all others get their turn, too.
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
  if (!envelope) return;  // it is not a message of this protocol, so there is nobody to answer
  if (envelope->kind == wire::PsCopied::kKind || envelope->kind == wire::PsImage::kKind) {
    return hear_primary(packet, *envelope);
  }
  auto request =
      request_of<wire::PsPull, wire::PsPush, wire::PsCommit, wire::PsDecision, wire::PsIdle,
                 wire::PsOpen, wire::PsPut, wire::PsStepPull, wire::PsStepPush>(packet,
                                                                                envelope->kind);
  if (!may_speak(packet.user, *envelope)) {
    request =
        node::Unreadable{{wire::RefusalCode::kInvalid,
                          fmt::format("the key of this link is that of {}, not of attempt {} of {}",
                                      packet.user, envelope->attempt, envelope->worker)}};
  }
  feed(linked::of_node(
      node::RequestHeard{{packet.peer, {envelope->worker, envelope->attempt}, envelope->seq},
                         envelope->generation,
                         std::move(request)}));
}

// From the present primary of this server, or an earlier one; the view distinguishes them.
void ServerLoop::hear_primary(const wire::Packet& packet, const wire::Envelope& envelope) {
  const bool ours = envelope.worker == WorkerId{'s', index_} &&
                    envelope.generation == group_.generation && may_speak(packet.user, envelope);
  if (!ours) return;
  if (envelope.kind == wire::PsImage::kKind) {
    auto image = wire::decode<wire::PsImage>(packet.body);
    if (!image) return feed(linked::CopyUnreadable{image.error().message});
    return feed(linked::ImageHeard{packet.peer, envelope.generation, std::move(*image)});
  }
  auto copied = wire::decode<wire::PsCopied>(packet.body);
  if (!copied) return feed(linked::CopyUnreadable{copied.error().message});
  feed(linked::CopyHeard{packet.peer, envelope.generation, std::move(*copied)});
}

wire::PsStats ServerLoop::stats() {
  wire::PsStats stats = server_.node().stats();
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

void ServerLoop::feed(linked::Input input) {
  inputs_.push_back(std::move(input));
  if (std::exchange(feeding_, true)) return;
  while (!inputs_.empty()) {
    const linked::Input next = std::move(inputs_.front());
    inputs_.pop_front();
    server_.step(next, effects_);
    for (const linked::Effect& effect : effects_) {
      std::visit([this](const auto& e) { perform(e); }, effect);
    }
    effects_.clear();
  }
  feeding_ = false;
}

// The result of a file operation comes before anything else.
void ServerLoop::answer(node::Input input) {
  ANTDT_CHECK(feeding_, "a file was read or written that nobody asked for");
  inputs_.push_front(linked::of_node(std::move(input)));
}

template <class M>
wire::Packet ServerLoop::packet_of(const M& message) const {
  wire::Envelope envelope;
  envelope.worker = {'s', index_};
  envelope.generation = group_.generation;
  return wire::make_packet(envelope, message);
}

void ServerLoop::perform(const linked::OpenLink& effect) {
  warn_of(links_.open(effect.server, effect.endpoint, effect.key));
}

void ServerLoop::perform(const linked::OpenBackupLink& effect) {
  warn_of(links_.open_backup(effect.endpoint, effect.key));
}

void ServerLoop::perform(const linked::SendCopy& effect) {
  links_.send_to_backup(packet_of(effect.copied));
}

void ServerLoop::perform(const linked::SendImage& effect) {
  links_.send_to_backup(packet_of(effect.image));
}

void ServerLoop::perform(const replica::KeepState& effect) {
  const Status kept = state_maker_.begin(server_.node());
  if (kept) return;
  log_warn("{}", kept.error().message);
  feed(replica::Input(replica::PieceMade{effect.image, {}, kept.error().message}));
}

void ServerLoop::perform(const replica::MakePiece& effect) {
  state_maker_.next([this, image = effect.image](Result<StatePiece> piece) {
    if (piece) return feed(replica::Input(replica::PieceMade{image, std::move(*piece), {}}));
    log_warn("{}", piece.error().message);
    feed(replica::Input(replica::PieceMade{image, {}, piece.error().message}));
  });
}

void ServerLoop::perform(const linked::AnswerPrimary& effect) {
  wire::Packet packet = wire::make_packet(wire::Envelope{}, effect.taken);
  packet.peer = effect.peer;
  std::ignore = socket_.send(packet);
}

void ServerLoop::perform(const replica::BreakUp& effect) {
  if (broken_) broken_(effect);
}

void ServerLoop::perform(const ReplyTo& effect) {
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
  // A peer that is gone or does not read repeats its request; it blocks no other peer.
  std::ignore = socket_.send(packet);
}

void ServerLoop::perform(const node::TellServer& effect) {
  if (links_.send(effect.server, packet_of(effect.decision))) return;
  feed(linked::of_node(node::TellUnsent{effect.server, effect.decision.number}));
}

void ServerLoop::perform(const node::AnswerCut& effect) {
  const auto [from, to] = ordered_.equal_range(effect.saved.number);
  std::vector<Saved> askers;
  for (auto asker = from; asker != to; ++asker) askers.push_back(std::move(asker->second));
  ordered_.erase(from, to);
  for (const Saved& done : askers) done(effect.saved);
}

void ServerLoop::perform(const node::AnswerServe& effect) {
  const auto [from, to] = serving_.equal_range(effect.serving.number);
  std::vector<Serving> askers;
  for (auto asker = from; asker != to; ++asker) askers.push_back(std::move(asker->second));
  serving_.erase(serving_.begin(), to);  // the earlier ones are not answered any more
  for (const Serving& done : askers) done(effect.serving);
}

void ServerLoop::perform(const node::ReadSlices& effect) {
  const Status restored = restore_slices(effect.directory);
  if (restored) return answer(node::SlicesRead{});
  const bool may_pass = restored.error().kind == ErrorKind::kIo;
  std::string why = restored.error().message;
  if (!group_.name.empty()) why = fmt::format("{}: {}", group_.name, why);
  answer(node::SlicesRead{std::move(why),
                          may_pass ? wire::RefusalCode::kIo : wire::RefusalCode::kCorrupt});
}

Status ServerLoop::restore_slices(const std::string& directory) {
  ServerNode& node = server_.node();
  const std::string path = below(group_.root, directory);
  return read_slices(path, node.own_slices(), *node.store(),
                     [&](std::uint64_t done, std::uint64_t total) {
                       if (group_.reads) group_.reads(path, done, total);
                     });
}

void ServerLoop::perform(const node::WriteSlices& effect) {
  const auto done = [this, number = effect.number](Result<CutWriter::Files> files) {
    node::SlicesWritten written{number, {}, {}};
    if (files) {
      written.files = std::move(*files);
    } else {
      written.error = files.error().message;
    }
    feed(linked::of_node(std::move(written)));
  };
  const SteadyClock clock;
  const MonoTime stands_still = clock.now();
  ServerNode& node = server_.node();
  const Status writes = cut_writer_.begin(*node.store(), node.own_slices(),
                                          below(group_.root, effect.directory), done);
  node::WritingBegun begun{effect.number, 0, {}};
  if (writes) {
    const Duration pause = clock.now() - stands_still;
    begun.pause_us = microseconds(pause);
    ++cuts_;
    cut_pauses_ += pause;
    longest_cut_pause_ = std::max(longest_cut_pause_, pause);
  } else {
    begun.error = writes.error().message;
  }
  answer(std::move(begun));
}

}  // namespace antdt::ps
