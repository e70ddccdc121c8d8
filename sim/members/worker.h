// A member of a collective: its machine (trainer/worker/member/member_machine.h) and client core
// (trainer/client/client_core.h) as they ship, driven in virtual time. What its process does for
// them is made up here: a tally for a model, a ring without a network, a disk that takes its time.
//
// Either an operation is under way, and its answer is scheduled or hangs on the ring, or the
// machine waits for an order. The message thread answers always, unless the whole process is
// stopped; an Abort lets go of the ring and of nothing else.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/hosts/program.h"
#include "sim/members/ring.h"
#include "sim/model.h"
#include "sim/options.h"
#include "sim/surroundings.h"
#include "sim/world.h"
#include "trainer/worker/member/generation_end.h"
#include "trainer/worker/member/member_machine.h"

namespace antdt::sim {

class Worker final : public ClientProgram {
 public:
  Worker(World& world, Surroundings& around, const JobShape& shape, Sabotage sabotage,
         Member member, std::uint32_t pid, std::string host, const HostClock& clock);

  // The generation whose training state it holds whole; 0: none.
  [[nodiscard]] Generation settled() const { return machine_.training().settled; }
  // The newest it was in, settled or not.
  [[nodiscard]] Generation generation() const { return machine_.generation(); }
  [[nodiscard]] const worker::TrainingState& training() const { return machine_.training(); }
  [[nodiscard]] Step step() const { return training().step; }
  [[nodiscard]] const Model& model() const { return model_; }
  [[nodiscard]] const wire::PhaseStart& phase() const { return machine_.phase(); }
  [[nodiscard]] std::string doing() const override;
  // It has read or written for so long, and more bytes came each moment.
  [[nodiscard]] Duration moves_bytes_for() const;

 private:
  using Answer = std::optional<worker::Input>;

  // worker.cc: the process and its training thread
  void welcomed() override;
  void turn() override;
  void abort(Generation generation) override;
  void ended(bool silently) override { leave_ring(silently); }
  void drive(Answer input);
  [[nodiscard]] Answer next_order();
  void tell(const worker::Input& input);
  [[nodiscard]] Answer perform_all();
  // The answer of the operation that is under way comes after so long.
  void answer_after(Duration delay, worker::Input input);
  void answered(std::uint64_t operation, worker::Input input);
  void arm();
  // It waits for the others: who answers names the operation.
  [[nodiscard]] std::uint64_t wait_in_ring();
  void ring_answered(std::uint64_t operation, worker::Input input);
  void break_ring();
  void leave_ring(bool silently);

  // worker_effects.cc: what the machine wants. An operation that takes no time has its answer.
  [[nodiscard]] Answer perform(worker::Send& effect);
  [[nodiscard]] Answer perform(const worker::SpendTime& effect);
  [[nodiscard]] Answer perform(const worker::LeaveCollective& effect);
  [[nodiscard]] Answer perform(const worker::StartReading& effect);
  [[nodiscard]] Answer perform(const worker::StopReading&) { return {}; }
  [[nodiscard]] Answer perform(const worker::SetRate&) { return {}; }
  [[nodiscard]] Answer perform(const worker::BeginStep& effect);
  [[nodiscard]] Answer perform(const worker::DropStep& effect);
  [[nodiscard]] Answer perform(const worker::AbandonStep& effect);
  [[nodiscard]] Answer perform(worker::Save& effect);
  [[nodiscard]] Answer perform(const worker::GiveUpSaving& effect);
  [[nodiscard]] Answer perform(const worker::Exit& effect);
  [[nodiscard]] Answer perform(const worker::GiveUp& effect);
  [[nodiscard]] Answer perform(const worker::BuildCollective& effect);
  [[nodiscard]] Answer perform(const worker::ConnectCollective& effect);
  [[nodiscard]] Answer perform(const worker::ReadState& effect);
  [[nodiscard]] Answer perform(const worker::CompareStates& effect);
  [[nodiscard]] Answer perform(const worker::PassState& effect);
  [[nodiscard]] Answer perform(const worker::HashState& effect);
  [[nodiscard]] Answer perform(const worker::ComputeMicroBatch& effect);
  [[nodiscard]] Answer perform(const worker::Reduce& effect);
  [[nodiscard]] Answer perform(const worker::GatherSlots& effect);
  [[nodiscard]] Answer perform(const worker::Apply& effect);
  [[nodiscard]] Answer perform(const worker::TakePlan& effect);
  [[nodiscard]] Answer perform(const worker::MeasureHop& effect);
  [[nodiscard]] Answer perform(const worker::AwaitRecords& effect);
  [[nodiscard]] Answer perform(const worker::EvaluateBatch& effect);

  using AsInput =
      std::function<worker::Input(const std::shared_ptr<const Ring::Contributions>& all)>;
  void exchange(Contribution mine, AsInput as_input);
  void sabotage(worker::Send& effect) const;
  static void say_late(std::vector<wire::MemberPlace>& places);
  [[nodiscard]] Answer read_on(const std::string& directory, std::uint64_t parts);
  void write_on(std::uint64_t number, std::uint64_t parts);
  void written(std::string error);
  void say_io(const char* what, const std::string& path, std::uint64_t parts);
  void say_no_io();
  [[nodiscard]] Answer take_on(const worker::ComputeMicroBatch& effect, std::size_t begin,
                               MonoTime until);
  [[nodiscard]] bool take_records(std::size_t wanted);

  const JobShape shape_;
  const Sabotage sabotage_;
  worker::MemberMachine machine_;
  worker::Effects wanted_;  // and not done yet
  bool driving_ = false;
  bool under_way_ = false;       // an operation is
  std::uint64_t operation_ = 0;  // number of the one under way, or of the last
  bool in_ring_ = false;         // and it waits for the others
  std::optional<MonoTime> armed_;

  Model model_;
  worker::GenerationEnd end_;
  Ring* ring_ = nullptr;
  std::size_t rank_ = 0;
  std::vector<Record> batch_;  // of the step that is computed
  std::shared_ptr<const Ring::Contributions> gathered_;

  // What is written beside the steps: the model as it was.
  struct Writing {
    std::uint64_t number = 0;
    worker::Save save;
    Trained state;
  };
  std::optional<Writing> writing_;
  std::uint64_t writings_ = 0;
  std::optional<wire::CheckpointWritten> saved_;  // and not told yet
  std::optional<MonoTime> moves_since_;           // of the world
  MonoTime moved_{};
};

}  // namespace antdt::sim
