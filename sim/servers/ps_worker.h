// A worker of parameter servers: its machine (trainer/worker/servers/ps_machine.h) and client core
// (trainer/client/client_core.h) as they ship, driven in virtual time. What its process does for
// them is made up here: a tally for a model, and links without a network.
//
// Either an operation is under way, and its answer is scheduled or hangs on the link, or the
// machine waits for an order. What comes from servers while it computes is taken in when it is
// done, as by the real training thread. The message thread answers always, unless the whole process
// is stopped.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/hosts/program.h"
#include "sim/model.h"
#include "sim/options.h"
#include "sim/servers/ps_group.h"
#include "sim/surroundings.h"
#include "trainer/worker/member/generation_end.h"
#include "trainer/worker/servers/ps_machine.h"

namespace antdt::sim {

namespace ps_worker = worker::ps_worker;

class PsWorker final : public ClientProgram {
 public:
  PsWorker(World& world, Surroundings& around, const JobShape& shape, Sabotage sabotage,
           Member member, std::uint32_t pid, std::string host, const HostClock& clock);

  void answered(const PsAnswer& answer) override;
  [[nodiscard]] std::string doing() const override;
  [[nodiscard]] Generation generation() const { return machine_.generation(); }
  [[nodiscard]] const wire::PhaseStart& phase() const { return machine_.phase(); }

 private:
  using Answer = std::optional<ps_worker::Input>;
  // ps_worker.cc: the process and its training thread
  void welcomed() override { drive(worker::Started{}); }
  void turn() override;
  void abort(Generation generation) override;
  void ended(bool) override { group_.leave(); }
  void watch_leaving();
  void drive(Answer input);
  [[nodiscard]] Answer next_order();
  void tell(const ps_worker::Input& input);
  void tell_news();
  [[nodiscard]] Answer perform_all();
  // An operation is under way from now on: answers its number.
  [[nodiscard]] std::uint64_t begin_operation();
  [[nodiscard]] bool is_under_way(std::uint64_t operation) const;
  void answered(std::uint64_t operation, ps_worker::Input input);
  // It is answered after so long, with what `answer` has then; nothing: by another operation.
  void answer_after(Duration delay, std::function<Answer()> answer);
  // ps_worker_effects.cc: what the machine wants that is not of servers (ps_group.h). An operation
  // that takes no time has its answer.
  [[nodiscard]] Answer perform(worker::Send& effect);
  [[nodiscard]] Answer perform(const worker::SpendTime& effect);
  [[nodiscard]] Answer perform(const ps_worker::LeaveServers& effect);
  [[nodiscard]] Answer perform(const worker::StartReading& effect);
  [[nodiscard]] Answer perform(const worker::StopReading& effect);
  [[nodiscard]] Answer perform(const ps_worker::SayPull& effect);
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
  // Whether a batch is at hand: as much as it is to be, or all that there is.
  [[nodiscard]] bool take_records(std::uint64_t wanted);
  [[nodiscard]] static std::vector<std::uint64_t> keys_of(std::vector<Record> records);
  [[nodiscard]] PsGroup::Outside outside_of_group();

  const JobShape shape_;
  const Sabotage sabotage_;
  ps_worker::PsMachine machine_;
  ps_worker::Effects wanted_;  // and not done yet
  bool driving_ = false;
  bool leaves_ = false;
  bool under_way_ = false;       // an operation is
  std::uint64_t operation_ = 0;  // number of the one under way, or of the last

  worker::GenerationEnd end_;
  PsGroup group_;
  PlanVersion plan_told_;
  ps::PushOrder::Said commit_told_;  // of this link

  std::vector<Record> batch_;  // that is trained
  std::vector<Record> next_;
  std::vector<Record> taking_;  // of the next one
  client::TakeStatus taken_ = client::TakeStatus::kWait;
  bool more_may_come_ = false;
};

}  // namespace antdt::sim
