// A ring all-reduce over Gloo's tcp transport.
//
// A member connects to its two neighbours only: no store and no full mesh.
// Only Gloo's pairs and unbound buffers are used, not its algorithms: those
// cannot be released while they wait for a member that has stopped.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "core/clock.h"
#include "core/port_range.h"
#include "core/result.h"
#include "trainer/collective/collective.h"

namespace antdt::trainer {

struct RingOptions {
  std::string hostname;   // own address to listen on; used when `interface` is empty
  std::string interface;  // network interface to listen on, for example "eth0"
  PortRange ports = {};   // to listen on: two of them, until the neighbours are connected
  Duration connect_timeout = std::chrono::seconds(10);
  Duration operation_timeout = std::chrono::minutes(30);  // of one wait inside an operation
  // A drill: how much longer a message of so many bytes takes. From any thread.
  std::function<Duration(std::size_t bytes)> send_delay = {};
};

// Listens. kIo when the address or the interface cannot be listened on.
[[nodiscard]] Result<std::unique_ptr<CollectiveBuilder>> prepare_ring(std::uint32_t rank,
                                                                      std::uint32_t size,
                                                                      const RingOptions& options);

}  // namespace antdt::trainer
