#include "shard_server/ledger/holders.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace antdt::shard_server {
namespace {

void append(std::vector<Range>& ranges, const Range& range) {
  if (!ranges.empty() && ranges.back().at.to == range.at.from &&
      ranges.back().retries == range.retries) {
    ranges.back().at.to = range.at.to;
  } else {
    ranges.push_back(range);
  }
}

// Removes the first records from what a holder has, and calls visit(range) for each part.
template <class F>
void take_front(Holder& holder, std::uint64_t records, F visit) {
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

}  // namespace

const Holder* Holders::find(WorkerId worker) const {
  const auto found = holders_.find(worker);
  return found == holders_.end() ? nullptr : &found->second;
}

const Holder* Holders::find_current(Member member, Generation generation) const {
  const Holder* holder = find(member.worker);
  const bool current = holder != nullptr && holder->active && holder->attempt == member.attempt &&
                       holder->generation == generation;
  return current ? holder : nullptr;
}

Holders::Sums Holders::sums_of_all() const {
  Sums all;
  for (const Sums& sums : sums_) {
    all.outstanding += sums.outstanding;
    all.members += sums.members;
    all.step_records += sums.step_records;
  }
  return all;
}

void Holders::begin_phase() {
  committed_ = 0;
  for (auto& [worker, holder] : holders_) reset(holder);
}

void Holders::admit(const std::vector<Member>& members, const std::vector<DomainNumber>& domains,
                    Generation generation) {
  for (std::size_t i = 0; i < members.size(); ++i) {
    const Member& member = members[i];
    Holder& holder = holders_[member.worker];
    reset(holder);
    holder.domain = i < domains.size() ? domains[i] : DomainNumber{};
    if (holder.attempt != member.attempt) holder.last = {};
    holder.attempt = member.attempt;
    holder.generation = generation;
    holder.active = true;
  }
  count_members();
}

void Holders::deactivate(WorkerId worker) {
  holders_.at(worker).active = false;
  count_members();
}

void Holders::deactivate_all() {
  for (auto& [worker, holder] : holders_) {
    reset(holder);
    holder.active = false;
  }
  count_members();
}

void Holders::set_shares(const std::vector<MemberShare>& shares) {
  for (auto& [worker, holder] : holders_) holder.step_records = holder.hold_records = 0;
  for (const MemberShare& share : shares) {
    const auto found = holders_.find(share.worker);
    if (found == holders_.end()) continue;
    found->second.step_records = share.step_records;
    found->second.hold_records = share.hold_records;
  }
  count_members();
}

void Holders::answer(WorkerId worker, std::uint64_t place, Answer answer,
                     const std::vector<Range>& granted) {
  Holder& holder = holders_.at(worker);
  commit(holder, place);
  // A holder of nothing has nothing that could be recalled.
  if (holder.outstanding() == 0) holder.recall_pending = false;
  holder.last = std::move(answer);
  for (const Range& range : granted) {
    holder.end += range.at.size();
    hold(holder, range.at.size());
    append(holder.grants, range);
  }
}

void Holders::commit(WorkerId worker, std::uint64_t place) { commit(holders_.at(worker), place); }

void Holders::commit(Holder& holder, std::uint64_t place) {
  const std::uint64_t more = place - holder.place;
  if (more == 0) return;
  committed_ += more;
  release(holder, more);
  holder.place = place;
  take_front(holder, more, [&](const Range& range) { append(holder.recent, range); });
  if (holder.recent.size() > 2 * kRecentRanges) {
    holder.recent.erase(holder.recent.begin(),
                        holder.recent.end() - static_cast<std::ptrdiff_t>(kRecentRanges));
  }
}

void Holders::uncommit(WorkerId worker, std::uint64_t place) {
  Holder& holder = holders_.at(worker);
  std::uint64_t left = holder.place - place;
  committed_ -= left;
  hold(holder, left);
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

void Holders::issue_recall(WorkerId worker, std::uint64_t number, std::uint64_t keep_to) {
  Holder& holder = holders_.at(worker);
  holder.recalls = number;
  holder.recall_pending = true;
  holder.recall_keep_to = keep_to;
}

std::vector<Range> Holders::settle_recall(WorkerId worker, std::uint64_t end) {
  Holder& holder = holders_.at(worker);
  holder.recall_pending = false;
  std::uint64_t back = holder.end - end;
  holder.end = end;
  release(holder, back);
  std::vector<Range> cut_off;
  while (back > 0) {
    Range& last = holder.grants.back();
    const std::uint64_t cut = std::min(back, last.at.size());
    last.at.to -= cut;
    back -= cut;
    cut_off.push_back({{last.at.to, last.at.to + cut}, last.retries});
    if (last.at.empty()) holder.grants.pop_back();
  }
  return cut_off;
}

std::vector<Range> Holders::take_late(WorkerId worker, std::uint64_t records, bool dropped) {
  Holder& holder = holders_.at(worker);
  holder.end -= records;
  release(holder, records);
  if (dropped) committed_ += records;
  if (holder.recall_keep_to > holder.place) {
    holder.recall_keep_to -= std::min(holder.recall_keep_to - holder.place, records);
  }
  std::vector<Range> late;
  take_front(holder, records, [&](const Range& range) { late.push_back(range); });
  return late;
}

std::vector<Range> Holders::take_all(WorkerId worker, bool suspect) {
  Holder& holder = holders_.at(worker);
  release(holder, holder.outstanding());
  holder.end = holder.place;
  const std::vector<Range> grants = std::exchange(holder.grants, {});
  if (grants.empty()) return {};
  std::uint64_t suspects = 0;
  if (suspect) {
    suspects = holder.step_records > 0 ? 3 * holder.step_records : grants.front().at.size();
  }
  std::vector<Range> parts;
  for (Range range : grants) {
    const std::uint64_t touched = std::min(suspects, range.at.size());
    suspects -= touched;
    const Range worked_on{{range.at.from, range.at.from + touched}, range.retries + 1};
    range.at.from += touched;
    for (const Range& part : {worked_on, range}) {
      if (!part.at.empty()) parts.push_back(part);
    }
  }
  return parts;
}

void Holders::replace_fenced(Holders fenced) {
  holders_ = std::move(fenced.holders_);
  for (auto& [worker, holder] : holders_) {
    holder.grants.clear();  // what they held belongs to another state
    holder.last = {holder.last.seq, 0, AnswerStatus::kWait, 0, {}};
  }
  deactivate_all();
}

void Holders::reset(Holder& holder) {
  ANTDT_CHECK(holder.grants.empty(), "a holder of {} ranges is reset", holder.grants.size());
  holder.place = holder.end = 0;
  holder.recent.clear();
  holder.recall_pending = false;
}

void Holders::count_members() {
  for (Sums& sums : sums_) sums.members = sums.step_records = 0;
  for (const auto& [worker, holder] : holders_) {
    if (!holder.active) continue;
    Sums& mine = sums(holder.domain);
    mine.members += 1;
    mine.step_records += holder.step_records;
  }
}

void Holders::hold(const Holder& holder, std::uint64_t records) {
  outstanding_ += records;
  sums(holder.domain).outstanding += records;
}

void Holders::release(const Holder& holder, std::uint64_t records) {
  outstanding_ -= records;
  sums(holder.domain).outstanding -= records;
}

Holders::Sums& Holders::sums(DomainNumber domain) {
  if (domain.value >= sums_.size()) sums_.resize(domain.value + 1);
  return sums_[domain.value];
}

}  // namespace antdt::shard_server
