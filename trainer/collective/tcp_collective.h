// The collective operations over tcp connections between the members.
//
// A member is connected to the ranks at distances of 1, 2, 4, ... on both sides; there is no store
// and no full mesh. Large sums go around the ring, which sends the fewest bytes. Small sums, and
// gathering, use doubling distances, which takes the fewest rounds (trainer/collective/rounds.h).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "core/clock.h"
#include "core/os/port_range.h"
#include "core/result.h"
#include "trainer/collective/collective.h"

namespace antdt::trainer {

struct CollectiveOptions {
  std::string hostname;   // own address to listen on; used if `interface` is empty
  std::string interface;  // network interface to listen on, for example "eth0"
  PortRange ports = {};   // listens on one of these until the group is connected
  bool encrypt = false;   // encrypts everything between members after they have met
  Duration connect_timeout = std::chrono::seconds(10);
  // Timeout of one wait inside an operation. The others may wait for hours while one member reads a
  // large checkpoint; the job daemon knows whether that makes progress, and releases them if it
  // does not.
  Duration operation_timeout = std::chrono::hours(24);
  // Fault injection: how much longer a message of `bytes` bytes takes. Called from any thread.
  std::function<Duration(std::size_t bytes)> send_delay = {};
};

// Begins to listen. kIo if that fails for the address or the interface.
[[nodiscard]] Result<std::unique_ptr<CollectiveBuilder>> prepare_collective(
    std::uint32_t rank, std::uint32_t size, const CollectiveOptions& options);

}  // namespace antdt::trainer
