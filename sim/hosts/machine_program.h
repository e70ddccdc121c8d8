// The process of a worker of either kind. Its machine (trainer/worker) and client core
// (trainer/client/client_core.h) are the code that ships, driven in virtual time.
//
// Either an operation is under way, whose answer is scheduled or depends on other processes, or the
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

  // The newest generation it was in, settled or not.
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
  // Begins an operation and returns its number.
  std::uint64_t begin_operation() {
    operation_ = ++operations_;
    operation_changed();
    return operations_;
  }
  // The number of the operation that is under way, or of the last one.
  [[nodiscard]] std::uint64_t operation() const { return operations_; }
  [[nodiscard]] bool is_under_way(std::uint64_t operation) const { return operation_ == operation; }
  void answered(std::uint64_t operation, Input input) {
    if (!is_under_way(operation)) return;
    operation_.reset();
    operation_changed();
    drive(std::move(input));
  }
  // Ends an operation that has no answer.
  void finished(std::uint64_t operation) {
    if (!is_under_way(operation)) return;
    operation_.reset();
    operation_changed();
    drive({});
  }
  // Answers the operation after `delay` with what `answer` returns then; if it returns nothing,
  // another operation answers.
  void answer_after(Duration delay, std::function<Answer()> answer) {
    later(delay, [this, operation = begin_operation(), answer = std::move(answer)] {
      if (!is_under_way(operation)) return;
      if (auto input = answer()) answered(operation, std::move(*input));
    });
  }

 protected:
  void welcomed() override { drive(worker::Started{}); }
  // The real thread also takes orders only when no operation is under way.
  void turn() override {
    if (!alive() || driving_ || operation_ || !core_.welcome()) return;
    drive({});
  }
  // Tells the machine the news that come before anything else.
  virtual void tell_news() = 0;
  [[nodiscard]] virtual Answer next_order() = 0;
  // Carries out an operation; one that takes no time is answered at once.
  [[nodiscard]] virtual Answer perform_one(Effect& effect) = 0;
  // Another operation is under way, or none.
  virtual void operation_changed() {}
  virtual void rests() {}

  // Gives the machine the operation's answer and carries out its effects, until an operation that
  // takes time is under way, or no order is left.
  void drive(Answer input) {
    driving_ = true;
    while (alive()) {
      tell_news();
      if (!machine_.ended() && !input && machine_.awaits_order()) input = next_order();
      if (input) tell(*std::exchange(input, std::nullopt));
      input = perform_all();
      if (input) continue;
      if (operation_ || !machine_.awaits_order() || !core_.orders().has_next()) break;
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

  Effects wanted_;  // effects that are not carried out yet
  bool driving_ = false;
  std::optional<std::uint64_t> operation_;  // the operation that is under way
  std::uint64_t operations_ = 0;            // how many operations there were
};

}  // namespace antdt::sim
