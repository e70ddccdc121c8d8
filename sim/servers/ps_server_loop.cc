#include "sim/servers/ps_server_loop.h"

#include <algorithm>
#include <utility>

#include "core/overloaded.h"
#include "sim/servers/tally.h"
#include "trainer/ps/rows/rows.h"
#include "trainer/ps/rows/slice_image.h"

namespace antdt::sim {

namespace node = ps::node;
namespace linked = ps::linked;

PsServerLoop::PsServerLoop(Outside outside, const linked::Start& start)
    : outside_(std::move(outside)), server_(start) {
  linked::Effects links;
  server_.begin(links);
  perform_all(links);
  later(ps::ServerNode::kAgain, [this] { tick(); });
}

// --------------------------------------------------------------------- sabotage

// Until there was an exchange there is nothing to go back to.
void StaleCentre::before_step(ps::ServerNode& node) {
  if (node.store() == nullptr || node.server().mean_of(kCentreTable) == nullptr) return;
  if (!older_.empty()) set_rows(node, older_);
}

void StaleCentre::after_step(ps::ServerNode& node) {
  if (node.store() == nullptr) return;
  const ps::ReplicaMean* const mean = node.server().mean_of(kCentreTable);
  if (mean == nullptr) return;
  const bool exchanged = mean->exchanges() != std::exchange(exchanges_, mean->exchanges());
  if (!exchanged && !newer_.empty()) return set_rows(node, newer_);
  if (!exchanged) return;
  std::vector<float> now(mean->keys().size());
  node.store()->read(kCentreTable, mean->keys(), reinterpret_cast<char*>(now.data()));
  older_ = std::exchange(newer_, std::move(now));
}

void StaleCentre::set_rows(ps::ServerNode& node, const std::vector<float>& values) {
  const std::vector<std::uint64_t>& keys = node.server().mean_of(kCentreTable)->keys();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    ps::RowTable& rows = node.store()->slice(ps::slice_of(keys[i]), kCentreTable);
    const std::uint32_t row = rows.find(keys[i], ps::RowTable::hash(keys[i]));
    if (row != ps::RowTable::kNone) rows.values(row).front() = values[i];
  }
}

// --------------------------------------------------------------------- the loop

// Does nothing if the loop of the next group has replaced this one.
void PsServerLoop::later(Duration delay, World::Action action) {
  outside_.later(delay, [watch = life_.watch(), action = std::move(action)] {
    if (!watch.expired()) action();
  });
}

void PsServerLoop::tick() {
  later(ps::ServerNode::kAgain, [this] { tick(); });
  feed(linked::of_node(node::TimePassed{}));
}

void PsServerLoop::feed(linked::Input input) {
  inputs_.push_back(std::move(input));
  if (std::exchange(feeding_, true)) return;
  linked::Effects effects;
  while (!inputs_.empty()) {
    const linked::Input next = std::move(inputs_.front());
    inputs_.pop_front();
    effects.clear();
    const bool stale = outside_.sabotage == Sabotage::kStaleCentre;
    if (stale) stale_.before_step(server_.node());
    server_.step(next, effects);
    if (stale) stale_.after_step(server_.node());
    perform_all(effects);
    outside_.stepped(server_);
  }
  feeding_ = false;
}

void PsServerLoop::perform_all(linked::Effects& effects) {
  for (linked::Effect& effect : effects) {
    std::visit([this](auto& e) { perform(e); }, effect);
  }
}

void PsServerLoop::answer(node::Input input) {
  inputs_.push_front(linked::of_node(std::move(input)));
}

// --------------------------------------------------------------- what is heard

void PsServerLoop::asked(PsPacket packet) {
  const std::string peer = std::to_string(packet.socket);
  std::visit(
      Overloaded{
          [&](wire::PsCopied& m) {
            feed(linked::CopyHeard{peer, packet.generation, std::move(m)});
          },
          [&](wire::PsImage& m) {
            feed(linked::ImageHeard{peer, packet.generation, std::move(m)});
          },
          [&](auto& m) {
            feed(linked::of_node(node::RequestHeard{
                {peer, packet.from, packet.seq}, packet.generation, node::Request(std::move(m))}));
          },
      },
      packet.body);
}

void PsServerLoop::answered(const PsAnswer& answer) {
  if (const auto* taken = std::get_if<wire::PsTaken>(&answer.body)) {
    if (backup_ && answer.socket == backup_->socket) feed(linked::BackupAnswered{*taken});
    return;
  }
  const auto* applied = std::get_if<wire::PsApplied>(&answer.body);
  if (applied == nullptr) return;
  const auto from = std::ranges::find_if(
      links_, [&](const auto& link) { return link.second.socket == answer.socket; });
  if (from != links_.end()) {
    feed(linked::of_node(node::DecisionsApplied{from->first, *applied}));
  }
}

// --------------------------------------------------------------------------- links

void PsServerLoop::perform(const linked::OpenLink& effect) {
  links_[effect.server] = {address_of(effect.endpoint, effect.key), outside_.new_socket()};
}

void PsServerLoop::perform(const linked::OpenBackupLink& effect) {
  backup_ = Link{address_of(effect.endpoint, effect.key), outside_.new_socket()};
}

void PsServerLoop::ask(const Link& link, PsAsk body) {
  outside_.ask(
      link.address,
      {{{'s', server_.index()}, {}}, link.socket, server_.generation(), 0, std::move(body)});
}

void PsServerLoop::perform(const node::TellServer& effect) {
  wire::PsDecision decision = effect.decision;
  if (outside_.sabotage == Sabotage::kKeepReplica) decision.left.clear();
  ask(links_.at(effect.server), std::move(decision));
}

void PsServerLoop::perform(const linked::AnswerPrimary& effect) {
  outside_.answer({std::stoull(effect.peer), 0, effect.taken});
}

void PsServerLoop::perform(ps::ReplyTo& effect) {
  std::visit(
      [&](auto& body) {
        outside_.answer({std::stoull(effect.to.peer), effect.to.seq, PsReply(std::move(body))});
      },
      effect.body);
}

void PsServerLoop::perform(const node::RecordDecision& effect) {
  outside_.decided(server_.index(), effect.decision);
}

// ------------------------------------------------------------------ files, children

// The image is the state of this moment, as that of a forked child would be.
void PsServerLoop::perform(const ps::replica::KeepState& effect) {
  state_.clear();
  kept_ = effect.image;
  ps::write_state(server_.node(), [&](const ps::StatePiece& piece) { state_.push_back(piece); });
}

void PsServerLoop::perform(const ps::replica::MakePiece& effect) {
  later(outside_.time_to_make_piece(), [this, image = effect.image] {
    if (image != kept_) return;
    ps::replica::PieceMade made{image, {}, {}};
    if (state_.empty() || outside_.loses_child()) {
      made.error = "the process that made them was ended";
    } else {
      made.piece = std::move(state_.front());
      state_.pop_front();
    }
    feed(ps::replica::Input(std::move(made)));
  });
}

void PsServerLoop::perform(const node::ReadSlices& effect) {
  if (outside_.files_are_away()) {
    return answer(node::SlicesRead{"the file server does not answer", wire::RefusalCode::kIo});
  }
  const PsSlices* const saved = outside_.read(effect.directory);
  const auto read = [&](std::uint32_t slice) {
    return saved->contains(slice) &&
           ps::decode_slice(*server_.node().store(), slice, saved->at(slice)).has_value();
  };
  // A server that does not read (Sabotage::kKeepOldState) gets nothing.
  const bool whole = saved != nullptr &&
                     (saved->empty() || std::ranges::all_of(server_.node().own_slices(), read));
  answer(node::SlicesRead{whole ? "" : "the slices of the checkpoint are damaged"});
}

PsSlices PsServerLoop::own_slices() {
  PsSlices slices;
  for (const std::uint32_t slice : server_.node().own_slices()) {
    std::string& image = slices[slice];
    ps::encode_slice(*server_.node().store(), slice,
                     [&](std::string_view bytes) { image += bytes; });
  }
  return slices;
}

// A forked child has a copy of the present state, and writes it while this process goes on.
void PsServerLoop::perform(const node::WriteSlices& effect) {
  writing_ = effect.number;
  later(outside_.time_to_write(),
        [this, number = effect.number, slices = own_slices(), directory = effect.directory] {
          if (writing_ != number) return;
          writing_.reset();
          node::SlicesWritten written{number, {}, outside_.write(directory, slices)};
          for (const auto& [slice, image] : slices) {
            written.files.push_back({fmt::format("slice-{:02}.rows", slice), image.size(), {}});
          }
          feed(linked::of_node(std::move(written)));
        });
  answer(node::WritingBegun{effect.number, 0, {}});
}

}  // namespace antdt::sim
