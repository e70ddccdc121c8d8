// How a member of a collective connects to the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "core/clock.h"
#include "core/drill/injection.h"
#include "core/os/port_range.h"

namespace antdt::trainer {

// What carries the bytes between members (trainer.collective in job.toml). All members of a group
// must have the same.
enum class Backend : std::uint8_t {
  kAuto,  // kShm where this process can share memory, else kTcp
  kTcp,   // tcp between all members
  kShm,   // shared memory between the members of a host, tcp between hosts
};

struct CollectiveOptions {
  std::string hostname;   // own address to listen on; used if `interface` is empty
  std::string interface;  // network interface to listen on, for example "eth0"
  PortRange ports = {};   // listens on one of these until the group is connected
  bool encrypt = false;   // encrypts everything that is sent over tcp after the members have met
  Duration connect_timeout = std::chrono::seconds(10);
  // Timeout of one wait inside an operation. The others may wait for hours while one member reads a
  // large checkpoint; the job daemon knows whether that makes progress, and releases them if it
  // does not.
  Duration operation_timeout = std::chrono::hours(24);
  // Whether members may be connected after the group was formed, which Collective::group() and
  // alltoall_parts() need. The member then listens on its port as long as the group exists.
  bool groups = false;
  // Fault injection: how much longer a message of `bytes` bytes to the member `rank` takes. Called
  // from any thread.
  using SendDelay = std::function<drill::LinkDelay(std::uint32_t rank, std::size_t bytes)>;
  SendDelay send_delay = {};
  Backend backend = Backend::kTcp;
  // The host of this member in place of own_host_identity(), with which members of one machine
  // stand for members of several. Empty: this machine.
  std::string host = {};
  // The domain of this member: members of different domains share no memory, as if they were on
  // different hosts. Without spaces; empty: none.
  std::string domain = {};
};

}  // namespace antdt::trainer
