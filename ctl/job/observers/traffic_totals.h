// What the workers of a job exchanged in collectives, by pair of hosts and by pair of domains, over
// all of their attempts. An observer. Pure; not durable: after a restart of the job daemon it knows
// all that processes which live then exchanged since they started.
//
// Workers tell sums since their start. Of each worker the last ones are kept, and what was added to
// them is added to the pair of hosts, so nothing counts twice, whatever is repeated or lost on the
// way. The memory is bounded by the pairs of hosts and by what each worker tells, which is at most
// 64 pairs (trainer/loop/accounts/traffic_account.h).
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "core/ids.h"
#include "core/report/traffic.h"
#include "core/wire/worker_messages.h"

namespace antdt::ctl {

class TrafficTotals {
 public:
  static constexpr std::size_t kMostPairs = 256;  // of hosts, in a report

  // What this attempt exchanged since it started. Without pairs: it says nothing.
  void told(Member member, const wire::TrafficSums& so_far);

  // Empty if nothing was exchanged. Of the pairs of hosts those with the most bytes.
  [[nodiscard]] std::optional<report::Traffic> report() const;

 private:
  struct Sum {
    std::uint64_t sent_bytes = 0, received_bytes = 0, waited_us = 0;
  };
  struct Told {
    Attempt attempt;
    wire::TrafficSums sums;
  };
  // Host and domain from which, host and domain to which.
  using Pair = std::tuple<std::string, std::string, std::string, std::string>;

  [[nodiscard]] static report::TrafficBetween line_of(const Pair& pair, const Sum& sum);
  void add(const wire::HostTraffic& now, const wire::HostTraffic& before);

  std::map<WorkerId, Told> told_;
  std::map<Pair, Sum> hosts_;
  std::map<Pair, Sum> domains_;  // without hosts
  report::Traffic kinds_;        // without pairs
};

}  // namespace antdt::ctl
