#include "sim/servers/ps_server_loop.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/overloaded.h"
#include "trainer/ps/replica/copied.h"
#include "trainer/ps/rows/rows.h"
#include "trainer/ps/rows/slice_image.h"

namespace antdt::sim {
namespace {

namespace node = ps::node;

node::Start start_of(const PsGroup& group, std::uint32_t index) {
  return {group.generation,  index,         static_cast<std::uint32_t>(group.endpoints.size()),
          group.consistency, group.workers, group.backups,
          group.restore,     group.version};
}

}  // namespace

PsServerLoop::PsServerLoop(Outside outside, const PsGroup& group, std::uint32_t index)
    : outside_(std::move(outside)),
      generation_(group.generation),
      index_(index),
      endpoints_(group.endpoints),
      replica_(start_of(group, index), group.role, group.view),
      backup_(group.backup) {
  backup_socket_ = outside_.new_socket();
  for (std::uint32_t other = 0; other < endpoints_.size(); ++other) {
    if (other != index_) sockets_[other] = outside_.new_socket();
  }
  later(ps::ServerNode::kAgain, [this] { tick(); });
}

// Not after it was replaced by that of the next group.
void PsServerLoop::later(Duration delay, World::Action action) {
  outside_.later(delay, [watch = life_.watch(), action = std::move(action)] {
    if (!watch.expired()) action();
  });
}

// --------------------------------------------------------------- what is heard

void PsServerLoop::serve(const wire::PsServe& now, Serving done) {
  for (auto& [server, socket] : sockets_) {
    if (endpoints_[server] == now.servers[server]) continue;
    // What was on its way there is said here.
    socket = outside_.new_socket();
    std::ignore = replica_.step(node::Event(node::NoRoom{server, 1}));
  }
  endpoints_ = now.servers;
  if (now.view > replica_.view()) take_up_view(now);
  if (speaks()) serving_.emplace(now.number, std::move(done));
  step(node::Event(node::Serve{now}));
}

void PsServerLoop::take_up_view(const wire::PsServe& now) {
  backup_.clear();
  if (now.replica == "backup" || now.replica == "joining") {
    return outside_.broken("it is told to begin anew, and is a server already");
  }
  if (now.replica.empty()) return step(ps::replica::Alone{now.view});
  backup_ = now.other;
  backup_socket_ = outside_.new_socket();
  step(ps::replica::Join{now.view});
}

void PsServerLoop::cut(const wire::PsCut& order, Saved done) {
  ordered_.emplace(order.number, std::move(done));
  step(node::Event(node::OrderCut{order}));
}

void PsServerLoop::tick() {
  later(ps::ServerNode::kAgain, [this] { tick(); });
  step(node::Event(node::Tick{}));
}

void PsServerLoop::asked(const PsPacket& packet) {
  const ps::Asker from{std::to_string(packet.socket), packet.from, packet.seq};
  std::visit(Overloaded{
                 [&](const wire::PsCopied& m) { hear_copied(packet, m); },
                 [&](const wire::PsImage& m) {
                   if (packet.generation != generation_) return;
                   copied_over_ = packet.socket;
                   step(m);
                 },
                 [&](const auto& m) {
                   step(node::Event(node::Asked{from, packet.generation, node::Request(m)}));
                 },
             },
             packet.body);
}

void PsServerLoop::hear_copied(const PsPacket& packet, const wire::PsCopied& message) {
  if (packet.generation != generation_) return;
  const auto copied = ps::from_wire(message, generation_);
  if (!copied) return outside_.broken(copied.error().message);
  copied_over_ = packet.socket;
  step(*copied);
}

void PsServerLoop::answered(const PsAnswer& answer) {
  if (const auto* taken = std::get_if<wire::PsTaken>(&answer.body)) {
    if (!backup_.empty() && answer.socket == backup_socket_) {
      step(*taken);
    }
    return;
  }
  const auto* applied = std::get_if<wire::PsApplied>(&answer.body);
  if (applied == nullptr) return;
  for (const auto& [server, socket] : sockets_) {
    if (socket == answer.socket) {
      return step(node::Event(node::Acknowledged{server, *applied}));
    }
  }
}

// ---------------------------------------------------------------- what is done

void PsServerLoop::step(const ps::replica::Event& event) {
  for (const ps::replica::Effect& effect : replica_.step(event)) {
    std::visit([this](const auto& e) { run(e); }, effect);
  }
}

void PsServerLoop::run(const node::Effect& effect) {
  std::visit([this](const auto& e) { run(e); }, effect);
}

void PsServerLoop::run(const ps::replica::Copied& effect) {
  if (backup_.empty()) return;
  outside_.ask(backup_, {{{'s', index_}, {}}, backup_socket_, generation_, 0, ps::to_wire(effect)});
}

void PsServerLoop::run(const ps::replica::Taken& effect) {
  outside_.answer({copied_over_, 0, effect});
}

void PsServerLoop::run(const wire::PsImage& effect) {
  if (backup_.empty()) return;
  outside_.ask(backup_, {{{'s', index_}, {}}, backup_socket_, generation_, 0, effect});
}

// As a child that was forked now would make them.
void PsServerLoop::run(const ps::replica::KeepState& effect) {
  state_.clear();
  kept_ = effect.image;
  ps::write_state(replica_.node(), [&](const ps::StatePiece& piece) { state_.push_back(piece); });
}

void PsServerLoop::run(const ps::replica::MakePiece& effect) {
  later(outside_.time_to_make_piece(), [this, image = effect.image] {
    if (image != kept_) return;
    ps::replica::Made made{image, {}, {}};
    if (state_.empty() || outside_.loses_child()) {
      made.error = "the process that made them was ended";
    } else {
      made.piece = std::move(state_.front());
      state_.pop_front();
    }
    step(made);
  });
}

void PsServerLoop::run(const node::Serving& effect) {
  const auto [from, to] = serving_.equal_range(effect.serving.number);
  std::vector<Serving> askers;
  for (auto asker = from; asker != to; ++asker) askers.push_back(std::move(asker->second));
  serving_.erase(serving_.begin(), to);
  for (const Serving& done : askers) done(effect.serving);
}

void PsServerLoop::run(const ps::ReplyTo& effect) {
  if (effect.to.peer.empty()) return;  // it asked the primary of before
  std::visit(
      [&](const auto& body) {
        outside_.answer({std::stoull(effect.to.peer), effect.to.seq, PsReply(body)});
      },
      effect.body);
}

void PsServerLoop::run(const node::Tell& effect) {
  outside_.ask(endpoints_[effect.server],
               {{{'s', index_}, {}}, sockets_.at(effect.server), generation_, 0, effect.decision});
}

void PsServerLoop::run(const node::Saved& effect) {
  const auto [from, to] = ordered_.equal_range(effect.saved.number);
  std::vector<Saved> askers;
  for (auto asker = from; asker != to; ++asker) askers.push_back(std::move(asker->second));
  ordered_.erase(from, to);
  for (const Saved& done : askers) done(effect.saved);
}

void PsServerLoop::run(const node::Restore& effect) {
  const PsSlices* const saved = outside_.read(effect.directory);
  const auto read = [&](std::uint32_t slice) {
    return saved->contains(slice) &&
           ps::decode_slice(*replica_.node().store(), slice, saved->at(slice)).has_value();
  };
  // Nothing at all is what a server gets that does not read (Sabotage::kKeepOldState).
  const bool whole = saved != nullptr &&
                     (saved->empty() || std::ranges::all_of(replica_.node().own_slices(), read));
  step(node::Event(node::Restored{whole ? "" : "the slices of the checkpoint cannot be read"}));
}

PsSlices PsServerLoop::own_slices() {
  PsSlices slices;
  for (const std::uint32_t slice : replica_.node().own_slices()) {
    std::string& image = slices[slice];
    ps::encode_slice(*replica_.node().store(), slice,
                     [&](std::string_view bytes) { image += bytes; });
  }
  return slices;
}

// A child has a copy of what there is now, and writes it while this goes on.
void PsServerLoop::run(const node::BeginCut& effect) {
  const auto given_up = std::exchange(writing_, effect.number);
  later(outside_.time_to_write(),
        [this, number = effect.number, slices = own_slices(), directory = effect.directory] {
          if (writing_ != number) return;
          writing_.reset();
          node::CutWritten written{number, {}, outside_.write(directory, slices)};
          for (const auto& [slice, image] : slices) {
            written.files.push_back({fmt::format("slice-{:02}.rows", slice), image.size(), {}});
          }
          step(node::Event(written));
        });
  step(node::Event(node::CutBegun{effect.number, 0, {}}));
  if (given_up) {
    step(node::Event(node::CutWritten{*given_up, {}, "a later checkpoint was begun"}));
  }
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

RowTally row_tally_of(const PsSlices& slices, std::uint64_t records) {
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
  RowTally tally;
  for (std::uint64_t r = 0; r < records; ++r) {
    const float* row = rows.data() + r * kRowsOfRecord;
    const auto [least, most] = std::ranges::minmax({row[0], row[1], row[2]});
    tally.least.push_back(whole ? static_cast<std::uint8_t>(std::lround(least)) : kTorn);
    tally.most.push_back(whole ? static_cast<std::uint8_t>(std::lround(most)) : kTorn);
  }
  return tally;
}

Model tally_of(const PsSlices& slices, std::uint64_t records) {
  const RowTally rows = row_tally_of(slices, records);
  Model model;
  for (std::uint64_t r = 0; r < records; ++r) {
    model.tally.push_back(rows.least[r] == rows.most[r] ? rows.least[r] : kTorn);
  }
  return model;
}

}  // namespace antdt::sim
