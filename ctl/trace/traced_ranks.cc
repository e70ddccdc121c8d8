#include "ctl/trace/traced_ranks.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace antdt::ctl::trace {
namespace {

constexpr Duration kRecent = std::chrono::seconds(5);
// Of a process that waits: its tracer's own second a second.
constexpr double kIdleShare = 0.02;

}  // namespace

void TracedRanks::step(const Input& input, MonoTime now, Effects& out) {
  std::visit([&](const auto& e) { on(e, now, out); }, input);
  check_invariants();
}

void TracedRanks::check_invariants() const {
  ANTDT_CHECK(hang_.has_value() == (state_ == State::kHung || state_ == State::kEnded),
              "a hang is known exactly while it lasts: state {}", static_cast<int>(state_));
}

void TracedRanks::on(const RankSaid& e, MonoTime now, Effects& out) {
  Rank& rank = ranks_[e.member.worker];
  const bool is_new = rank.member != e.member;
  if (is_new) rank = Rank{e.member, {}, now, e.said.cpu_ms, now, {}};
  const bool moves =
      is_new || rank.said.steps != e.said.steps || rank.said.collectives != e.said.collectives;
  const double used_s =
      static_cast<double>(e.said.cpu_ms - std::min(e.said.cpu_ms, rank.idle_cpu_ms)) / 1e3;
  // Looked at in pieces, so that little work in a long time is seen as well.
  if (moves || used_s > 0.1 + kIdleShare * to_seconds(now - rank.idle_since)) {
    rank.idle_since = now;
    rank.idle_cpu_ms = e.said.cpu_ms;
  }
  rank.said = e.said;
  rank.heard = now;
  progress_.ranks = std::max<std::uint64_t>(progress_.ranks, ranks_.size());
  progress_.runs = e.said.runs;
  // The one that failed may take a moment to end, and the others may go on meanwhile.
  const bool ends = state_ == State::kEnded && !is_new && now - asked_ < kEndsWithin;
  if (moves && !ends) moved(now, out);
  count(now);
}

void TracedRanks::count(MonoTime now) {
  progress_.samples = earlier_samples_;
  progress_.samples_known = !ranks_.empty();
  Step furthest;
  for (const auto& [worker, rank] : ranks_) {
    furthest = std::max(furthest, rank.said.steps);
    progress_.samples += rank.said.samples;
    progress_.samples_known = progress_.samples_known && rank.said.samples_known;
  }
  if (furthest != progress_.step) {
    if (!first_step_) first_step_ = now;
    progress_.seconds = to_seconds(now - *first_step_);
  }
  progress_.step = furthest;
  if (!recent_.empty() && now - recent_.back().at < std::chrono::milliseconds(500)) return;
  recent_.push_back({now, progress_.step, progress_.samples});
  while (recent_.size() > 2 && recent_[1].at + kRecent < now) recent_.pop_front();
  const Point& from = recent_.front();
  const double seconds = to_seconds(now - from.at);
  if (seconds <= 0) return;
  const auto rate = [seconds](std::uint64_t to, std::uint64_t since) {
    return to > since ? static_cast<double>(to - since) / seconds : 0;
  };
  progress_.steps_per_second = rate(progress_.step.value, from.step.value);
  progress_.samples_per_second = rate(progress_.samples, from.samples);
}

void TracedRanks::moved(MonoTime now, Effects& out) {
  moved_ = now;
  if (state_ == State::kMoving) return;
  if (state_ == State::kAskingAfterFailure) return;  // the others may take a moment to see it
  if (hang_) out.emplace_back(SayHangOver{});
  hang_.reset();
  state_ = State::kMoving;
}

// From: kMoving, kAsking. To: `why`, which is one of the two states in which they are asked.
void TracedRanks::ask(State why, MonoTime now, Effects& out) {
  AskForStacks asks{++number_, {}};
  for (auto& [worker, rank] : ranks_) {
    rank.told.reset();
    asks.members.push_back(rank.member);
  }
  state_ = why;
  asked_ = now;
  out.emplace_back(std::move(asks));
}

// A rank whose collective failed says so by itself, and is there for a moment: the others are
// asked what they have called.
void TracedRanks::on(const StackHeard& e, MonoTime now, Effects& out) {
  const auto found = ranks_.find(e.member.worker);
  if (found == ranks_.end() || found->second.member != e.member) return;
  if (e.told.number == 0) {
    if (state_ == State::kHung || state_ == State::kEnded) return;
    if (state_ != State::kAskingAfterFailure) ask(State::kAskingAfterFailure, now, out);
    found->second.told = e.told;
  } else if (asking() && e.told.number == number_) {
    found->second.told = e.told;
  }
  if (!asking()) return;
  const bool all =
      std::ranges::all_of(ranks_, [](const auto& r) { return r.second.told.has_value(); });
  if (all) conclude(now, out);
}

std::vector<RankFound> TracedRanks::found(MonoTime now) const {
  std::vector<RankFound> all;
  for (const auto& [worker, rank] : ranks_) {
    const double waits =
        static_cast<double>(rank.said.inside_ms) / 1e3 + to_seconds(now - rank.heard);
    all.push_back({worker, rank.said, waits, rank.told});
  }
  return all;
}

// From: kAskingAfterFailure. To: kEnded, because it ends by itself, if a mismatch explains the
// failure, otherwise kMoving.
// From: kAsking. To: kHung.
void TracedRanks::conclude(MonoTime now, Effects& out) {
  if (state_ == State::kAskingAfterFailure) {
    hang_ = explain_mismatch(found(now));
    state_ = hang_ ? State::kEnded : State::kMoving;
    moved_ = now;
  } else {
    hang_ = explain_hang(found(now));
    state_ = State::kHung;
  }
  concluded_ = now;
  if (hang_) out.emplace_back(SayHang{*hang_});
}

void TracedRanks::on(const RankGone& e, MonoTime now, Effects& out) {
  const auto found = ranks_.find(e.member.worker);
  if (found == ranks_.end() || found->second.member != e.member) return;
  earlier_samples_ += found->second.said.samples;
  // What was found out about them stays known until others come.
  if (state_ == State::kHung) state_ = State::kEnded;
  if (state_ == State::kEnded) {
    ranks_.erase(found);
    return;
  }
  if (state_ == State::kAskingAfterFailure) conclude(now, out);
  ranks_.erase(found);
  if (state_ != State::kEnded) moved(now, out);
}

void TracedRanks::on(const TimePassed& /*e*/, MonoTime now, Effects& out) {
  switch (state_) {
    case State::kMoving: {
      const bool one_waits =
          std::ranges::any_of(ranks_, [](const auto& r) { return !r.second.said.inside.empty(); });
      if (one_waits && now - moved_ >= hang_after_ / kPatienceParts) {
        ask(State::kAsking, now, out);
      }
      break;
    }
    case State::kAsking:
    case State::kAskingAfterFailure:
      if (now - asked_ >= kAnswerWithin) conclude(now, out);
      break;
    case State::kHung:
      end_if_hopeless(now, out);
      break;
    case State::kEnded:
      break;
  }
}

bool TracedRanks::is_idle(WorkerId worker, MonoTime now) const {
  const Rank& rank = ranks_.at(worker);
  return now - std::max(rank.idle_since, moved_) >= kIdleTimes * hang_after_;
}

void TracedRanks::end_if_hopeless(MonoTime now, Effects& out) {
  if (now - moved_ < hang_after_ || ranks_.empty()) return;
  const std::vector<WorkerId>& culprits = hang_->culprits;
  const bool silent = std::ranges::any_of(
      culprits, [&](WorkerId w) { return ranks_.contains(w) && !ranks_.at(w).told; });
  const bool idle = !culprits.empty() && std::ranges::all_of(culprits, [&](WorkerId w) {
    return ranks_.contains(w) && is_idle(w, now);
  });
  if (!hang_->all_wait && !silent && !idle) return;
  const auto named = culprits.empty() ? ranks_.begin() : ranks_.find(culprits.front());
  if (named == ranks_.end()) return;
  state_ = State::kEnded;
  out.emplace_back(EndRank{named->second.member, told(*hang_, to_seconds(now - concluded_))});
}

}  // namespace antdt::ctl::trace
