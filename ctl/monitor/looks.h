// What was seen of one worker from outside its batches, lately: by its host, and of
// its hop in the ring. A value.
#pragma once

#include <deque>
#include <optional>

#include "core/clock.h"
#include "core/wire/agent_messages.h"
#include "ctl/monitor/cause.h"
#include "ctl/monitor/slow_links.h"

namespace antdt::ctl {

class Looks {
 public:
  // Remembers as much as a window of `length` needs.
  explicit Looks(Duration length);

  void add(const wire::Metrics& metrics, MonoTime now);
  // The newest looks of the host, of half a window together, one at least. Those that
  // began before `since` only if there is no other.
  [[nodiscard]] HostSigns signs(MonoTime since, MonoTime now) const;
  // Whether the host looked while the worker was as it is since `since`: the newest look is mostly
  // of the time after that. Also true if no look is to be expected, as of a host that cannot look.
  [[nodiscard]] bool seen_since(MonoTime since, MonoTime now) const;
  // Over a window, and more of it until two measurements are together.
  [[nodiscard]] Hop hop(MonoTime now) const;
  // The ring is another one.
  void forget_hops() { hops_.clear(); }

 private:
  struct Look {
    MonoTime when{};
    wire::HostProbe probe;
  };
  struct Hops {
    MonoTime when{};
    std::uint32_t measured = 0;
    std::uint64_t us = 0;
    std::uint64_t least_us = 0;
  };
  Duration length_;
  std::optional<MonoTime> first_;   // that anything was heard
  std::optional<MonoTime> looked_;  // the newest look
  std::deque<Look> looks_;
  std::deque<Hops> hops_;
};

}  // namespace antdt::ctl
