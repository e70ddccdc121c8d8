// Processes that may run for only a part of the time, for the fault injection `throttle`. Each is
// stopped and continued in turn, in rounds of a tenth of a second. A value: it returns which
// process is to be stopped or continued, and the agent does it.
//
//   running --its part of the round is over--> stopped --the round is over--> running
//
// The time during which a process is stopped is like that of a CPU quota: it counts as throttled.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "antdtd/shim/process_key.h"
#include "core/clock.h"

namespace antdt::antdtd {

class Throttles {
 public:
  static constexpr Duration kRound = std::chrono::milliseconds(100);
  struct Order {
    ProcessKey key;
    bool stop = false;  // false: it is continued
    bool operator==(const Order&) const = default;
  };

  // From now on the process may run for this part of the time; 1: all of it.
  void set(const ProcessKey& key, double share, MonoTime now);
  // The orders that are due, in order.
  [[nodiscard]] std::vector<Order> due(MonoTime now);
  [[nodiscard]] std::optional<MonoTime> next_due() const;
  // How long the process has been stopped in all.
  [[nodiscard]] Duration held_back(const ProcessKey& key, MonoTime now) const;
  // The processes that are stopped now. An agent that ends must continue them.
  [[nodiscard]] std::vector<ProcessKey> stopped() const;
  void forget(const ProcessKey& key) { all_.erase(key); }

 private:
  struct Throttled {
    double share = 1;
    MonoTime round{};  // when it began
    std::optional<MonoTime> stopped_at{};
    Duration held_back{};
  };
  [[nodiscard]] static std::optional<MonoTime> due_at(const Throttled& t);
  std::map<ProcessKey, Throttled> all_;
};

}  // namespace antdt::antdtd
