// How far a domain of Gaia may be ahead of the others, and whom it awaits (the paper's mirror
// clock). Pure.
//
// A domain's clock counts the messages that it has sent, one in each of its steps. With
// `most_ahead` = s, a domain begins its step c + 1 when it has applied the message c - s of every
// other domain that is not lost. So the replicas that compute at the same time are at most s + 1
// steps of one domain apart. s = 0: every step begins with the messages of all others' step before.
//
// That is all that a step awaits. Only a cut (a checkpoint, an evaluation of the merged model, the
// end of a phase) is a barrier: it awaits the whole messages with which all domains end the same
// step.
#pragma once

#include <cstdint>
#include <vector>

#include "core/result.h"

namespace antdt::sync::gaia {

class MirrorClock {
 public:
  // All domains begin at clock 0.
  MirrorClock(std::uint32_t domains, std::uint32_t own, std::uint64_t most_ahead);

  // The own step is done, and its message is sent.
  void advance() { ++clocks_[own_]; }
  // The next message of another domain: whether it is to be applied now. False: it was applied
  // before. kCorrupt if it is of no other domain, or if one before it is missing: the link keeps
  // the order, so the sender is not what it claims to be.
  [[nodiscard]] Result<bool> heard(std::uint32_t domain, std::uint64_t clock);
  // Is no longer awaited.
  void lose(std::uint32_t domain);

  // The domains whose messages must be applied before the next step begins; ascending. Empty: it
  // may begin.
  [[nodiscard]] std::vector<std::uint32_t> awaited() const;
  // The domains that must yet send message `clock` or one before it, this one included.
  [[nodiscard]] std::vector<std::uint32_t> awaited_for_cut(std::uint64_t clock) const;

  [[nodiscard]] std::uint64_t clock(std::uint32_t domain) const { return clocks_[domain]; }
  [[nodiscard]] std::uint64_t own_clock() const { return clocks_[own_]; }

 private:
  [[nodiscard]] std::vector<std::uint32_t> behind(std::uint64_t clock) const;

  const std::uint32_t own_;
  const std::uint64_t most_ahead_;
  std::vector<std::uint64_t> clocks_;  // by domain: its last message that was applied here
  std::vector<bool> lost_;
};

}  // namespace antdt::sync::gaia
