// A collective that has lost a member: every operation fails.
#pragma once

#include "trainer/collective/collective.h"

namespace antdt::trainer {

class BrokenCollective final : public Collective {
 public:
  [[nodiscard]] std::uint32_t rank() const override { return 0; }
  [[nodiscard]] std::uint32_t size() const override { return 2; }
  [[nodiscard]] Status allreduce_sum(std::span<float>) override { return broken(); }
  [[nodiscard]] Status allreduce_sum(std::span<double>) override { return broken(); }
  [[nodiscard]] Status allgather(std::span<const std::byte>, std::span<std::byte>) override {
    return broken();
  }
  [[nodiscard]] Status allgather_parts(std::span<const std::size_t>,
                                       std::span<std::byte>) override {
    return broken();
  }
  [[nodiscard]] Status send_right(std::span<const std::byte>) override { return broken(); }
  [[nodiscard]] Status receive_left(std::span<std::byte>) override { return broken(); }
  void abort() override {}

 private:
  [[nodiscard]] static Status broken() { return fail(ErrorKind::kAborted, "aborted"); }
};

}  // namespace antdt::trainer
