#include "trainer/worker/sharing/share_desk.h"

#include <algorithm>

#include "core/check.h"
#include "core/overloaded.h"

namespace antdt::worker::sharing {
namespace {

// A member that should have computed its run by now is expected to need this
// part of the time again.
constexpr double kOverdue = 0.1;
// Small runs of so many sizes are distinguished, each by so many of them.
constexpr std::size_t kSmallSizes = 32;
constexpr std::uint32_t kEnough = 8;
constexpr double kLeastSeconds = 1e-6;  // no member is infinitely fast

}  // namespace

ShareDesk::ShareDesk(std::uint32_t members, ShareRules rules) : rules_(rules), members_(members) {
  for (Member& m : members_) m.steady = rules_.first / rules_.careful;
}

void ShareDesk::step(const Input& input, MonoTime now, Effects& out) {
  const Offered& offer = std::holds_alternative<Asked>(input) ? std::get<Asked>(input).offer
                                                              : std::get<Offered>(input);
  if (offer.member >= members_.size() || offer.step < step_) return;
  if (offer.step > step_) begin(offer.step);
  on(offer, now);
  if (const auto* ask = std::get_if<Asked>(&input)) on(*ask, now, out);
  serve_all(now, out);
  check_invariants();
}

// What a member did in the step before is what is expected of it in the next
// one.
void ShareDesk::begin(Step step) {
  step_ = step;
  offered_ = 0;
  parts_ = 0;
  learn_steadiness();
  for (Member& m : members_) {
    learn(m);
    Member next;
    next.usual = m.usual;
    next.steady = m.steady;
    next.small = std::move(m.small);
    m = std::move(next);
  }
}

void ShareDesk::learn_steadiness() {
  double records = 0;
  double per_second = 0;
  for (const Member& m : members_) {
    if (m.computed == 0) continue;
    records += m.part;
    per_second += m.usual;
  }
  if (per_second == 0) return;
  for (Member& m : members_) {
    if (m.computed == 0 || m.part == 0) continue;
    const double could = m.usual * records / per_second / m.part;
    m.steady = std::min({1.0, could, m.steady + (1 - m.steady) * rules_.forgets});
  }
}

double ShareDesk::careful(const Member& m) const { return rules_.careful * m.steady; }

void ShareDesk::learn(Member& m) const {
  double seconds = 0;
  double records = 0;
  for (const Computed& run : m.runs) {
    seconds += run.seconds;
    records += run.records;
  }
  if (m.runs.size() < 2) return;
  m.small.resize(kSmallSizes);
  for (const Computed& run : m.runs) {
    const std::size_t size = run.records / rules_.multiple_of;
    if (size == 0 || size >= kSmallSizes) continue;
    SmallRun& small = m.small[size];
    ++small.count;
    small.relative +=
        (run.seconds / run.records / (seconds / records) - small.relative) / small.count;
  }
}

// From: not offered. To: computing its first run, or idle without one.
void ShareDesk::on(const Offered& input, MonoTime now) {
  Member& m = members_[input.member];
  if (!std::holds_alternative<NotOffered>(m.state)) return;
  ++offered_;
  parts_ += input.records;
  m.state = Idle{};
  m.part = input.records;
  m.front = std::min(input.first, input.records);
  m.back = input.records;
  m.most = input.most;
  m.began = now;
  if (m.front > 0) m.state = Computing{m.front, now};
}

// From: computing, idle, done. To: waiting for an answer.
void ShareDesk::on(const Asked& input, MonoTime now, Effects& out) {
  Member& m = members_[input.offer.member];
  if (input.number < m.asks) return;
  if (input.number == m.asks) {
    if (m.answer) out.push_back(*m.answer);
    return;
  }
  if (const Computing* run = m.computes()) {
    m.computed += run->records;
    m.runs.push_back({run->records, to_seconds(now - run->since)});
    m.usual = static_cast<double>(m.computed) / std::max(to_seconds(now - m.began), kLeastSeconds);
  }
  m.asks = input.number;
  m.state = Waiting{now};
  m.answer.reset();
}

// Those that wait are served in the order in which they asked.
void ShareDesk::serve_all(MonoTime now, Effects& out) {
  while (true) {
    std::optional<std::uint32_t> next;
    for (std::uint32_t i = 0; i < members_.size(); ++i) {
      const Waiting* const waits = members_[i].waits();
      if (waits == nullptr) continue;
      if (left() == 0 && !all_offered()) continue;
      if (!next || waits->since < members_[*next].waits()->since) next = i;
    }
    if (!next) return;
    serve(*next, now, out);
  }
}

// From: waiting. To: computing, or done.
void ShareDesk::serve(std::uint32_t index, MonoTime now, Effects& out) {
  Member& m = members_[index];
  Answer answer{
      index, step_, m.asks, choose(index, now), false, std::max(rules_.first_least, careful(m))};
  answer.last = left() == 0 && all_offered();
  if (answer.run) {
    m.state = Computing{answer.run->records(), now};
  } else {
    m.state = Done{};
  }
  m.answer = answer;
  out.push_back(answer);
}

// What the members that compute now will do until the end of the step, without this one.
ShareDesk::Others ShareDesk::others_than(std::uint32_t index, MonoTime now) const {
  Others others;
  for (std::uint32_t i = 0; i < members_.size(); ++i) {
    const Member& other = members_[i];
    if (i == index || other.computes() == nullptr) continue;
    const Pace pace = pace_of(other, now);
    if (pace.per_second == 0) {
      ++others.unknown;
      continue;
    }
    ++others.known;
    others.per_second += pace.per_second;
    others.in_hand += pace.busy_s * pace.per_second;
    const double free_s = pace.busy_s + least_run(other) / pace.per_second;
    others.relief_s = std::min(others.relief_s.value_or(free_s), free_s);
  }
  return others;
}

std::optional<Run> ShareDesk::choose(std::uint32_t index, MonoTime now) {
  if (left() == 0) return std::nullopt;
  const Member& m = members_[index];
  const Others others = others_than(index, now);
  double own = pace_of(m, now).per_second;
  if (own == 0) own = others.known > 0 ? others.per_second / others.known : 1;
  const double work = static_cast<double>(left()) + others.in_hand;
  const std::uint32_t least = least_run(m);
  if (others.relief_s) {
    const double without_s = std::max(work / others.per_second, *others.relief_s);
    if (least / own > without_s) return std::nullopt;
  }
  const double part = own / (own + others.per_second + others.unknown * own);
  const double fair = std::max(rules_.of_rest, careful(m)) * part * work;
  const std::uint32_t owner = m.left() > 0 ? index : furthest_behind(now);
  const std::uint32_t there = members_[owner].left();
  std::uint32_t records =
      std::max(least, rounded_up(static_cast<std::uint32_t>(fair), rules_.multiple_of));
  if (there <= records + least && there < 2 * records) records = there;  // leaves no small rest
  if (m.most > 0) records = std::min(records, m.most);
  return hand_out(index, owner, std::min(records, there));
}

Run ShareDesk::hand_out(std::uint32_t index, std::uint32_t owner, std::uint32_t records) {
  Member& of = members_[owner];
  Run run{owner, of.front, of.front + records};
  if (owner == index) {
    of.front += records;
  } else {
    run = {owner, of.back - records, of.back};
    of.back -= records;
  }
  return run;
}

// The member that would need longest for what it has left.
std::uint32_t ShareDesk::furthest_behind(MonoTime now) const {
  std::uint32_t behind = 0;
  double longest_s = -1;
  for (std::uint32_t i = 0; i < members_.size(); ++i) {
    const Member& m = members_[i];
    if (m.left() == 0) continue;
    const Pace pace = pace_of(m, now);
    const double seconds = pace.busy_s + m.left() / std::max(pace.per_second, kLeastSeconds);
    if (seconds > longest_s) {
      longest_s = seconds;
      behind = i;
    }
  }
  return behind;
}

// By what it computed in this step, else in the one before; a run that takes
// longer than expected makes it slower.
ShareDesk::Pace ShareDesk::pace_of(const Member& member, MonoTime now) const {
  const double elapsed_s = std::max(to_seconds(now - member.began), kLeastSeconds);
  const Computing* const run = member.computes();
  if (run == nullptr) {
    const double per_second =
        member.computed > 0 ? static_cast<double>(member.computed) / elapsed_s : member.usual;
    return {per_second, 0};
  }
  if (member.usual == 0) return {};
  const double records = run->records;
  const double spent_s = std::max(to_seconds(now - run->since), kLeastSeconds);
  const double busy_s = std::max(records / member.usual - spent_s, kOverdue * spent_s);
  return {records / (spent_s + busy_s), busy_s};
}

std::uint32_t ShareDesk::least_run(const Member& member) const {
  const double mean = static_cast<double>(parts_) / static_cast<double>(offered_);
  const auto least = static_cast<std::uint32_t>(rules_.least * mean);
  const auto dear = [&](std::uint32_t records) {
    const std::size_t at = records / rules_.multiple_of;
    return at < member.small.size() && member.small[at].count >= kEnough &&
           member.small[at].relative > rules_.dear;
  };
  std::uint32_t size = rounded_up(std::max<std::uint32_t>(least, 1), rules_.multiple_of);
  while (dear(size)) size += rules_.multiple_of;
  return size;
}

std::uint64_t ShareDesk::left() const {
  std::uint64_t left = 0;
  for (const Member& m : members_) left += m.left();
  return left;
}

void ShareDesk::check_invariants() const {
  std::size_t offered = 0;
  for (const Member& m : members_) {
    offered += std::holds_alternative<NotOffered>(m.state) ? 0 : 1;
    ANTDT_CHECK(m.front <= m.back && m.back <= m.part, "step {}: records {} to {} are left of {}",
                step_, m.front, m.back, m.part);
    ANTDT_CHECK(m.waits() == nullptr || !m.answer, "step {}: a member waits and has an answer",
                step_);
    // Only a part that was not offered yet is waited for.
    ANTDT_CHECK(m.waits() == nullptr || left() == 0, "step {}: a member waits, and {} are left",
                step_, left());
  }
  ANTDT_CHECK(offered == offered_, "step {}: {} offered, not {}", step_, offered, offered_);
}

}  // namespace antdt::worker::sharing
