// A member whose device's memory is the host's, so that what a group does there can be done by the
// collective of the host.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <stdexcept>

#include "trainer/collective/collective.h"
#include "trainer/collective/device.h"

namespace antdt::trainer {

class DeviceMember final : public Collective, public DeviceCollective {
 public:
  explicit DeviceMember(Collective& host) : host_(host) {}
  std::size_t sums = 0;
  std::size_t unfinished = 0;
  std::size_t sent = 0, received = 0;  // bytes from device to device
  // At the end of the sums, which are then only counted: so this works in a device's memory, too.
  bool fails = false;

  [[nodiscard]] std::uint32_t rank() const override { return host_.rank(); }
  [[nodiscard]] std::uint32_t size() const override { return host_.size(); }
  [[nodiscard]] Status allreduce_sum(std::span<float>) override {
    return fail(ErrorKind::kInternal, "gradients are not in the host's memory");
  }
  [[nodiscard]] Status allreduce_sum(std::span<double> values) override {
    return host_.allreduce_sum(values);
  }
  [[nodiscard]] Status allgather(std::span<const std::byte> mine,
                                 std::span<std::byte> all) override {
    return host_.allgather(mine, all);
  }
  [[nodiscard]] Status allgather_parts(std::span<const std::size_t> sizes,
                                       std::span<std::byte> all) override {
    return host_.allgather_parts(sizes, all);
  }
  [[nodiscard]] Status send_right(std::span<const std::byte> bytes) override {
    return host_.send_right(bytes);
  }
  [[nodiscard]] Status receive_left(std::span<std::byte> bytes) override {
    return host_.receive_left(bytes);
  }
  [[nodiscard]] DeviceCollective* device() override { return this; }
  void abort() override { host_.abort(); }

  [[nodiscard]] Status enqueue_sum(DeviceSpan values, DeviceStream) override {
    EXPECT_EQ(values.type, DeviceType::kFloat32);
    ++sums;
    ++unfinished;
    if (fails) return {};
    return host_.allreduce_sum(std::span(static_cast<float*>(values.data), values.count));
  }
  [[nodiscard]] Status enqueue_send_right(DeviceBytes bytes, DeviceStream) override {
    sent += bytes.size;
    ++unfinished;
    return host_.send_right(std::span(static_cast<const std::byte*>(bytes.data), bytes.size));
  }
  [[nodiscard]] Status enqueue_receive_left(DeviceBytes bytes, DeviceStream) override {
    received += bytes.size;
    ++unfinished;
    return host_.receive_left(std::span(static_cast<std::byte*>(bytes.data), bytes.size));
  }
  [[nodiscard]] Status finish() override {
    if (fails) throw std::runtime_error("CUDA error: an illegal memory access was encountered");
    unfinished = 0;
    return {};
  }

 private:
  Collective& host_;
};

}  // namespace antdt::trainer
