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
#include "sim/servers/ps_link.h"
#include "sim/surroundings.h"
#include "trainer/ps/push_order.h"
#include "trainer/worker/member/generation_end.h"
#include "trainer/worker/servers/ps_machine.h"

namespace antdt::sim {

class PsWorker final : public ClientProgram {
 public:
  PsWorker(World& world, Surroundings& around, const JobShape& shape, Sabotage sabotage,
           Member member, std::uint32_t pid, std::string host, const HostClock& clock);

  void answered(const PsAnswer& answer) override;
  [[nodiscard]] std::string doing() const override;
  [[nodiscard]] Generation generation() const { return machine_.generation(); }
  [[nodiscard]] const wire::PhaseStart& phase() const { return machine_.phase(); }

 private:
  using Answer = std::optional<worker::PsInput>;
  // What the operation that is under way waits for, of what servers answer to earlier effects.
  enum class Awaits : std::uint8_t { kNothing, kAnything, kRows };
  struct Pull {  // of the next batch
    std::uint64_t number = 0;
    PsLink::Call call = 0;
    std::vector<PsReply> replies;  // empty: not here
  };

  // ps_worker.cc: the process and its training thread
  void welcomed() override { drive(worker::Started{}); }
  void turn() override;
  void abort(Generation generation) override;
  void ended(bool) override { link_.reset(); }
  void watch_leaving();
  void drive(Answer input);
  [[nodiscard]] Answer next_order();
  void tell(const worker::PsInput& input);
  void tell_news();
  [[nodiscard]] Answer perform_all();
  // An operation is under way from now on: answers its number.
  [[nodiscard]] std::uint64_t begin_operation();
  [[nodiscard]] bool is_under_way(std::uint64_t operation) const;
  void answered(std::uint64_t operation, worker::PsInput input);
  // It is answered after so long, with what `answer` has then; nothing: by another operation.
  void answer_after(Duration delay, std::function<Answer()> answer);

  // ps_worker_effects.cc: what the machine wants. An operation that takes no time has its answer.
  [[nodiscard]] Answer perform(worker::Send& effect);
  [[nodiscard]] Answer perform(const worker::SpendTime& effect);
  [[nodiscard]] Answer perform(const worker::LeaveServers& effect);
  [[nodiscard]] Answer perform(const worker::StartReading& effect);
  [[nodiscard]] Answer perform(const worker::StopReading& effect);
  [[nodiscard]] Answer perform(const worker::SayPull& effect);
  [[nodiscard]] Answer perform(const worker::ForgetPull& effect);
  [[nodiscard]] Answer perform(const worker::BeginBatch& effect);
  [[nodiscard]] Answer perform(const worker::Exit& effect);
  [[nodiscard]] Answer perform(const worker::GiveUp& effect);
  [[nodiscard]] Answer perform(const worker::OpenServers& effect);
  [[nodiscard]] Answer perform(const worker::TakeBatch& effect);
  [[nodiscard]] Answer perform(const worker::AwaitRows& effect);
  [[nodiscard]] Answer perform(const worker::ComputeBatch& effect);
  [[nodiscard]] Answer perform(const worker::SayPush& effect);
  [[nodiscard]] Answer perform(const worker::AwaitServers& effect);
  [[nodiscard]] Answer perform(const worker::AwaitGivenBack& effect);
  [[nodiscard]] Answer perform(const worker::SayIdle& effect);
  [[nodiscard]] Answer perform(const worker::SettleServers& effect);
  [[nodiscard]] Answer perform(const worker::AwaitRecords& effect);
  [[nodiscard]] Answer perform(const worker::EvaluateBatch& effect);
  [[nodiscard]] Answer take_on(const worker::TakeBatch& effect, MonoTime until);
  // Whether a batch is at hand: as much as it is to be, or all that there is.
  [[nodiscard]] bool take_records(std::uint64_t wanted);
  [[nodiscard]] Answer rows_pulled();
  // The operation that is begun with it is answered with what `next` makes of the answers of all
  // servers; nothing: by another operation.
  using Next = std::function<Answer(const std::vector<PsReply>& replies)>;
  void ask_all(const PsAsk& ask, Next next);
  void ask_idle(std::uint64_t version, std::function<Answer(std::uint64_t decided)> next);
  [[nodiscard]] worker::PsInput lost();
  [[nodiscard]] std::vector<std::vector<std::uint64_t>> keys_by_server(
      std::vector<Record> records) const;

  // ps_worker_pushes.cc
  // Says what follows from what has come; false: the group is over, or a server refused.
  [[nodiscard]] bool advance();
  void say_pushes();
  void say(const ps::PushOrder::Stage& stage);
  void say(const wire::PsCommit& commit);
  void came();  // something has, from servers

  const JobShape shape_;
  const Sabotage sabotage_;
  worker::PsMachine machine_;
  worker::PsEffects wanted_;  // and not done yet
  bool driving_ = false;
  bool leaves_ = false;
  bool under_way_ = false;       // an operation is
  std::uint64_t operation_ = 0;  // number of the one under way, or of the last
  Awaits awaits_ = Awaits::kNothing;

  worker::GenerationEnd end_;
  std::unique_ptr<PsLink> link_;
  ps::Consistency consistency_ = ps::Consistency::kBarrier;
  PlanVersion plan_told_;
  ps::PushOrder::Said commit_told_;  // of this link

  std::vector<Record> batch_;            // that is trained
  std::vector<std::uint64_t> versions_;  // that its rows are of, by server
  std::vector<Record> next_;
  std::vector<Record> taking_;  // of the next one
  client::TakeStatus taken_ = client::TakeStatus::kWait;
  bool more_may_come_ = false;
  std::uint64_t pulls_said_ = 0;
  std::optional<Pull> pull_;
  ps::PushOrder pushes_;
  using Parts = std::vector<std::optional<PsAsk>>;  // by server
  std::map<std::uint64_t, Parts> parts_;            // of pushes, by number, until they are said
  bool no_answers_ = false;
};

}  // namespace antdt::sim
