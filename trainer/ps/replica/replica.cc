#include "trainer/ps/replica/replica.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/check.h"

namespace antdt::ps {
namespace {

constexpr const char* kLost = "the server that was to write it was lost";

// Effects on files, which the shell carries out at once and nobody else hears of.
bool is_file_work(const node::Effect& effect) {
  return std::holds_alternative<node::ReadSlices>(effect) ||
         std::holds_alternative<node::WriteSlices>(effect);
}

// Whether the input may come now: the result of a file operation if one is awaited, anything else
// if none is.
bool is_due(const ServerNode& node, const node::Input& input) {
  return node.waits_for<node::SlicesRead>() == std::holds_alternative<node::SlicesRead>(input) &&
         node.waits_for<node::WritingBegun>() == std::holds_alternative<node::WritingBegun>(input);
}

bool is_of_worker(const node::RequestHeard& request) {
  return request.from.member.worker.role != 's';
}

// Approximate memory of the input.
std::uint64_t bytes_of(const node::Input& input) {
  constexpr std::uint64_t kSmall = 256;
  std::uint64_t bytes = kSmall;
  const auto add = [&](const std::vector<wire::PsRows>& rows) {
    for (const wire::PsRows& r : rows) bytes += r.keys.size() + r.values.size();
  };
  const auto* asked = std::get_if<node::RequestHeard>(&input);
  if (asked == nullptr) return bytes;
  if (const auto* push = std::get_if<wire::PsPush>(&asked->body)) add(push->rows);
  if (const auto* put = std::get_if<wire::PsPut>(&asked->body)) add(put->rows);
  return bytes;
}

}  // namespace

Replica::State Replica::state_in(replica::Role role) {
  switch (role) {
    case replica::Role::kPrimary:
      return State::kPrimary;
    case replica::Role::kBackup:
      return State::kBackup;
    case replica::Role::kJoining:
      return State::kJoining;
    case replica::Role::kAlone:
      break;
  }
  return State::kAlone;
}

replica::Role Replica::role() const {
  switch (state_) {
    case State::kPrimary:
      return replica::Role::kPrimary;
    case State::kBackup:
    case State::kBroken:
      return replica::Role::kBackup;
    case State::kJoining:
      return replica::Role::kJoining;
    case State::kAlone:
    case State::kSending:
      break;
  }
  return replica::Role::kAlone;
}

void Replica::step(const replica::Input& input, replica::Effects& out) {
  std::visit([&](const auto& i) { on(i); }, input);
  for (replica::Effect& effect : effects_) {
    auto* of_node = std::get_if<node::Effect>(&effect);
    auto* serving = of_node ? std::get_if<node::AnswerServe>(of_node) : nullptr;
    if (serving != nullptr && backed()) serving->serving.backed = view_;
  }
  check_invariants();
  std::ranges::move(effects_, std::back_inserter(out));
  effects_.clear();
}

void Replica::check_invariants() const {
  ANTDT_CHECK(!copies() || (acknowledged_ <= sent_ && sent_ <= taken_),
              "of {} inputs {} were copied and {} acknowledged", taken_, sent_, acknowledged_);
  ANTDT_CHECK(held_.empty() || state_ == State::kPrimary,
              "{} effects are held, and there is no backup to wait for", held_.size());
}

void Replica::on(const node::Input& input) {
  if (speaks()) return take(input);
  // A sender that asked a backup asks the primary again. The backup reads its slices itself.
  if (const auto* restored = std::get_if<node::SlicesRead>(&input)) read_ = *restored;
}

void Replica::take(const node::Input& input) {
  if (answer_is_held(input)) return;
  if (node_.changes(input)) {
    ++taken_;
    if (copies()) copy(input);
  }
  if (std::holds_alternative<node::TimePassed>(input)) tick();
  node_wants_.clear();
  node_.step(input, node_wants_);
  for (node::Effect& effect : node_wants_) say(std::move(effect));
}

void Replica::say(node::Effect effect) {
  if (is_alone() || is_file_work(effect) || taken_ <= acknowledged_) {
    effects_.emplace_back(std::move(effect));
  } else {
    if (const auto* reply = std::get_if<ReplyTo>(&effect)) {
      held_answers_.emplace(reply->to.peer, reply->to.seq);
    }
    held_.push_back({taken_, std::move(effect)});
  }
}

// A worker repeats what is not answered, for as long as the backup is silent. Its answer would be
// held a second time, with all rows, and the event be copied a second time.
bool Replica::answer_is_held(const node::Input& input) const {
  const auto* request = std::get_if<node::RequestHeard>(&input);
  return request != nullptr && is_of_worker(*request) &&
         held_answers_.contains({request->from.peer, request->from.seq});
}

void Replica::let_go() {
  const bool all = is_alone();
  while (!held_.empty() && (all || held_.front().after <= acknowledged_)) {
    node::Effect& effect = held_.front().effect;
    if (const auto* reply = std::get_if<ReplyTo>(&effect)) {
      held_answers_.erase({reply->to.peer, reply->to.seq});
    }
    effects_.emplace_back(std::move(effect));
    held_.pop_front();
  }
}

// ------------------------------------------------------------- of the two, the primary

void Replica::copy(const node::Input& input) {
  if (image_is_due_) return;  // the image will contain it
  copied_.push_back({view_, taken_, input});
  behind_ += bytes_of(input);
  send_copies();
}

void Replica::send_copies() {
  if (sender_) return;
  const auto may_send = [&] {
    const bool has_room = sent_ < acknowledged_ + kAhead && under_way_ < kMostUnderWay;
    return sent_ < taken_ && (has_room || sent_ == acknowledged_);
  };
  for (; may_send(); ++sent_) {
    const replica::EventCopied& next = copied_[sent_ - acknowledged_];
    under_way_ += bytes_of(next.input);
    effects_.emplace_back(next);
  }
}

void Replica::send_again() {
  sent_ = acknowledged_;
  under_way_ = 0;
  send_copies();
}

// If nothing was acknowledged between two ticks, copies may be lost, or the other process stands
// still. It is asked, because copies that were repeated to one that stands still would fill the
// memory of this process.
void Replica::tick() {
  if (!copies()) return;
  if (image_is_due_) return begin_due_image();
  if (sender_) {
    for (wire::PsImage& piece : sender_->look()) effects_.emplace_back(std::move(piece));
  } else if (std::exchange(acknowledged_before_, acknowledged_) == acknowledged_ &&
             acknowledged_ < sent_) {
    asked_behind_ = sent_;
    effects_.emplace_back(replica::EventCopied{view_, 0, node::DecisionsApplied{}});
  }
  if (state_ != State::kSending) return;
  const std::uint64_t rows = node_.store() == nullptr ? 0 : node_.store()->bytes();
  const bool too_far_behind = behind_ > std::max(most_behind_, rows);
  if (sender_) {
    behind_before_.reset();
    if (too_far_behind) send_image();
    return;
  }
  // With an image it can take the events, however many they are, if they become fewer.
  const auto before = std::exchange(behind_before_, behind_);
  if (too_far_behind || (before && behind_ >= *before)) hold();
}

void Replica::acknowledge(std::uint64_t number) {
  acknowledged_ = std::max(acknowledged_, number);
  while (!copied_.empty() && copied_.front().number <= acknowledged_) {
    const std::uint64_t bytes = bytes_of(copied_.front().input);
    behind_ -= bytes;
    if (copied_.front().number <= sent_) under_way_ -= bytes;
    copied_.pop_front();
  }
  sent_ = std::max(sent_, acknowledged_);
}

void Replica::on(const replica::CopiesTaken& input) {
  if (input.view != view_ || !copies() || image_is_due_ || input.number > taken_) return;
  if (sender_) {
    if (input.image != sender_->image()) return;
    sender_->taken(input.pieces);
    ask_for_piece();
    if (!sender_->all_made() || input.number < sender_->number()) return;
    sender_.reset();
    effects_.emplace_back(replica::DropState{});
  }
  const bool nothing_new = input.number <= acknowledged_;
  acknowledge(input.number);
  // Messages keep their order: what was sent before the question, and is missing in its answer, is
  // lost.
  if (nothing_new && std::exchange(asked_behind_, 0) > acknowledged_) {
    send_again();
  } else {
    send_copies();
  }
  let_go();
  const bool lacks_little = taken_ <= acknowledged_ + kAhead && behind_ <= most_behind_;
  if (state_ == State::kSending && !sender_ && lacks_little) hold();
}

// From: sending, once the other process has the image and lacks little. To: primary; from now
// on answers are held. It is not awaited that everything is sent: as long as nobody waits for an
// answer, pushes may arrive faster than the link to the other process takes them.
void Replica::hold() {
  state_ = State::kPrimary;
  held_from_ = taken_;
}

// ------------------------------------------------------------------ to one that joins

// From: alone, sending, primary, backup. To: sending.
void Replica::on(const replica::BackupJoined& input) {
  if (input.view <= view_ || state_ == State::kBroken) return;
  become_alone(input.view);
  if (state_ == State::kBroken) return;
  state_ = State::kSending;
  behind_before_.reset();
  image_is_due_ = true;
  begin_due_image();
}

// The process that joins cannot read the checkpoint of this group: it may not be on its host, and
// may have been deleted behind newer ones. So its image waits until the rows are here.
void Replica::begin_due_image() {
  const bool rows_are_here =
      start_.restore.empty() || (node_.store() != nullptr && !node_.waits_for<node::SlicesRead>());
  if (rows_are_here) send_image();
}

// The process that joins begins with the present state; earlier events mean nothing to it.
void Replica::send_image() {
  forget_copies();
  acknowledged_ = acknowledged_before_ = sent_ = taken_;
  image_is_due_ = false;
  sender_.emplace(view_, ++images_, taken_);
  effects_.emplace_back(replica::KeepState{images_});
  ask_for_piece();
}

void Replica::forget_copies() {
  copied_.clear();
  behind_ = under_way_ = asked_behind_ = 0;
}

void Replica::ask_for_piece() {
  if (sender_->asks()) effects_.emplace_back(replica::MakePiece{sender_->image()});
}

void Replica::on(const replica::PieceMade& input) {
  if (!sender_ || sender_->image() != input.image) return;
  if (!input.error.empty()) {
    image_is_due_ = true;  // the next tick begins another one
    return;
  }
  effects_.emplace_back(sender_->piece(input.piece));
  ask_for_piece();
}

// -------------------------------------------------------------- of the two, the backup

void Replica::on(const wire::PsImage& input) {
  const bool listens = state_ == State::kJoining || state_ == State::kBackup;
  if (input.view != view_ || !listens) return;
  // Even if an image had arrived completely: the primary has not heard of that, and begins again.
  if (input.image > image_ && input.piece == 1) {
    state_ = State::kJoining;
    image_ = input.image;
    pieces_ = taken_ = 0;
    node_ = ServerNode(start_);
    reader_.emplace();
  }
  if (input.image != image_) return;
  if (state_ == State::kJoining) {
    if (input.piece == pieces_ + 1) {
      const Status read = reader_->take(node_, input);
      if (!read) return break_up(read.error().message);
      ++pieces_;
      if (input.last) {
        taken_ = input.number;
        state_ = State::kBackup;
        reader_.reset();
      }
    }
  }
  effects_.emplace_back(replica::CopiesTaken{view_, taken_, image_, pieces_});
}

// From: joining, backup. To: broken.
void Replica::break_up(std::string error, bool unread) {
  state_ = State::kBroken;
  effects_.emplace_back(replica::BreakUp{std::move(error), unread});
}

void Replica::on(const replica::EventCopied& input) {
  if (input.view != view_ || state_ != State::kBackup) return;
  if (input.number == taken_ + 1) {
    if (!is_due(node_, input.input)) {
      return break_up("its primary copied an event that cannot follow those before it");
    }
    if (const auto* restored = std::get_if<node::SlicesRead>(&input.input)) {
      const node::SlicesRead own = std::exchange(read_, std::nullopt).value_or(node::SlicesRead{});
      if (restored->error.empty() && !own.error.empty()) {
        return break_up(own.error, own.refusal == wire::RefusalCode::kIo);
      }
    }
    ++taken_;
    node_wants_.clear();
    node_.step(input.input, node_wants_);
    for (node::Effect& effect : node_wants_) {
      const bool said = std::holds_alternative<node::ReadSlices>(effect) ||
                        std::holds_alternative<node::RecordDecision>(effect);
      if (said) effects_.emplace_back(std::move(effect));
    }
  }
  effects_.emplace_back(replica::CopiesTaken{view_, taken_, image_, pieces_});
}

// ----------------------------------------------------------------------- the next view

void Replica::on(const replica::BecameAlone& input) {
  if (input.view > view_ && state_ != State::kBroken) become_alone(input.view);
}

// From: sending, primary, backup. To: alone. From: joining. To: broken.
void Replica::become_alone(std::uint64_t view) {
  if (state_ == State::kJoining) {
    return break_up("its server was lost before all of it was here");
  }
  view_ = view;
  const bool promoted = std::exchange(state_, State::kAlone) == State::kBackup;
  forget_copies();
  image_is_due_ = false;
  if (sender_) effects_.emplace_back(replica::DropState{});
  sender_.reset();
  let_go();
  if (promoted) finish_what_the_primary_began();
}

void Replica::finish_what_the_primary_began() {
  if (node_.waits_for<node::SlicesRead>()) {
    take(std::exchange(read_, std::nullopt).value_or(node::SlicesRead{kLost}));
  }
  // When one checkpoint fails, the next one may begin.
  while (node_.waits_for<node::WritingBegun>())
    take(node::WritingBegun{node_.beginning(), 0, kLost});
  for (const std::uint64_t cut : node_.writing()) take(node::SlicesWritten{cut, {}, kLost});
  // Nobody knows which of its decisions were sent, so all are sent again.
  take(node::TimePassed{});
  take(node::TimePassed{});
  // The primary has answered them.
  std::erase_if(effects_, [](const replica::Effect& effect) {
    const auto* of_node = std::get_if<node::Effect>(&effect);
    return of_node != nullptr && is_file_work(*of_node);
  });
}

}  // namespace antdt::ps
