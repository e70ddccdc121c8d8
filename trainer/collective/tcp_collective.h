// The collective operations over tcp connections between the members.
//
// A member is connected to the ranks at distances of 1, 2, 4, ... on both sides: no store
// and no full mesh. Large sums go around the ring, which takes the least bytes; small ones
// and what is gathered go by doubling distances, which takes the least rounds
// (trainer/collective/rounds.h).
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
  std::string hostname;   // own address to listen on; used when `interface` is empty
  std::string interface;  // network interface to listen on, for example "eth0"
  PortRange ports = {};   // to listen on one of them until the group is connected
  bool encrypt = false;   // whatever goes between members after they have met
  Duration connect_timeout = std::chrono::seconds(10);
  // Of one wait inside an operation. Others may wait for hours while one member reads a large
  // checkpoint: the job daemon knows whether it moves, and releases them if not.
  Duration operation_timeout = std::chrono::hours(24);
  // A drill: how much longer a message of so many bytes takes. From any thread.
  std::function<Duration(std::size_t bytes)> send_delay = {};
};

// Listens. kIo when the address or the interface cannot be listened on.
[[nodiscard]] Result<std::unique_ptr<CollectiveBuilder>> prepare_collective(
    std::uint32_t rank, std::uint32_t size, const CollectiveOptions& options);

}  // namespace antdt::trainer
