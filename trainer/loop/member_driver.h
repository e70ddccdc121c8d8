// The training thread of a member of a collective. It carries out the effects of the member's
// machine (trainer/worker/member/member_machine.h) and tells it the results. Nothing is decided
// here.
//
//   machine ──effects──> this thread: collective, engine, reader, checkpoint writer, client
//      ^                                            │
//      └──the result of the operation, or the next order; before it, what the client knows now──┘
//
// An operation blocks. An Abort reaches it through the guard, from the message thread. While a
// checkpoint is written, a second thread follows its progress (checkpoint_writer.h).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/result.h"
#include "trainer/loop/accounts/traffic_account.h"
#include "trainer/loop/member_groups.h"
#include "trainer/loop/served/step_rows.h"
#include "trainer/loop/sharing/share_link.h"
#include "trainer/loop/state/checkpoint_writer.h"
#include "trainer/loop/state/saves.h"
#include "trainer/loop/tools.h"
#include "trainer/worker/member/member_machine.h"

namespace antdt::trainer {

class MemberDriver {
 public:
  struct Parts {
    data::RecordReader* train = nullptr;
    data::RecordReader* eval = nullptr;
    wire::DataIdentity data;
    CollectiveFactory make_collective;
    std::uint32_t eval_batch = 256;  // in records
    wire::Device device = {};
    // A write that makes no progress for this long is given up.
    Duration io_patience = std::chrono::seconds(120);
    bool begins_alike = true;  // see worker::WorkerConfig
    // How members agree on the model. Unless gradients are summed over all, the engine must
    // be able to mix, or to exchange updates, and the collective must have groups.
    worker::ExchangeRules exchange = {};
    // If members share their steps: how they reach one another, and a reader of the training data
    // for the records that this member computes of others.
    std::optional<ShareLinkOptions> sharing = {};
    data::RecordReader* shared = nullptr;
    std::string key = {};  // this process's public key, for servers that are reached over tcp
    // If the engine's rows are on servers: how this member reaches these. Must outlive the driver.
    StepRows* rows = nullptr;
  };
  MemberDriver(Tools tools, Parts parts);

  // Runs until the job or this member's part in it ends; returns the exit code, after bye was sent.
  // The error is why this member gives up; the caller must report it. kAborted (exit code 76): it
  // cannot take part in the training as it goes on.
  [[nodiscard]] Result<int> run();

  // To be used by the engine during its calls.
  [[nodiscard]] const worker::MemberMachine& machine() const { return machine_; }

 private:
  [[nodiscard]] Result<int> live();
  void tell(worker::Input input);
  void report_traffic();
  [[nodiscard]] worker::Heard heard() const;
  // Whether the program has ended the training, and does nothing for the present step.
  [[nodiscard]] bool program_ends() const;
  [[nodiscard]] worker::Input next_order();
  // Carries out the pending effects; returns the result of the operation among them, if there was
  // one.
  [[nodiscard]] std::optional<worker::Input> perform_all();

  void perform(const worker::UseServers& effect);
  void perform(worker::Send& effect);
  void perform(const worker::SpendTime& effect);
  void perform(const worker::LeaveCollective& effect);
  void perform(const worker::StartReading& effect);
  void perform(const worker::StopReading& effect);
  void perform(const worker::SetRate& effect);
  void perform(const worker::BeginStep& effect);
  void perform(const worker::DropStep& effect);
  void perform(const worker::AbandonStep& effect);
  void perform(worker::Save& effect);
  void perform(const worker::GiveUpSaving& effect);
  void perform(const worker::Exit& effect);
  void perform(worker::GiveUp& effect);
  [[nodiscard]] worker::Input perform(const worker::BuildCollective& effect);
  [[nodiscard]] worker::Input perform(const worker::ConnectCollective& effect);
  [[nodiscard]] worker::Input perform(const worker::ReadState& effect);
  [[nodiscard]] worker::Input perform(const worker::CompareStates& effect);
  [[nodiscard]] worker::Input perform(const worker::Consolidate& effect);
  [[nodiscard]] worker::Input perform(const worker::PassState& effect);
  [[nodiscard]] worker::Input perform(const worker::HashState& effect);
  [[nodiscard]] worker::Input perform(const worker::Mix& effect);
  [[nodiscard]] worker::Input perform(const worker::ExchangeUpdates& effect);
  [[nodiscard]] worker::Input perform(const worker::ComputeMicroBatch& effect);
  void perform(const worker::OfferPart& effect);
  [[nodiscard]] worker::Input perform(const worker::TakePart& effect);
  [[nodiscard]] worker::Input perform(const worker::ComputeRun& effect);
  [[nodiscard]] worker::Input perform(const worker::AskForRun& effect);
  [[nodiscard]] worker::Input perform(const worker::SendPart& effect);
  [[nodiscard]] worker::Input perform(const worker::Reduce& effect);
  [[nodiscard]] worker::Input perform(const worker::AwaitSkipsTold& effect);
  [[nodiscard]] worker::Input perform(const worker::AwaitPartStaged& effect);
  [[nodiscard]] worker::Input perform(const worker::GatherSlots& effect);
  [[nodiscard]] worker::Input perform(const worker::Apply& effect);
  [[nodiscard]] worker::Input perform(const worker::TakePlan& effect);
  [[nodiscard]] worker::Input perform(const worker::MeasureHop& effect);
  [[nodiscard]] worker::Input perform(const worker::AwaitRecords& effect);
  [[nodiscard]] worker::Input perform(const worker::EvaluateBatch& effect);

  // The rows of `examples`, if they are on servers.
  [[nodiscard]] Status pull(const data::Examples& examples);
  [[nodiscard]] wire::PsConcluded concluded() const;
  // Whether the rows will be saved as well; if not, the failure is reported.
  [[nodiscard]] bool save_rows(worker::Save& effect);
  void abort_together(std::shared_ptr<StepRows::Link> link);
  // Adds the gradient of `examples`, and writes into `done` what came of it.
  [[nodiscard]] Status compute(const data::Examples& examples, bool last, Step step,
                               worker::MicroBatchComputed& done);

  // How this member reaches the members of its domain, and the leaders of others if it is one.
  [[nodiscard]] Result<DomainLinks> links_of(const std::vector<worker::DomainRanks>& domains);

  // Of shared steps; in member_sharing.cc. `host`: this member's address for the others.
  [[nodiscard]] Status connect_sharing(const std::string& host, const GroupKey& key);
  [[nodiscard]] Status take_records_of(const worker::sharing::Run& run, data::Examples& examples);

  Tools tools_;
  Parts parts_;
  worker::MemberMachine machine_;
  worker::Effects wanted_;  // pending effects
  std::optional<Result<int>> end_;
  std::shared_ptr<CollectiveBuilder> builder_;
  std::shared_ptr<Collective> collective_;
  MemberGroups groups_;     // of collective_
  ExpectedBytes expected_;  // of messages between domains in this generation
  double rate_ = 1;         // factor of the job's learning rate
  // Of shared steps: the link to the desk, this member's part, and the run of another's.
  std::shared_ptr<ShareLink> share_link_;
  data::Batch part_;
  std::uint32_t in_group_ = 0;  // its index among the members with which it shares
  HandedRun handed_;
  TrafficAccount traffic_;
  MonoTime traffic_told_at_{};
  Saves saves_;
  CheckpointWriter writer_;  // the last member, because its thread uses what is above
};

}  // namespace antdt::trainer
