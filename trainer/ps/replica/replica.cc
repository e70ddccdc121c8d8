#include "trainer/ps/replica/replica.h"

#include <algorithm>
#include <utility>

namespace antdt::ps {
namespace {

constexpr const char* kLost = "the server that was to write it was lost";

// Its shell does it at once: nobody hears of it.
bool is_file_work(const node::Effect& effect) {
  return std::holds_alternative<node::Restore>(effect) ||
         std::holds_alternative<node::BeginCut>(effect);
}

// Whether it is what became of a file, where that is waited for, or something else where
// nothing is.
bool is_due(const ServerNode& node, const node::Event& event) {
  return node.waits_for<node::Restored>() == std::holds_alternative<node::Restored>(event) &&
         node.waits_for<node::CutBegun>() == std::holds_alternative<node::CutBegun>(event);
}

// About what it takes in memory.
std::uint64_t bytes_of(const node::Event& event) {
  constexpr std::uint64_t kSmall = 256;
  std::uint64_t bytes = kSmall;
  const auto add = [&](const std::vector<wire::PsRows>& rows) {
    for (const wire::PsRows& r : rows) bytes += r.keys.size() + r.values.size();
  };
  const auto* asked = std::get_if<node::Asked>(&event);
  if (asked == nullptr) return bytes;
  if (const auto* push = std::get_if<wire::PsPush>(&asked->body)) add(push->rows);
  if (const auto* put = std::get_if<wire::PsPut>(&asked->body)) add(put->rows);
  return bytes;
}

}  // namespace

replica::Effects Replica::step(const replica::Event& event) {
  std::visit([&](const auto& e) { on(e); }, event);
  for (replica::Effect& effect : effects_) {
    auto* of_node = std::get_if<node::Effect>(&effect);
    auto* serving = of_node ? std::get_if<node::Serving>(of_node) : nullptr;
    if (serving != nullptr && backed()) serving->serving.backed = view_;
  }
  return std::exchange(effects_, {});
}

void Replica::on(const node::Event& event) {
  if (speaks()) return take(event);
  // Whoever asks a backup asks the primary again; its own slices are read.
  if (const auto* restored = std::get_if<node::Restored>(&event)) read_ = *restored;
}

void Replica::take(const node::Event& event) {
  if (node_.changes(event)) {
    ++taken_;
    if (copies()) copy(event);
  }
  if (std::holds_alternative<node::Tick>(event)) tick();
  for (node::Effect& effect : node_.step(event)) say(std::move(effect));
}

void Replica::say(node::Effect effect) {
  if (role_ == replica::Role::kAlone || is_file_work(effect) || taken_ <= acknowledged_) {
    effects_.emplace_back(std::move(effect));
  } else {
    held_.push_back({taken_, std::move(effect)});
  }
}

void Replica::let_go() {
  const bool all = role_ == replica::Role::kAlone;
  while (!held_.empty() && (all || held_.front().after <= acknowledged_)) {
    effects_.emplace_back(std::move(held_.front().effect));
    held_.pop_front();
  }
}

// ------------------------------------------------------------- of the two, the primary

void Replica::copy(const node::Event& event) {
  copied_.push_back({view_, taken_, event});
  behind_ += bytes_of(event);
  send_copies();
}

void Replica::send_copies() {
  if (sender_) return;
  for (; sent_ < taken_ && sent_ < acknowledged_ + kAhead; ++sent_) {
    effects_.emplace_back(copied_[sent_ - acknowledged_]);
  }
}

// What was not taken between two ticks was lost on its way.
void Replica::tick() {
  if (!copies()) return;
  if (sender_) {
    for (wire::PsImage& piece : sender_->look()) effects_.emplace_back(std::move(piece));
  } else if (std::exchange(acknowledged_before_, acknowledged_) == acknowledged_) {
    sent_ = acknowledged_;
    send_copies();
  }
  const std::uint64_t rows = node_.store() == nullptr ? 0 : node_.store()->bytes();
  if (joining_ && (no_image_ || behind_ > std::max(most_behind_, rows))) send_image();
}

void Replica::acknowledge(std::uint64_t number) {
  acknowledged_ = std::max(acknowledged_, number);
  while (!copied_.empty() && copied_.front().number <= acknowledged_) {
    behind_ -= bytes_of(copied_.front().event);
    copied_.pop_front();
  }
}

void Replica::on(const replica::Taken& event) {
  if (event.view != view_ || !copies() || event.number > taken_) return;
  if (sender_) {
    if (event.image != sender_->image()) return;
    sender_->taken(event.pieces);
    ask_for_piece();
    if (!sender_->all_made() || event.number < sender_->number()) return;
    sender_.reset();
    effects_.emplace_back(replica::DropState{});
  }
  acknowledge(event.number);
  send_copies();
  let_go();
  hold_if_all_is_sent();
}

void Replica::hold_if_all_is_sent() {
  if (!joining_ || sent_ < taken_) return;
  joining_ = false;
  role_ = replica::Role::kPrimary;
  held_from_ = taken_;
}

// ------------------------------------------------------------------ to one that joins

void Replica::on(const replica::Join& event) {
  if (event.view <= view_ || broken_) return;
  become_alone(event.view);
  if (broken_) return;
  joining_ = true;
  send_image();
}

// It begins with what is now; the events before that mean nothing to it.
void Replica::send_image() {
  copied_.clear();
  behind_ = 0;
  acknowledged_ = acknowledged_before_ = sent_ = taken_;
  no_image_ = false;
  sender_.emplace(view_, ++images_, taken_);
  effects_.emplace_back(replica::KeepState{images_});
  ask_for_piece();
}

void Replica::ask_for_piece() {
  if (sender_->asks()) effects_.emplace_back(replica::MakePiece{sender_->image()});
}

void Replica::on(const replica::Made& event) {
  if (!sender_ || sender_->image() != event.image) return;
  if (!event.error.empty()) {
    no_image_ = true;  // another one at the next tick
    return;
  }
  effects_.emplace_back(sender_->piece(event.piece));
  ask_for_piece();
}

// -------------------------------------------------------------- of the two, the backup

void Replica::on(const wire::PsImage& event) {
  const bool listens = role_ == replica::Role::kJoining || role_ == replica::Role::kBackup;
  if (event.view != view_ || !listens || broken_) return;
  // Also where all of one was here: the primary has not heard of that, and begins again.
  if (event.image > image_ && event.piece == 1) {
    role_ = replica::Role::kJoining;
    image_ = event.image;
    pieces_ = taken_ = 0;
    node_ = ServerNode(start_);
    reader_.emplace();
  }
  if (event.image != image_) return;
  if (role_ == replica::Role::kJoining) {
    if (event.piece == pieces_ + 1) {
      const Status read = reader_->take(node_, event);
      if (!read) return break_up(read.error().message);
      ++pieces_;
      if (event.last) {
        taken_ = event.number;
        role_ = replica::Role::kBackup;
        reader_.reset();
      }
    }
  }
  effects_.emplace_back(replica::Taken{view_, taken_, image_, pieces_});
}

void Replica::break_up(std::string error) {
  broken_ = true;
  effects_.emplace_back(replica::Broken{std::move(error)});
}

void Replica::on(const replica::Copied& event) {
  if (event.view != view_ || role_ != replica::Role::kBackup || broken_) return;
  if (event.number == taken_ + 1) {
    if (!is_due(node_, event.event)) {
      return break_up("its primary copied an event that cannot follow those before it");
    }
    if (const auto* restored = std::get_if<node::Restored>(&event.event)) {
      const node::Restored own = std::exchange(read_, std::nullopt).value_or(node::Restored{});
      if (restored->error.empty() && !own.error.empty()) return break_up(own.error);
    }
    ++taken_;
    for (node::Effect& effect : node_.step(event.event)) {
      const bool said = std::holds_alternative<node::Restore>(effect) ||
                        std::holds_alternative<node::Decided>(effect);
      if (said) effects_.emplace_back(std::move(effect));
    }
  }
  effects_.emplace_back(replica::Taken{view_, taken_, image_, pieces_});
}

// ----------------------------------------------------------------------- the next view

void Replica::on(const replica::Alone& event) {
  if (event.view > view_ && !broken_) become_alone(event.view);
}

void Replica::become_alone(std::uint64_t view) {
  if (role_ == replica::Role::kJoining) {
    return break_up("its server was lost before all of it was here");
  }
  view_ = view;
  const bool promoted = std::exchange(role_, replica::Role::kAlone) == replica::Role::kBackup;
  copied_.clear();
  behind_ = 0;
  joining_ = false;
  if (sender_) effects_.emplace_back(replica::DropState{});
  sender_.reset();
  let_go();
  if (promoted) finish_what_the_primary_began();
}

void Replica::finish_what_the_primary_began() {
  if (node_.waits_for<node::Restored>()) {
    take(std::exchange(read_, std::nullopt).value_or(node::Restored{kLost}));
  }
  // One that fails lets the next one begin.
  while (node_.waits_for<node::CutBegun>()) take(node::CutBegun{node_.beginning(), 0, kLost});
  for (const std::uint64_t cut : node_.writing()) take(node::CutWritten{cut, {}, kLost});
  // Nobody knows what of its decisions was said.
  take(node::Tick{});
  take(node::Tick{});
  // They have been answered.
  std::erase_if(effects_, [](const replica::Effect& effect) {
    const auto* of_node = std::get_if<node::Effect>(&effect);
    return of_node != nullptr && is_file_work(*of_node);
  });
}

}  // namespace antdt::ps
