// A worker of either kind as a process: its machine (trainer/worker) and client core
// (trainer/client/client_core.h) as they ship, driven in virtual time.
//
// Either an operation is under way, and its answer is scheduled or hangs on others, or the
// machine waits for an order. The message thread answers always, unless the whole process is
// stopped.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "sim/hosts/program.h"
#include "sim/job_shape.h"
#include "sim/options.h"
#include "trainer/worker/member/generation_end.h"
#include "trainer/worker/member/inputs.h"

namespace antdt::sim {

template <class Machine, class Input, class Effects>
class MachineProgram : public ClientProgram {
 public:
  using Answer = std::optional<Input>;
  using Effect = typename Effects::value_type;

  MachineProgram(World& world, const Surroundings& around, const JobShape& shape, Sabotage sabotage,
                 const Place& place)
      : ClientProgram(world, around, place),
        shape_(shape),
        sabotage_(sabotage),
        machine_(shape.worker_config(place.member, place.pid)) {}

  // The newest it was in, settled or not.
  [[nodiscard]] Generation generation() const { return machine_.generation(); }
  [[nodiscard]] const wire::PhaseStart& phase() const { return machine_.phase(); }

  // ---- for the parts of the process
  using ClientProgram::later;
  using ClientProgram::wants_to_leave;
  [[nodiscard]] World& world() { return world_; }
  [[nodiscard]] const Surroundings& around() const { return around_; }
  [[nodiscard]] const JobShape& shape() const { return shape_; }
  [[nodiscard]] Sabotage sabotage() const { return sabotage_; }
  // Which generations are over.
  [[nodiscard]] worker::GenerationEnd& end_of_generation() { return end_; }
  // An operation is under way from now on: answers its number.
  std::uint64_t begin_operation() {
    operation_ = ++operations_;
    operation_changed();
    return operations_;
  }
  // The number of the one under way, or of the last.
  [[nodiscard]] std::uint64_t operation() const { return operations_; }
  [[nodiscard]] bool is_under_way(std::uint64_t operation) const { return operation_ == operation; }
  void answered(std::uint64_t operation, Input input) {
    if (!is_under_way(operation)) return;
    operation_.reset();
    operation_changed();
    drive(std::move(input));
  }
  // It is answered after so long, with what `answer` has then; nothing: by another operation.
  void answer_after(Duration delay, std::function<Answer()> answer) {
    later(delay, [this, operation = begin_operation(), answer = std::move(answer)] {
      if (!is_under_way(operation)) return;
      if (auto input = answer()) answered(operation, std::move(*input));
    });
  }

 protected:
  void welcomed() override { drive(worker::Started{}); }
  // As the real thread takes orders: when nothing is under way.
  void turn() override {
    if (!alive() || driving_ || operation_ || !core_.welcome()) return;
    drive({});
  }
  // What the machine is told before anything else.
  virtual void tell_news() = 0;
  [[nodiscard]] virtual Answer next_order() = 0;
  // An operation that takes no time has its answer.
  [[nodiscard]] virtual Answer perform_one(Effect& effect) = 0;
  // Another one is under way, or none.
  virtual void operation_changed() {}
  virtual void rests() {}

  // Tells the machine what came of the operation, and does what it wants, until an operation is
  // under way that takes time, or no order is left.
  void drive(Answer input) {
    driving_ = true;
    while (alive()) {
      tell_news();
      if (!machine_.ended() && !input && machine_.awaits_order()) input = next_order();
      if (input) tell(*std::exchange(input, std::nullopt));
      input = perform_all();
      if (!input && (!machine_.awaits_order() || !core_.orders().has_next())) break;
    }
    driving_ = false;
    if (alive()) rests();
  }
  void tell(const Input& input) {
    if (!machine_.ended()) machine_.step(input, clock_.now(), wanted_);
  }

  const JobShape shape_;
  const Sabotage sabotage_;
  Machine machine_;
  worker::GenerationEnd end_;

 private:
  [[nodiscard]] Answer perform_all() {
    Answer answer;
    Effects effects;
    effects.swap(wanted_);
    for (Effect& effect : effects) {
      if (!alive()) break;
      if (auto came = perform_one(effect)) answer = std::move(came);
    }
    effects.clear();
    wanted_.swap(effects);
    return answer;
  }

  Effects wanted_;  // and not done yet
  bool driving_ = false;
  std::optional<std::uint64_t> operation_;  // that is under way
  std::uint64_t operations_ = 0;            // that there were
};

}  // namespace antdt::sim
