#include "sim/ps_server_loop.h"

#include <algorithm>
#include <cmath>

#include "trainer/ps/rows.h"
#include "trainer/ps/slice_image.h"
#include "trainer/ps_link/placement.h"

namespace antdt::sim {
namespace {

using std::chrono::milliseconds;

constexpr Duration kAgain = milliseconds(500);
constexpr std::size_t kCutsKept = 4;
constexpr const char* kOvertaken = "a later checkpoint was ordered before it";

}  // namespace

PsServerLoop::PsServerLoop(Outside outside, PsGroup group, std::uint32_t index)
    : outside_(std::move(outside)),
      group_(std::move(group)),
      index_(index),
      server_(group_.consistency, group_.version,
              ps::homes_of(group_.consistency, group_.endpoints.size())),
      closer_(group_.consistency == ps::Consistency::kBarrier, index_ == 0 ? group_.version : 0) {
  for (std::uint32_t other = 0; other < group_.endpoints.size(); ++other) {
    if (other != index_) peers_.push_back({other, outside_.new_socket()});
  }
  add_workers(group_.workers);
  say_again();
}

// Not after it was replaced by that of the next group.
void PsServerLoop::later(Duration delay, World::Action action) {
  outside_.later(delay, [watch = life_.watch(), action = std::move(action)] {
    if (!watch.expired()) action();
  });
}

// --------------------------------------------------------------------- workers

bool PsServerLoop::is_home_of(WorkerId worker) const {
  return ps::home_of(group_.consistency, worker, group_.endpoints.size()) == index_;
}

void PsServerLoop::add_workers(const std::vector<Member>& workers) {
  server_.add_workers(workers);
  std::vector<Member> own;
  std::ranges::copy_if(workers, std::back_inserter(own),
                       [&](Member m) { return is_home_of(m.worker); });
  ps::Closer::Effects effects;
  closer_.add_workers(own, group_.backups, effects);
  run(effects);
}

void PsServerLoop::serve(const wire::PsServe& now) {
  group_.backups = now.backups;
  std::vector<Member> workers;
  for (const wire::PsMember& m : now.workers) workers.push_back({m.worker, m.attempt});
  add_workers(workers);
  ps::Closer::Effects effects;
  for (const wire::PsMember& m : now.leaving) {
    if (is_home_of(m.worker)) std::ignore = closer_.revoke({m.worker, m.attempt}, effects);
  }
  run(effects);
  flush();
}

std::vector<wire::PsPlaces> PsServerLoop::left(const std::vector<wire::PsMember>& members) const {
  std::vector<wire::PsPlaces> places;
  for (const wire::PsMember& m : members) {
    if (is_home_of(m.worker)) places.push_back(closer_.places({m.worker, m.attempt}));
  }
  return places;
}

// ------------------------------------------------------------------- requests

void PsServerLoop::asked(const PsPacket& packet) {
  if (packet.generation != group_.generation) {
    reply(asker_of(packet), wire::Refused{"stale", "the server group is of another generation"});
  } else {
    std::visit([&](const auto& body) { on(packet, body); }, packet.body);
  }
  flush();
}

void PsServerLoop::on(const PsPacket& packet, const wire::PsOpen& m) {
  const bool first = server_.store() == nullptr;
  ask_server(packet, m);
  if (!first || server_.store() == nullptr || restore_slices()) return;
  server_.forget_store();
  replies_.back().body = wire::Refused{"corrupt", "the slices of the checkpoint cannot be read"};
}

void PsServerLoop::on(const PsPacket& packet, const wire::PsIdle& m) {
  ps::Closer::Effects effects;
  closer_.idle(packet.from, effects);
  run(effects);
  server_.on(asker_of(packet), m, replies_, closer_.updates());
}

void PsServerLoop::on(const PsPacket& packet, const wire::PsCommit& m) {
  committing_[packet.from] = asker_of(packet);
  ps::Closer::Effects effects;
  closer_.commit(packet.from, m, effects);
  run(effects);
}

void PsServerLoop::run(const ps::Closer::Effects& effects) {
  const auto tell = [&](Member member, const auto& body) {
    const auto asker = committing_.find(member);
    if (asker == committing_.end()) return;
    reply(asker->second, body);
    committing_.erase(asker);
  };
  for (const ps::Closer::Effect& effect : effects) {
    if (const auto* decision = std::get_if<wire::PsDecision>(&effect)) {
      outside_.decided(*decision);
      std::ignore = apply(index_, *decision);
      if (!peers_.empty()) decisions_.push_back(*decision);
    } else if (const auto* a = std::get_if<ps::Closer::Answer>(&effect)) {
      tell(a->to, a->decided);
    } else {
      const auto& refuse = std::get<ps::Closer::Refuse>(effect);
      tell(refuse.to, refuse.refused);
    }
  }
}

// ------------------------------------------------------------------ decisions

void PsServerLoop::on(const PsPacket& packet, const wire::PsDecision& m) {
  const wire::PsApplied applied = apply(packet.from.worker.index, m);
  if (m.cut != 0) mark_cut(m.cut, m.directory);
  reply(asker_of(packet), applied);
}

wire::PsApplied PsServerLoop::apply(std::uint32_t home, const wire::PsDecision& decision) {
  std::ignore = server_.apply(home, decision, replies_);
  while (const auto cut = server_.due()) {
    begin_cut(*cut);
    server_.go_on(replies_);
  }
  return {server_.decided(home)};
}

void PsServerLoop::answered(const PsAnswer& answer) {
  const auto peer = std::ranges::find(peers_, answer.socket, &Peer::socket);
  const auto* applied = std::get_if<wire::PsApplied>(&answer.body);
  if (peer == peers_.end() || applied == nullptr) return;  // of the group before
  peer->acknowledged = std::max(peer->acknowledged, applied->number);
  const std::uint64_t least = std::ranges::min(peers_, {}, &Peer::acknowledged).acknowledged;
  while (!decisions_.empty() && decisions_.front().number <= least) decisions_.pop_front();
}

void PsServerLoop::distribute(Peer& peer) {
  const std::uint64_t told = std::max(peer.sent, peer.acknowledged);
  for (const wire::PsDecision& decision : decisions_) {
    if (decision.number <= told) continue;
    outside_.ask(group_.endpoints[peer.index],
                 {{{'s', index_}, {}}, peer.socket, group_.generation, 0, decision});
    peer.sent = decision.number;
  }
}

void PsServerLoop::say_again() {
  for (Peer& peer : peers_) {
    if (std::exchange(peer.acknowledged_before, peer.acknowledged) == peer.acknowledged) {
      peer.sent = peer.acknowledged;
    }
    distribute(peer);
  }
  later(kAgain, [this] { say_again(); });
}

// ---------------------------------------------------------------- checkpoints

PsSlices PsServerLoop::own_slices() const {
  PsSlices slices;
  for (std::uint32_t slice = 0; slice < ps::kSlices; ++slice) {
    if (ps::server_of_slice(slice, group_.endpoints.size()) != index_) continue;
    std::string& image = slices[slice];
    ps::encode_slice(*server_.store(), slice, [&](std::string_view bytes) { image += bytes; });
  }
  return slices;
}

bool PsServerLoop::restore_slices() {
  if (group_.restore.empty()) return true;
  const PsSlices* const saved = outside_.read(group_.restore);
  if (saved == nullptr) return false;
  return std::ranges::all_of(*saved, [&](const auto& s) {
    const bool own = ps::server_of_slice(s.first, group_.endpoints.size()) == index_;
    return !own || ps::decode_slice(*server_.store(), s.first, s.second).has_value();
  });
}

std::string PsServerLoop::hindrance(std::uint64_t number) const {
  if (!cuts_.contains(number) && !cuts_.empty() && number < cuts_.rbegin()->first) {
    return kOvertaken;
  }
  if (server_.store() == nullptr) return "no worker has opened a table yet";
  return {};
}

void PsServerLoop::cut(const wire::PsCut& order, Saved done) {
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

void PsServerLoop::mark_cut(std::uint64_t number, const std::string& directory) {
  if (index_ >= ps::homes_of(group_.consistency, group_.endpoints.size())) return;
  ps::Closer::Effects effects;
  closer_.cut(number, directory, effects);
  if (effects.empty()) return;
  cut_of(number).places = closer_.places();
  run(effects);
}

PsServerLoop::Cut& PsServerLoop::cut_of(std::uint64_t number) {
  if (!cuts_.contains(number) && cuts_.size() >= kCutsKept) cuts_.erase(cuts_.begin());
  return cuts_[number];
}

// A child has a copy of what there is now, and writes it while this goes on.
void PsServerLoop::begin_cut(const ps::Server::Cut& due) {
  drop_cuts_before(due.number);
  Cut& cut = cut_of(due.number);
  cut.begun = true;
  wire::PsSaved saved;
  saved.number = due.number;
  saved.version = server_.version();
  saved.places = cut.places;
  if (server_.store() == nullptr) saved.error = "no worker has opened a table yet";
  if (writing_) saved.error = "the checkpoint before this one is still being written";
  if (!saved.error.empty()) return finish_cut(std::move(saved));
  writing_ = true;
  later(outside_.time_to_write(),
        [this, saved, slices = own_slices(), directory = due.directory]() mutable {
          writing_ = false;
          saved.error = outside_.write(directory, slices);
          for (const auto& [slice, image] : slices) {
            saved.files.push_back({fmt::format("slice-{:02}.rows", slice), image.size(), {}});
          }
          finish_cut(std::move(saved));
        });
}

// Their markers were passed by those of a later one.
void PsServerLoop::drop_cuts_before(std::uint64_t number) {
  for (auto& [earlier, cut] : cuts_) {
    if (earlier >= number || cut.begun || cut.outcome) continue;
    wire::PsSaved saved;
    saved.number = earlier;
    saved.error = kOvertaken;
    finish_cut(std::move(saved));
  }
}

void PsServerLoop::finish_cut(wire::PsSaved saved) {
  Cut& cut = cut_of(saved.number);
  const wire::PsSaved outcome = cut.outcome.emplace(std::move(saved));
  for (const Saved& done : std::exchange(cut.askers, {})) done(outcome);
}

// -------------------------------------------------------------------- answers

void PsServerLoop::reply(const ps::Asker& to, PsReply body) {
  unsent_.push_back({std::stoull(to.peer), to.seq, std::move(body)});
}

void PsServerLoop::flush() {
  for (const ps::ReplyTo& r : std::exchange(replies_, {})) {
    std::visit([&](const auto& body) { reply(r.to, PsReply(body)); }, r.body);
  }
  for (PsAnswer& answer : std::exchange(unsent_, {})) outside_.answer(std::move(answer));
  for (Peer& peer : peers_) distribute(peer);
}

// ----------------------------------------------------------------------- tally

wire::PsOpen tally_tables() {
  wire::PsOpen open;
  wire::PsTable& table = open.tables.emplace_back();
  table.name = "tally";
  table.rule = "sum";
  table.init = "zero";
  return open;
}

Model tally_of(const PsSlices& slices, std::uint64_t records) {
  ps::TableSpec spec;
  spec.name = "tally";
  spec.rule.kind = ps::UpdateRule::Kind::kSum;
  ps::Store store({spec}, 0);
  bool whole = slices.size() == ps::kSlices;
  for (const auto& [slice, image] : slices) {
    whole = whole && ps::decode_slice(store, slice, image).has_value();
  }
  std::vector<std::uint64_t> keys(records * kRowsOfRecord);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  std::vector<float> rows(keys.size());
  store.read(0, keys, reinterpret_cast<char*>(rows.data()));
  Model model;
  for (std::uint64_t r = 0; r < records; ++r) {
    const float* row = rows.data() + r * kRowsOfRecord;
    const bool even = whole && row[0] == row[1] && row[1] == row[2];
    model.tally.push_back(even ? static_cast<std::uint8_t>(std::lround(row[0])) : kTorn);
  }
  return model;
}

}  // namespace antdt::sim
