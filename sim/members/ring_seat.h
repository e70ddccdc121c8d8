// A member's seat in the collective of a generation: what its machine wants of the others. An Abort
// lets go of the ring and of nothing else.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "sim/members/ring.h"
#include "sim/model.h"
#include "trainer/worker/member/effects.h"
#include "trainer/worker/member/inputs.h"

namespace antdt::sim {

class Worker;

// The model of a member, and the step that it is in.
struct MemberModel {
  Model model;
  std::vector<Record> batch;  // of the step that is computed
  std::shared_ptr<const Ring::Contributions> gathered;
};

class RingSeat {
 public:
  using Answer = std::optional<worker::Input>;
  RingSeat(Worker& worker, MemberModel& state) : worker_(worker), state_(state) {}

  [[nodiscard]] Answer perform(const worker::LeaveCollective& effect);
  [[nodiscard]] Answer perform(const worker::AbandonStep& effect);
  [[nodiscard]] Answer perform(const worker::BuildCollective& effect);
  [[nodiscard]] Answer perform(const worker::ConnectCollective& effect);
  [[nodiscard]] Answer perform(const worker::CompareStates& effect);
  [[nodiscard]] Answer perform(const worker::PassState& effect);
  [[nodiscard]] Answer perform(const worker::GatherSlots& effect);
  // The generation that was begun last is over.
  void abort();
  void leave(bool silently);
  // The operation that waits for the others has its answer.
  void stop_waiting() { waits_ = false; }

 private:
  using AsInput =
      std::function<worker::Input(const std::shared_ptr<const Ring::Contributions>& all)>;
  // The answer of an exchange, or that it broke.
  void exchange(Contribution mine, AsInput as_input);
  // It waits for the others: who answers names the operation.
  [[nodiscard]] std::uint64_t wait();
  void answered(std::uint64_t operation, worker::Input input);
  void break_up();

  Worker& worker_;
  MemberModel& state_;
  Ring* ring_ = nullptr;
  std::size_t rank_ = 0;
  bool waits_ = false;  // for the others, in the operation that is under way
};

}  // namespace antdt::sim
