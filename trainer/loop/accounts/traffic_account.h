// What this process exchanged with the members on each host, over all generations that it was a
// member of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/wire/worker_messages.h"
#include "trainer/collective/link_ledger.h"

namespace antdt::trainer {

// Used by one thread.
class TrafficAccount {
 public:
  // The first hosts that this process met have a line each; all further ones of a domain share one,
  // without a host's name. So what a worker reports is bounded, whatever the size of the job.
  static constexpr std::size_t kMostHosts = 64;

  struct Place {
    std::string host;
    std::string domain;
  };
  // A generation begins: what `ledger` counts is added from now on. `members` are the places of its
  // members, by rank. Null `ledger`: nothing is counted.
  void begin(std::shared_ptr<const LinkLedger> ledger, std::uint32_t rank,
             const std::vector<Place>& members);
  // The generation is over.
  void end();
  // So far; lines of hosts with which nothing was exchanged are left out.
  [[nodiscard]] wire::TrafficSums sums() const;

 private:
  [[nodiscard]] std::size_t line_of(const Place& from, const Place& to);
  [[nodiscard]] wire::TrafficSums all_lines() const;

  wire::TrafficSums earlier_;  // of the generations before, with a line for each place met
  std::shared_ptr<const LinkLedger> ledger_;
  std::vector<std::size_t> lines_;  // in earlier_.hosts, by the peer's rank
};

}  // namespace antdt::trainer
