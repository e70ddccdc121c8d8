// What events and records must satisfy, and what records change.
#include <algorithm>
#include <set>
#include <utility>

#include "core/check.h"
#include "shard_server/accounts/evaluation.h"
#include "shard_server/ledger/ledger.h"

namespace antdt::shard_server {

// -------------------------------------------------------------------- checks

Status Ledger::check(const event::PhaseOpened& event) const {
  if (event.phase <= phase_.number) {
    return fail(ErrorKind::kRefused, "phase {} cannot open: phase {} is open or was", event.phase,
                phase_.number);
  }
  if (!complete()) {
    return fail(ErrorKind::kRefused,
                "phase {} cannot open: {} records of phase {} are not committed", event.phase,
                ungranted() + outstanding_, phase_.number);
  }
  return {};
}

Status Ledger::check(const event::MemberAdmitted& event) const {
  const auto found = holders_.find(event.member.worker);
  if (found == holders_.end()) return {};
  const Holder& holder = found->second;
  if (event.member.attempt < holder.attempt ||
      (event.member.attempt == holder.attempt && !holder.active)) {
    return fail(ErrorKind::kRefused,
                "{} cannot join with attempt {}: attempt {} was lost or replaced",
                event.member.worker, event.member.attempt, event.member.attempt);
  }
  return {};
}

Status Ledger::check(const event::MemberLost& event) const {
  const auto found = holders_.find(event.member.worker);
  if (found == holders_.end() || !found->second.active ||
      found->second.attempt != event.member.attempt) {
    return fail(ErrorKind::kRefused, "{} with attempt {} is not a member", event.member.worker,
                event.member.attempt);
  }
  return {};
}

Status Ledger::check(const event::MemberLeft& event) const {
  return check(event::MemberLost{event.member});
}

Status Ledger::check_place(Member member, std::uint64_t place) const {
  const auto found = holders_.find(member.worker);
  if (found == holders_.end() || found->second.attempt != member.attempt) {
    return fail(ErrorKind::kRefused, "{} with attempt {} is not a member", member.worker,
                member.attempt);
  }
  const Holder& holder = found->second;
  if (place < holder.place || place > holder.end) {
    return fail(ErrorKind::kRefused,
                "{} (attempt {}) says that its place is {}: it committed {} records before and was "
                "granted {}",
                member.worker, member.attempt, place, holder.place, holder.end);
  }
  return {};
}

Status Ledger::check(const event::Settled& event) const {
  for (const auto& [worker, holder] : holders_) {
    if (holder.active && holder.generation >= event.generation) {
      return fail(ErrorKind::kRefused, "generation {} cannot settle: {} is of generation {}",
                  event.generation, worker, holder.generation);
    }
  }
  std::set<WorkerId> placed;
  for (const OldPlace& old : event.places) {
    ANTDT_RETURN_IF_ERROR(check_place(old.member, old.place));
    if (!placed.insert(old.member.worker).second) {
      return fail(ErrorKind::kRefused, "generation {} cannot settle: it has two places of {}",
                  event.generation, old.member.worker);
    }
  }
  for (const Member& member : event.members) {
    const auto found = holders_.find(member.worker);
    if (found != holders_.end() && member.attempt < found->second.attempt) {
      return fail(ErrorKind::kRefused, "generation {} cannot settle: {} is at attempt {}, not {}",
                  event.generation, member.worker, found->second.attempt, member.attempt);
    }
  }
  return {};
}

Status Ledger::check(const event::Fetch& event) const {
  if (event.seq == 0) return fail(ErrorKind::kRefused, "a fetch without a number (seq)");
  ANTDT_RETURN_IF_ERROR(check_place(event.member, event.request.place));
  if (event.request.late > 0) {
    if (phase_.kind != PhaseKind::kTrain) {
      return fail(ErrorKind::kRefused,
                  "records come too late in an evaluation, which has no steps");
    }
    ANTDT_RETURN_IF_ERROR(check_late(event.member, event.request.place, event.request.late));
  }
  for (const wire::EvalPartial& partial : event.request.partials) {
    if (phase_.kind != PhaseKind::kEval) {
      return fail(ErrorKind::kRefused, "a partial evaluation in a training phase");
    }
    ANTDT_RETURN_IF_ERROR(check_partial(partial));
  }
  return {};
}

Status Ledger::check_late(Member member, std::uint64_t place, std::uint64_t records) const {
  const std::uint64_t in_hand = holders_.at(member.worker).end - place;
  if (records <= in_hand) return {};
  return fail(ErrorKind::kRefused,
              "{} (attempt {}) says that {} records came too late: it has {} in hand",
              member.worker, member.attempt, records, in_hand);
}

// Whether a grant goes on where the stream was granted up to `cursor`, but for
// what is skipped.
bool Ledger::is_next(Interval at, std::uint64_t cursor) const {
  return at.from >= cursor && at.to <= stream_.size() &&
         skips_.outside({cursor, at.from}).empty() && skips_.inside(at).empty();
}

Status Ledger::check(const record::Answered& record) const {
  ANTDT_RETURN_IF_ERROR(check_place(record.member, record.place));
  std::uint64_t cursor = cursor_;
  IntervalSet taken;  // by this record
  for (const Range& range : record.granted) {
    const bool ahead = is_next(range.at, cursor);
    const bool again = returned_.holds(range.at) && taken.inside(range.at).empty();
    if (range.at.empty() || !(ahead || again)) {
      return fail(ErrorKind::kRefused, "positions {}:{} are granted to {} and were not free",
                  range.at.from, range.at.to, record.member.worker);
    }
    if (ahead) cursor = range.at.to;
    taken.add(range.at);
  }
  for (const wire::EvalPartial& partial : record.partials) {
    ANTDT_RETURN_IF_ERROR(check_partial(partial));
  }
  return {};
}

Status Ledger::check(const event::Progress& event) const {
  return check_place(event.member, event.place);
}

Status Ledger::check(const record::RecallIssued& record) const {
  return check_place(record.member, record.keep_to);
}

Status Ledger::check(const record::Recalled& record) const {
  return check_place(record.member, record.end);
}

Status Ledger::check(const record::Late& record) const {
  ANTDT_RETURN_IF_ERROR(check(record.answered));
  return check_late(record.answered.member, record.answered.place, record.records);
}

Status Ledger::check(const event::SkipDeclared& event) const {
  if (event.phase != phase_.number) {
    return fail(ErrorKind::kRefused, "records of phase {} cannot be skipped: phase {} is open",
                event.phase, phase_.number);
  }
  if (event.at.empty() || event.at.to > stream_.size()) {
    return fail(ErrorKind::kRefused,
                "positions {}:{} cannot be skipped: FROM must be below TO, and TO at most {}",
                event.at.from, event.at.to, stream_.size());
  }
  if (event.reason.empty()) return fail(ErrorKind::kRefused, "records are skipped for a reason");
  return {};
}

Status Ledger::check(const record::Rewound& record) const {
  ANTDT_RETURN_IF_ERROR(restore(config_, record.ledger_image));
  return {};
}

// ------------------------------------------------------------------- updates

void Ledger::apply(const event::PhaseOpened& record, Changes&) {
  const bool train = record.kind == PhaseKind::kTrain;
  phase_ = {record.phase, record.kind, record.epoch};
  stream_ = EpochStream(train ? config_.train : config_.eval, record.epoch, record.kind);
  cursor_ = committed_ = skips_ahead_ = 0;
  skips_ = {};
  left_out_ = {};
  evaluation_ = {};
  for (auto& [worker, holder] : holders_) reset_hand(holder);
}

void Ledger::apply(const event::MemberAdmitted& record, Changes& changes) {
  Holder& holder = holders_[record.member.worker];
  give_back_all(record.member.worker, holder, true, changes);
  reset_hand(holder);
  if (holder.attempt != record.member.attempt) holder.last = {};
  holder.attempt = record.member.attempt;
  holder.generation = record.generation;
  holder.active = true;
  count_members();
}

void Ledger::apply(const event::MemberLost& record, Changes& changes) {
  Holder& holder = holders_.at(record.member.worker);
  give_back_all(record.member.worker, holder, true, changes);
  holder.active = false;
  count_members();
}

void Ledger::apply(const event::MemberLeft& record, Changes& changes) {
  Holder& holder = holders_.at(record.member.worker);
  give_back_all(record.member.worker, holder, false, changes);
  holder.active = false;
  count_members();
}

void Ledger::apply(const event::Settled& record, Changes& changes) {
  for (const OldPlace& old : record.places) {
    Holder& holder = holders_.at(old.member.worker);
    commit(holder, old.place);
    give_back_all(old.member.worker, holder, old.lost, changes);
  }
  for (auto& [worker, holder] : holders_) {
    give_back_all(worker, holder, false, changes);  // those who are not listed
    reset_hand(holder);
    holder.active = false;
  }
  for (const Member& member : record.members) {
    Holder& holder = holders_[member.worker];
    if (holder.attempt != member.attempt) holder.last = {};
    holder.attempt = member.attempt;
    holder.generation = record.generation;
    holder.active = true;
  }
  count_members();
}

void Ledger::apply(const record::Answered& record, Changes&) {
  Holder& holder = holders_.at(record.member.worker);
  commit(holder, record.place);
  // Nothing is left of what was to be recalled.
  if (holder.outstanding() == 0) holder.recall_pending = false;
  for (const wire::EvalPartial& partial : record.partials) merge(evaluation_, partial);
  Answer& last = holder.last;
  last.seq = record.seq;
  last.phase = phase_.number;
  last.status = record.status;
  last.retry_ms = record.retry_ms;
  last.granted.clear();
  for (const Range& range : record.granted) {
    hand_out(holder, range);
    last.granted.push_back(range.at);
  }
}

// The places of what is behind them begin at the member's place from now on. That is as
// if they had never been in its hand: no place after its own was said to anybody yet.
void Ledger::apply(const record::Late& record, Changes& changes) {
  const WorkerId worker = record.answered.member.worker;
  Holder& holder = holders_.at(worker);
  commit(holder, record.answered.place);
  holder.end -= record.records;
  outstanding_ -= record.records;
  if (record.dropped) committed_ += record.records;
  if (holder.recall_keep_to > holder.place) {
    holder.recall_keep_to -= std::min(holder.recall_keep_to - holder.place, record.records);
  }
  take_front(holder, record.records, [&](const Range& late) {
    if (!record.dropped) give_back(late, worker);
  });
  apply(record.answered, changes);
}

void Ledger::apply(const event::Progress& record, Changes&) {
  commit(holders_.at(record.member.worker), record.place);
}

void Ledger::apply(const event::Shares& record, Changes&) {
  for (auto& [worker, holder] : holders_) holder.step_records = holder.hold_records = 0;
  for (const MemberShare& share : record.shares) {
    const auto found = holders_.find(share.worker);
    if (found == holders_.end()) continue;
    found->second.step_records = share.step_records;
    found->second.hold_records = share.hold_records;
  }
  count_members();
}

void Ledger::apply(const record::RecallIssued& record, Changes&) {
  Holder& holder = holders_.at(record.member.worker);
  holder.recalls = record.number;
  holder.recall_pending = true;
  holder.recall_keep_to = record.keep_to;
  may_be_recalled_ = true;
}

void Ledger::apply(const record::Recalled& record, Changes&) {
  Holder& holder = holders_.at(record.member.worker);
  holder.recall_pending = false;
  std::uint64_t back = holder.end - record.end;
  holder.end = record.end;
  outstanding_ -= back;
  while (back > 0) {
    Range& last = holder.grants.back();
    const std::uint64_t cut = std::min(back, last.at.size());
    last.at.to -= cut;
    back -= cut;
    give_back({{last.at.to, last.at.to + cut}, last.retries});
    if (last.at.empty()) holder.grants.pop_back();
  }
}

void Ledger::apply(const event::SkipDeclared& record, Changes&) {
  for (const Interval part : skips_.outside(record.at)) {
    for (const Range& range : returned_.ranges()) {
      leave_out({std::max(range.at.from, part.from), std::min(range.at.to, part.to)});
    }
    returned_.remove(part);
    const Interval ahead{std::max(part.from, cursor_), part.to};
    if (!ahead.empty()) skips_ahead_ += ahead.size();
    leave_out(ahead);
    skips_.add(part);
  }
}

void Ledger::apply(const record::Rewound& record, Changes& changes) {
  auto then = restore(config_, record.ledger_image);
  ANTDT_CHECK(then.has_value(), "rewound to an image that was checked: {}", then.error().message);
  std::map<WorkerId, Holder> fenced = std::move(holders_);
  *this = std::move(*then);
  for (auto& [worker, holder] : holders_) give_back_all(worker, holder, false, changes);
  holders_ = std::move(fenced);
  for (auto& [worker, holder] : holders_) {
    holder.grants.clear();  // they count no more
    holder.last = {holder.last.seq, 0, AnswerStatus::kWait, 0, {}};
    reset_hand(holder);
    holder.active = false;
  }
  count_members();
}

// ----------------------------------------------------------------- their parts

namespace {

void append(std::vector<Range>& ranges, const Range& range) {
  if (!ranges.empty() && ranges.back().at.to == range.at.from &&
      ranges.back().retries == range.retries) {
    ranges.back().at.to = range.at.to;
  } else {
    ranges.push_back(range);
  }
}

}  // namespace

template <class F>
void Ledger::take_front(Holder& holder, std::uint64_t records, F visit) {
  auto grant = holder.grants.begin();
  while (records > 0) {
    const std::uint64_t take = std::min(records, grant->at.size());
    visit(Range{{grant->at.from, grant->at.from + take}, grant->retries});
    grant->at.from += take;
    records -= take;
    if (grant->at.empty()) ++grant;
  }
  holder.grants.erase(holder.grants.begin(), grant);
}

void Ledger::commit(Holder& holder, std::uint64_t place) {
  const std::uint64_t more = place - holder.place;
  if (more == 0) return;
  committed_ += more;
  outstanding_ -= more;
  holder.place = place;
  take_front(holder, more, [&](const Range& range) { append(holder.recent, range); });
  if (holder.recent.size() > kRecentRanges) {
    holder.recent.erase(holder.recent.begin(),
                        holder.recent.end() - static_cast<std::ptrdiff_t>(kRecentRanges));
  }
}

// Back to a place that `recent` reaches.
void Ledger::uncommit(Holder& holder, std::uint64_t place) {
  std::uint64_t left = holder.place - place;
  committed_ -= left;
  outstanding_ += left;
  holder.place = place;
  std::vector<Range> backwards;
  while (left > 0) {
    Range& last = holder.recent.back();
    const std::uint64_t take = std::min(left, last.at.size());
    last.at.to -= take;
    left -= take;
    backwards.push_back({{last.at.to, last.at.to + take}, last.retries});
    if (last.at.empty()) holder.recent.pop_back();
  }
  std::vector<Range> grants;
  for (auto range = backwards.rbegin(); range != backwards.rend(); ++range) append(grants, *range);
  for (const Range& range : holder.grants) append(grants, range);
  holder.grants = std::move(grants);
}

void Ledger::hand_out(Holder& holder, const Range& range) {
  if (range.at.from >= cursor_) {
    if (skips_ahead_ > 0) skips_ahead_ -= total_size(skips_.inside({cursor_, range.at.from}));
    cursor_ = range.at.to;
  } else {
    returned_.remove(range.at);
  }
  holder.end += range.at.size();
  outstanding_ += range.at.size();
  append(holder.grants, range);
}

// `suspect`: the holder was lost, and what it was working on may be why: its
// last two steps, which may not be stable, and the one after them; of a member
// whose steps are not known its first grant.
void Ledger::give_back_all(WorkerId worker, Holder& holder, bool suspect, Changes& changes) {
  outstanding_ -= holder.outstanding();
  holder.end = holder.place;
  const std::vector<Range> grants = std::exchange(holder.grants, {});
  if (grants.empty()) return;
  std::uint64_t suspects = 0;
  if (suspect) {
    suspects = holder.step_records > 0 ? 3 * holder.step_records : grants.front().at.size();
  }
  for (Range range : grants) {
    const std::uint64_t touched = std::min(suspects, range.at.size());
    suspects -= touched;
    const Range worked_on{{range.at.from, range.at.from + touched}, range.retries + 1};
    range.at.from += touched;
    for (const Range& part : {worked_on, range}) {
      if (part.at.empty()) continue;
      give_back(part);
      if (suspect) changes.push_back({{worker, holder.attempt}, part});
    }
  }
}

void Ledger::give_back(Range range, std::optional<WorkerId> late_of) {
  if (skips_.empty()) return returned_.add(range, late_of);
  for (const Interval part : skips_.outside(range.at)) {
    returned_.add({part, range.retries}, late_of);
  }
  for (const Interval part : skips_.inside(range.at)) leave_out(part);
}

void Ledger::leave_out(Interval skipped) {
  if (!skipped.empty()) left_out_.add(skipped);
}

void Ledger::reset_hand(Holder& holder) {
  ANTDT_CHECK(holder.grants.empty(), "a hand with {} ranges is reset", holder.grants.size());
  holder.place = holder.end = 0;
  holder.recent.clear();
  holder.recall_pending = false;
}

void Ledger::count_members() {
  active_members_ = share_sum_ = 0;
  for (const auto& [worker, holder] : holders_) {
    if (!holder.active) continue;
    active_members_ += 1;
    share_sum_ += holder.step_records;
  }
}

}  // namespace antdt::shard_server
