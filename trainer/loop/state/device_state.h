// A training state in the memory of a device, as its engine shows it to the members of a group, who
// compare their states there and pass one on from device to device. Without this they see it in the
// host's memory (Engine::state_parts), to which it has to be copied first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/result.h"
#include "trainer/collective/device.h"

namespace antdt::trainer {

class DeviceState {
 public:
  virtual ~DeviceState() = default;

  // The state, in the parts of Engine::state_parts: first these, in the device's memory, then those
  // of rest(), in the host's. Valid until the next step begins.
  [[nodiscard]] virtual std::vector<DeviceBytes> arrays() = 0;
  [[nodiscard]] virtual std::vector<std::span<std::byte>> rest() = 0;
  // Work that reads or writes the arrays is put there.
  [[nodiscard]] virtual DeviceStream stream() = 0;

  // Numbers that stand for the bytes of the arrays, in an order: equal bytes have equal numbers on
  // every device, and bytes of which one word of 32 bits differs never have. Members compare them;
  // they are stored nowhere. An error if the device has no memory for it.
  [[nodiscard]] virtual Result<std::vector<std::uint64_t>> digests() = 0;

  // What the arrays hold is kept in the host's memory, while another state is received in their
  // place; give_back() returns it to them.
  virtual void keep() = 0;
  virtual void give_back() = 0;
  // The arrays and the rest have another member's bytes. Like Engine::state_replaced().
  virtual void replaced() = 0;
};

}  // namespace antdt::trainer
