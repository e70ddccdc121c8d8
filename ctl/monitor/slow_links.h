// Whose link makes all others wait. Pure.
//
// A step waits for the slowest link of its collectives, and everybody waits alike, so nobody's
// waiting says which link it is. But now and then all members measure at the same
// moment how long a message takes to the next rank and back (trainer/worker/member/hop_timer.h).
// A hop is slow whose least time is over twice what the others' take in the mean, and more
// by 0.2 ms: the least, because a process that had no CPU for a moment makes any link look
// slow.
//
// A member whose two hops are both slow has a slow link itself. Where a single hop is slow,
// nobody can tell at which of its ends the reason is: both members are named, each with the
// other. A hop counts as single only if the mean times of the hops next to it are short too,
// because members report one after another, and of the two hops of a slow link one may look
// slow before the other does. In a group of two, both hops are the same link, and there is
// nothing to compare it with.
//
// Workers of parameter servers have a link each, and measure what their quickest request
// takes: there a slow hop is its worker's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace antdt::ctl {

// From one rank to the next and back.
struct Hop {
  std::uint32_t measured = 0;  // how often
  double mean_s = 0;
  double least_s = 0;
};

struct SlowLink {
  std::size_t rank = 0;             // of whom it is
  std::optional<std::size_t> with;  // the rank at the other end; nothing: both its links
  double hop_s = 0;                 // what its hops take
  double usual_s = 0;               // and the others'
  double slowest_s = 0;             // and those of the slowest link that is waited for
};
// `hops` by rank; sorted by rank.
[[nodiscard]] std::vector<SlowLink> find_slow_links(const std::vector<Hop>& hops);
// `hops` of workers to their servers; `rank` is the place in it.
[[nodiscard]] std::vector<SlowLink> find_slow_spokes(const std::vector<Hop>& hops);

// How many times longer a step takes because of this link. `step_s` is the step's time, and
// `collective_s` the part of it that the collective itself takes, without the wait for members
// to arrive. All wait for the slowest link; a link that is less slow is charged with its
// share of that wait only, so that beside a very slow link no other one is named for next to
// nothing.
[[nodiscard]] double slowdown_by(const SlowLink& link, double step_s, double collective_s);

}  // namespace antdt::ctl
