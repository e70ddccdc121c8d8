// Processes that may run for a part of the time only: a drill of throttling. Each is
// stopped and continued in turn, a tenth of a second a round. A value: who is to be
// stopped or continued is answered, and done by the agent.
//
//   running --its part of the round is over--> stopped --the round is over--> running
//
// What it held back is what a quota of CPU time would have: it counts as throttled.
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
    bool stop = false;  // else it goes on
    bool operator==(const Order&) const = default;
  };

  // From now on it may run this part of the time; 1: all of it.
  void set(const ProcessKey& key, double share, MonoTime now);
  // What is due, in order.
  [[nodiscard]] std::vector<Order> due(MonoTime now);
  [[nodiscard]] std::optional<MonoTime> next_due() const;
  // How long it was stopped in all.
  [[nodiscard]] Duration held_back(const ProcessKey& key, MonoTime now) const;
  // Who is stopped now: an agent that ends leaves nobody so.
  [[nodiscard]] std::vector<ProcessKey> stopped() const;
  void forget(const ProcessKey& key) { all_.erase(key); }

 private:
  struct Throttled {
    double share = 1;
    MonoTime round{};  // began
    std::optional<MonoTime> stopped_at{};
    Duration held_back{};
  };
  [[nodiscard]] static std::optional<MonoTime> due_at(const Throttled& t);
  std::map<ProcessKey, Throttled> all_;
};

}  // namespace antdt::antdtd
