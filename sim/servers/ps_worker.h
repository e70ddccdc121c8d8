// A worker of parameter servers: its machine (trainer/worker/servers/ps_machine.h) in virtual time.
// What its process does for the machine is simulated here: a tally for a model, and links without a
// network (ps_group.h). Packets that come from servers while it computes are taken in when it is
// done, as in the real training thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/hosts/machine_program.h"
#include "sim/model.h"
#include "sim/servers/ps_group.h"
#include "trainer/worker/servers/ps_machine.h"

namespace antdt::sim {

namespace ps_worker = worker::ps_worker;

class PsWorker final
    : public MachineProgram<ps_worker::PsMachine, ps_worker::Input, ps_worker::Effects> {
 public:
  PsWorker(World& world, const Surroundings& around, const JobShape& shape, Sabotage sabotage,
           const Place& place);

  // Null: it keeps no replica of the dense parameters.
  [[nodiscard]] const ps_worker::ShadowChain* shadow() const { return machine_.shadow(); }
  using MachineProgram::answered;
  void answered(PsAnswer answer) override;
  [[nodiscard]] std::string doing() const override;

 private:
  // ps_worker.cc: the process and its training thread
  void turn() override;
  void abort(Generation generation) override;
  void ended(bool) override { group_.leave(); }
  void operation_changed() override { group_.stop_waiting(); }
  void watch_leaving();
  void tell_news() override;
  [[nodiscard]] Answer next_order() override;
  [[nodiscard]] Answer perform_one(ps_worker::Effect& effect) override;
  // ps_worker_effects.cc: the effects that do not concern servers (those are in ps_group.h). An
  // operation that takes no time has its answer.
  [[nodiscard]] Answer perform(worker::Send& effect);
  [[nodiscard]] Answer perform(const worker::SpendTime& effect);
  [[nodiscard]] Answer perform(const ps_worker::LeaveServers& effect);
  [[nodiscard]] Answer perform(const worker::StartReading& effect);
  [[nodiscard]] Answer perform(const worker::StopReading& effect);
  [[nodiscard]] Answer perform(const ps_worker::SayPull& effect);
  // A tally has no learning rate.
  [[nodiscard]] Answer perform(const worker::SetRate&) { return {}; }
  [[nodiscard]] Answer perform(const ps_worker::BeginBatch& effect);
  [[nodiscard]] Answer perform(const worker::Exit& effect);
  [[nodiscard]] Answer perform(const worker::GiveUp& effect);
  [[nodiscard]] Answer perform(const ps_worker::TakeBatch& effect);
  [[nodiscard]] Answer perform(const ps_worker::ComputeBatch& effect);
  [[nodiscard]] Answer perform(const ps_worker::SayPush& effect);
  [[nodiscard]] Answer perform(const ps_worker::AwaitGivenBack& effect);
  [[nodiscard]] Answer perform(const worker::AwaitRecords& effect);
  [[nodiscard]] Answer perform(const worker::EvaluateBatch& effect);
  [[nodiscard]] Answer take_on(const ps_worker::TakeBatch& effect, MonoTime until);
  // Whether a complete batch is at hand, or all the records that there are.
  [[nodiscard]] bool take_records(std::uint64_t wanted);
  // The replica of the dense parameters that this push carries, where servers average them.
  [[nodiscard]] float replica(std::uint64_t push) const;
  [[nodiscard]] PsGroup::Outside outside_of_group();

  bool leaves_ = false;
  PsGroup group_;
  PlanVersion plan_told_;
  ps::PushOrder::Said commit_told_;  // what this link has been told of the commit

  std::vector<Record> batch_;  // the records that are being trained
  std::vector<Record> next_;
  std::vector<Record> taking_;  // the records taken for the next batch
  client::TakeStatus taken_ = client::TakeStatus::kWait;
  bool more_may_come_ = false;
};

}  // namespace antdt::sim
