#include "sim/members/ring.h"

#include <algorithm>

#include "trainer/sync/groups.h"

namespace antdt::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kConnectTimeout = seconds(5);

}  // namespace

void Ring::connect(std::size_t rank, Done done) {
  Participant& me = members_[rank];
  me.connected = true;
  me.done = std::move(done);
  me.group.clear();
  const std::uint64_t wait = ++me.waits;
  const bool all = std::ranges::all_of(members_, &Participant::connected);
  if (all && all_reach({})) {
    for (std::size_t r = 0; r < members_.size(); ++r) {
      Participant& m = members_[r];
      if (m.left || !m.done) continue;
      world_.after(life_, world_.rng().time(microseconds(100), milliseconds(5)),
                   [this, r, w = m.waits] {
                     Participant& p = members_[r];
                     if (p.left || p.waits != w || p.cut == w || !p.done) return;
                     const Done connected = std::exchange(p.done, nullptr);
                     connected(std::make_shared<const Contributions>());
                   });
    }
  }
  world_.after(life_, kConnectTimeout, [this, rank, wait] {
    if (members_[rank].waits == wait) fail(rank);
  });
  check_neighbours(rank);
}

void Ring::exchange(std::size_t rank, Contribution mine, Done done) {
  Participant& me = members_[rank];
  if (me.left) return;
  const Key key{{}, std::to_string(me.posted++)};
  post(key, rank, rank, members_.size(), std::move(mine), std::move(done));
}

void Ring::exchange_in(const Group& group, const std::string& what, std::size_t rank,
                       Contribution mine, Done done) {
  if (members_[rank].left) return;
  const auto at = std::ranges::find(group, rank);
  post({group, what}, rank, static_cast<std::size_t>(at - group.begin()), group.size(),
       std::move(mine), std::move(done));
}

void Ring::post(const Key& key, std::size_t rank, std::size_t index, std::size_t size,
                Contribution mine, Done done) {
  Participant& me = members_[rank];
  Exchange& exchange = exchanges_[key];
  if (!exchange.contributions) exchange.contributions = std::make_shared<Contributions>(size);
  exchange.contributions->at(index) = std::move(mine);
  me.done = std::move(done);
  me.group = key.first;
  ++me.waits;
  if (++exchange.posted == size) {
    for (const std::uint32_t r : ranks_of(key.first)) complete_later(r, key);
  }
  check_neighbours(rank);
}

void Ring::complete_later(std::size_t rank, const Key& key) {
  const Participant& p = members_[rank];
  if (p.left) return;
  const bool late = world_.rng().chance(0.05);
  const Duration delay =
      world_.rng().time(microseconds(50), late ? milliseconds(300) : milliseconds(2));
  world_.after(life_, delay, [this, rank, key, wait = p.waits] { complete(rank, key, wait); });
}

void Ring::complete(std::size_t rank, const Key& key, std::uint64_t wait) {
  Participant& p = members_[rank];
  if (p.left || p.waits != wait || p.cut == wait || !p.done) return;
  if (!all_reach(key.first) || (withheld_.exchange && withheld_.exchange(rank))) {
    world_.after(life_, milliseconds(100), [this, rank, key, wait] { complete(rank, key, wait); });
    return;
  }
  const Done done = std::exchange(p.done, nullptr);
  ++p.waits;
  const auto contributions = exchanges_.at(key).contributions;
  if (++exchanges_.at(key).completed == contributions->size()) exchanges_.erase(key);
  done(contributions);
}

Ring::Group Ring::ranks_of(const Group& group) const {
  if (!group.empty()) return group;
  return sync::one_group(static_cast<std::uint32_t>(members_.size())).front();
}

bool Ring::all_reach(const Group& group) const {
  const Group ranks = ranks_of(group);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (!reaches_(ranks[i], ranks[(i + 1) % ranks.size()])) return false;
  }
  return true;
}

std::vector<std::size_t> Ring::neighbours(std::size_t rank) const {
  const Group& group = members_[rank].group;
  if (group.empty()) return {before(rank), behind(rank)};
  const auto at = static_cast<std::size_t>(std::ranges::find(group, rank) - group.begin());
  return {group[(at + group.size() - 1) % group.size()], group[(at + 1) % group.size()]};
}

void Ring::offer(std::size_t rank, Handed state) {
  members_[rank].offered = std::make_shared<const Handed>(std::move(state));
  pass_on(behind(rank));
}

void Ring::receive_left(std::size_t rank, Received done) {
  Participant& me = members_[rank];
  me.receives = std::move(done);
  me.group.clear();
  ++me.waits;
  pass_on(rank);
  check_neighbours(rank);
}

void Ring::pass_on(std::size_t rank) {
  const Participant& p = members_[rank];
  if (!p.receives || p.left || !members_[before(rank)].offered) return;
  world_.after(life_, world_.rng().time(milliseconds(1), milliseconds(200)),
               [this, rank, wait = p.waits] { arrive(rank, wait); });
}

void Ring::arrive(std::size_t rank, std::uint64_t wait) {
  Participant& to = members_[rank];
  const Participant& from = members_[before(rank)];
  if (to.left || to.waits != wait || to.cut == wait || !to.receives || from.left) return;
  if (withheld_.state && withheld_.state(rank, before(rank))) {
    return world_.after(life_, milliseconds(1), [this, rank, wait] { arrive(rank, wait); });
  }
  ++to.waits;
  const auto received = std::exchange(to.receives, nullptr);
  received(from.offered);
}

ShareTable& Ring::table(std::size_t rank, const worker::sharing::ShareRules& rules) {
  const auto group = worker::sharing::group_of(static_cast<std::uint32_t>(rank),
                                               static_cast<std::uint32_t>(size()), rules);
  const auto passes = [this, begin = group.begin](std::uint32_t member) {
    return !members_[begin].left && runs_(begin) && reaches_(begin, begin + member);
  };
  return tables_.try_emplace(group.begin, world_, group, rules, passes).first->second;
}

void Ring::leave(std::size_t rank, bool silently) {
  Participant& me = members_[rank];
  if (me.left) return;
  me.left = true;
  me.silent = silently;
  me.done = nullptr;
  me.receives = nullptr;
  // A state that this member was passing on arrives, or it does not.
  for (std::size_t r = 0; r < members_.size(); ++r) {
    Participant& p = members_[r];
    if (!p.left && p.done && world_.rng().chance(0.5)) p.cut = p.waits;
  }
  check_neighbours(before(rank));
  check_neighbours(behind(rank));
  for (std::size_t r = 0; r < members_.size(); ++r) {
    const bool checked = r == before(rank) || r == behind(rank);
    if (!checked && !members_[r].group.empty()) check_neighbours(r);
  }
}

void Ring::check_neighbours(std::size_t rank) {
  const Participant& me = members_[rank];
  if (me.left || (!me.done && !me.receives)) return;
  for (const std::size_t r : neighbours(rank)) {
    const Participant& other = members_[r];
    if (r == rank || !other.left || other.silent) continue;
    return fail_later(rank, milliseconds(300));
  }
}

void Ring::fail_later(std::size_t rank, Duration within) {
  world_.after(life_, world_.rng().time(microseconds(100), within), [this, rank] { fail(rank); });
}

void Ring::fail(std::size_t rank) {
  Participant& p = members_[rank];
  if (p.left) return;
  ++p.waits;
  const Done done = std::exchange(p.done, nullptr);
  const auto receives = std::exchange(p.receives, nullptr);
  if (done) done(nullptr);
  if (receives) receives(nullptr);
}

}  // namespace antdt::sim
