#include "trainer/client/shard_feed.h"

#include <algorithm>
#include <iterator>

namespace antdt::client {
namespace {

std::uint64_t size(const wire::Piece& piece) { return piece.to - piece.from; }

}  // namespace

void ShardFeed::begin(std::uint64_t phase, Generation generation) {
  // Settings and the numbering of requests are kept; everything else belonged to the old phase.
  ShardFeed fresh;
  fresh.stage_ = Stage::kOpen;
  fresh.phase_ = phase;
  fresh.generation_ = generation;
  fresh.hold_ = hold_;
  fresh.last_seq_ = last_seq_;
  *this = std::move(fresh);
}

Taken ShardFeed::take(std::uint64_t max_records) {
  Taken taken;
  while (!in_hand_.empty() && taken.records < max_records) {
    wire::Piece& front = in_hand_.front();
    wire::Piece part = front;
    part.to = part.from + std::min(size(front), max_records - taken.records);
    taken.records += size(part);
    front.from = part.to;
    if (size(front) == 0) in_hand_.pop_front();
    taken.pieces.push_back(part);
  }
  in_hand_records_ -= taken.records;
  taken_ += taken.records;
  if (taken.records > 0) {
    taken.status = TakeStatus::kData;
  } else if (stage_ == Stage::kEnded) {
    taken.status = TakeStatus::kEnd;
  }
  taken.stale = taken.status == TakeStatus::kWait && stage_ == Stage::kStale;
  taken.dry = taken.status == TakeStatus::kWait && dry_;
  return taken;
}

void ShardFeed::commit(std::uint64_t place, std::optional<wire::EvalPartial> partial,
                       MonoTime now) {
  if (place_ <= sent_place_) unsent_since_ = now;
  place_ = std::max(place_, std::min(place, taken_));
  if (!partial) return;
  // A request has the names once, and not with each micro-batch.
  if (!partials_.empty()) wire::add(partials_.front().named, std::exchange(partial->named, {}));
  partials_.push_back(std::move(*partial));
}

void ShardFeed::skip(std::vector<wire::SkippedRecords> records) {
  std::ranges::move(records, std::back_inserter(skips_));
}

void ShardFeed::place_was_sent(std::uint64_t phase, std::uint64_t place) {
  if (phase == phase_) sent_place_ = std::max(sent_place_, place);
}

void ShardFeed::on_grants(std::uint64_t seq, const wire::Grants& grants, MonoTime now) {
  if (!outstanding_ || outstanding_->request.seq != seq) return;
  const bool asked_for_records = outstanding_->request.fetch.want > 0;
  const std::uint64_t given_back = outstanding_->request.fetch.late;
  const auto told = static_cast<std::ptrdiff_t>(outstanding_->request.fetch.skipped.size());
  skips_.erase(skips_.begin(), skips_.begin() + told);
  outstanding_.reset();
  recalls_over_ = std::max(recalls_over_, grants.recalls_over);
  if (grants.status == wire::GrantStatus::kEnd) {
    stage_ = Stage::kEnded;
  } else if (grants.status == wire::GrantStatus::kStale) {
    stage_ = Stage::kStale;
  } else if (grants.status == wire::GrantStatus::kWait ||
             (asked_for_records && grants.pieces.empty())) {
    dry_ = true;
    ask_again_at_ = now + std::chrono::milliseconds(std::max(grants.retry_ms, 1U));
  } else if (asked_for_records) {
    dry_ = false;
  }
  taken_ -= given_back;
  late_ -= given_back;
  for (const wire::Piece& piece : grants.pieces) add(piece);
}

void ShardFeed::add(const wire::Piece& piece) {
  if (piece.from >= piece.to || piece.to > piece.shard_records) {
    problem_ = fmt::format("the shard service granted positions [{}, {}) of shard {}, which has {}",
                           piece.from, piece.to, piece.shard, piece.shard_records);
    return;
  }
  in_hand_.push_back(piece);
  in_hand_records_ += size(piece);
}

std::optional<wire::Recalled> ShardFeed::on_recall(Generation generation, std::uint64_t number,
                                                   const wire::Recall& recall) {
  if (stage_ == Stage::kIdle || recall.phase != phase_ || generation != generation_) return {};
  // A repeated recall must not take back what was granted after its answer.
  if (number == recall_answered_) return recalled_;
  if (number < recall_answered_ || number <= recalls_over_) return {};
  // If the answer to the request is lost or late, it brings grants that this side does not count.
  // The ledger repeats the recall.
  if (outstanding_) return {};
  const std::uint64_t before = taken_ + in_hand_records_;
  const std::uint64_t end = std::min(before, std::max(recall.keep_to, taken_));
  while (taken_ + in_hand_records_ > end) {
    wire::Piece& back = in_hand_.back();
    const std::uint64_t cut = std::min(size(back), taken_ + in_hand_records_ - end);
    back.to -= cut;
    in_hand_records_ -= cut;
    if (size(back) == 0) in_hand_.pop_back();
  }
  recall_answered_ = number;
  recalled_ = {phase_, end, before - end};
  return recalled_;
}

MonoTime ShardFeed::commit_due() const {
  return partials_.empty() ? unsent_since_ + kCommitWithin : MonoTime::min();
}

std::optional<ShardFeed::Request> ShardFeed::poll(MonoTime now) {
  if (stage_ != Stage::kOpen) return {};
  if (outstanding_) {
    if (now < outstanding_->sent_at + kRepeatAfter) return {};
    outstanding_->sent_at = now;
    return outstanding_->request;
  }
  const bool commits_now = has_commit() && now >= commit_due();
  const bool fetches_now = wants_more() && (!dry_ || now >= ask_again_at_);
  if (!commits_now && !fetches_now && late_ == 0 && skips_.empty()) return {};

  Request request{++last_seq_, generation_, {}};
  request.fetch.phase = phase_;
  // What was skipped is said no later than it is committed.
  request.fetch.place = skips_.size() > wire::Fetch::kMaxSkipped ? sent_place_ : place_;
  // A quarter more than the hold is requested, so that not every batch needs a request. If the
  // worker commits while it waits, it asks again at the same time, because that commit may complete
  // the phase.
  if (wants_more()) request.fetch.want = hold_ + hold_ / 4 - in_hand_records_;
  request.fetch.late = late_;
  const std::size_t told = std::min(skips_.size(), wire::Fetch::kMaxSkipped);
  request.fetch.skipped.assign(skips_.begin(), skips_.begin() + static_cast<std::ptrdiff_t>(told));
  request.fetch.partials = std::exchange(partials_, {});
  sent_place_ = std::max(sent_place_, request.fetch.place);
  outstanding_ = Outstanding{request, now};
  return request;
}

std::optional<MonoTime> ShardFeed::deadline() const {
  if (stage_ != Stage::kOpen) return {};
  if (outstanding_) return outstanding_->sent_at + kRepeatAfter;
  if (late_ > 0 || !skips_.empty()) return MonoTime::min();
  std::optional<MonoTime> due;
  if (has_commit()) due = commit_due();
  if (wants_more()) {
    const MonoTime ask = dry_ ? ask_again_at_ : MonoTime::min();
    due = due ? std::min(*due, ask) : ask;
  }
  return due;
}

}  // namespace antdt::client
