// A member of a collective: its machine (trainer/worker/member/member_machine.h) in virtual time.
// What its process does for the machine is simulated here: a tally for a model, a ring without a
// network (ring_seat.h), a disk that takes its time (member_files.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/hosts/machine_program.h"
#include "sim/members/member_files.h"
#include "sim/members/ring_seat.h"
#include "sim/members/served_rows.h"
#include "sim/model.h"
#include "sim/world.h"
#include "trainer/worker/member/member_machine.h"

namespace antdt::sim {

class Worker final : public MachineProgram<worker::MemberMachine, worker::Input, worker::Effects> {
 public:
  Worker(World& world, const Surroundings& around, const JobShape& shape, Sabotage sabotage,
         const Place& place);

  // The generation whose complete training state it holds; 0: none.
  [[nodiscard]] Generation settled() const { return machine_.training().settled; }
  [[nodiscard]] const worker::TrainingState& training() const { return machine_.training(); }
  [[nodiscard]] Step step() const { return training().step; }
  [[nodiscard]] const Model& model() const { return state_.model; }
  [[nodiscard]] std::string doing() const override;
  // For how long it has read or written without a pause.
  [[nodiscard]] Duration moves_bytes_for() const;

  using MachineProgram::answered;
  void answered(PsAnswer answer) override;

  // ---- for its rows on servers
  [[nodiscard]] const HostClock& clock() const { return clock_; }
  [[nodiscard]] std::span<const Record> batch() const { return state_.batch; }
  [[nodiscard]] std::uint32_t rank() const { return seat_.rank(); }
  void send_packet(const std::string& address, PsPacket packet);

  // ---- for its files
  [[nodiscard]] ServedRows& rows() { return rows_; }
  void saved(const wire::CheckpointWritten& written, worker::Save::Kind kind);
  void say_io(client::Io io);

 private:
  void abort(Generation generation) override;
  void ended(bool silently) override;
  void operation_changed() override;
  void tell_news() override;
  // Whether its program has ended the training.
  [[nodiscard]] bool program_ends() const;
  [[nodiscard]] Answer next_order() override;
  [[nodiscard]] Answer perform_one(worker::Effect& effect) override;
  void rests() override;

  [[nodiscard]] Answer perform(worker::Send& effect);
  [[nodiscard]] Answer perform(const worker::SpendTime& effect);
  [[nodiscard]] Answer perform(const worker::StartReading& effect);
  [[nodiscard]] Answer perform(const worker::StopReading&) { return {}; }
  [[nodiscard]] Answer perform(const worker::SetRate&) { return {}; }
  [[nodiscard]] Answer perform(const worker::BeginStep& effect);
  [[nodiscard]] Answer perform(const worker::DropStep& effect);
  [[nodiscard]] Answer perform(const worker::Exit& effect);
  [[nodiscard]] Answer perform(const worker::GiveUp& effect);
  [[nodiscard]] Answer perform(const worker::HashState& effect);
  [[nodiscard]] Answer perform(const worker::ComputeMicroBatch& effect);
  [[nodiscard]] Answer perform(const worker::TakePart& effect);
  [[nodiscard]] Answer perform(const worker::ComputeRun& effect);
  [[nodiscard]] Answer perform(const worker::Reduce& effect);
  [[nodiscard]] Answer perform(const worker::AwaitSkipsTold& effect);
  [[nodiscard]] Answer perform(const worker::Apply& effect);
  [[nodiscard]] Answer perform(const worker::TakePlan& effect);
  [[nodiscard]] Answer perform(const worker::MeasureHop& effect);
  [[nodiscard]] Answer perform(const worker::AwaitRecords& effect);
  [[nodiscard]] Answer perform(const worker::EvaluateBatch& effect);

  void break_rule(worker::Effect& effect);  // sabotage
  void apply_own();
  void apply_domain();
  [[nodiscard]] std::uint64_t number_of(std::uint32_t trainer, std::uint64_t times) const;
  [[nodiscard]] Answer take_on(const worker::ComputeMicroBatch& effect, std::size_t begin,
                               MonoTime until);
  [[nodiscard]] Answer compute_on(const worker::ComputeMicroBatch& effect,
                                  worker::MicroBatchComputed done);
  [[nodiscard]] Answer take_part(const worker::TakePart& effect, MonoTime until);
  // Until there are so many.
  [[nodiscard]] bool take_records(std::size_t wanted, std::vector<Record>& into);
  [[nodiscard]] Answer await_skips_told();
  [[nodiscard]] std::vector<worker::SkippedRecord> skip_some(std::size_t begin);
  [[nodiscard]] worker::VisitSums found_by_visit(std::uint32_t records) const;

  MemberModel state_;
  RingSeat seat_{*this, state_};
  ServedRows rows_{*this};
  MemberFiles files_{*this, state_.model};
  std::optional<MonoTime> armed_;
  Step applied_;             // the last that was applied, perhaps not counted yet
  std::uint64_t place_ = 0;  // for a sabotage: its place one commit ago
};

}  // namespace antdt::sim
