// The training thread of a worker of parameter servers. It carries out the effects of the worker's
// machine (trainer/worker/servers/ps_machine.h) and tells it the results. Nothing is decided here.
//
//   machine ──effects──> this thread: link to the servers, model, reader, client
//      ^                                            │
//      └──the result of the operation, or the next order; before it, what is known now──┘
//
// An operation blocks. An Abort reaches it through the guard, from the message thread. If no server
// answers any more, a second thread ends it (leave_watch.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/clock.h"
#include "core/result.h"
#include "core/transport/socket.h"
#include "trainer/client/client.h"
#include "trainer/data/prefetcher.h"
#include "trainer/injected/injected.h"
#include "trainer/loop/accounts/time_account.h"
#include "trainer/loop/generation_guard.h"
#include "trainer/loop/ps_model.h"
#include "trainer/ps_link/worker_link.h"
#include "trainer/worker/servers/ps_machine.h"

namespace antdt::trainer {

namespace ps_worker = worker::ps_worker;

// Everything must live as long as the worker. These are references, not owners.
struct PsTools {
  const Clock& clock;
  client::Client& client;
  PsModel& model;
  transport::Context& context;  // for its links to the servers
  data::Prefetcher& prefetcher;
  TimeAccount& account;
  Injected& injected;
  GenerationGuard& guard;
  const std::atomic<bool>& stop;  // set by SIGTERM
};

class PsDriver {
 public:
  struct Parts {
    data::RecordReader* train = nullptr;
    data::RecordReader* eval = nullptr;
    wire::DataIdentity data;
    std::uint64_t seed = 0;          // seed of the rows that servers draw: the job's
    std::uint32_t eval_batch = 256;  // in records
    transport::KeyPair keys = {};  // this process's own keys, for servers that are reached over tcp
    wire::Device device = {};
    // How the model's replica is exchanged with the centre; needs a model that has one.
    std::optional<ps_worker::ShadowRules> shadow = {};
  };
  PsDriver(PsTools tools, Parts parts);

  // Runs until the job or this worker's part in it ends; returns the exit code, after bye was sent.
  // The error is why this worker gives up; the caller must report it.
  [[nodiscard]] Result<int> run();

 private:
  struct Batch {
    data::Examples examples;
    std::vector<ps::TableKeys> rows;
    std::optional<ps::WorkerLink::Ticket> pull;  // the pull for this batch, if one was sent
    ps::WorkerLink::Pulled pulled;
    PsModel::Computed computed;
  };
  [[nodiscard]] Result<int> live();
  void tell(ps_worker::Input input);
  // Tells the machine what is known now.
  void tell_news();
  [[nodiscard]] ps_worker::Input next_order();
  // Carries out the pending effects; returns the result of the operation among them, if there was
  // one.
  [[nodiscard]] std::optional<ps_worker::Input> perform_all();

  void perform(worker::Send& effect);
  void perform(const worker::SpendTime& effect);
  void perform(const ps_worker::LeaveServers& effect);
  void perform(const worker::StartReading& effect);
  void perform(const worker::StopReading& effect);
  void perform(const ps_worker::SayPull& effect);
  void perform(const ps_worker::ForgetPull& effect);
  void perform(const ps_worker::SayCentrePull& effect);
  void perform(const worker::SetRate& effect);
  void perform(const ps_worker::BeginBatch& effect);
  void perform(const worker::Exit& effect);
  void perform(worker::GiveUp& effect);
  [[nodiscard]] ps_worker::Input perform(const ps_worker::OpenServers& effect);
  [[nodiscard]] ps_worker::Input perform(const ps_worker::TakeBatch& effect);
  [[nodiscard]] ps_worker::Input perform(const ps_worker::AwaitRows& effect);
  [[nodiscard]] ps_worker::Input perform(const ps_worker::ComputeBatch& effect);
  [[nodiscard]] ps_worker::Input perform(const ps_worker::SayPush& effect);
  [[nodiscard]] ps_worker::Input perform(const ps_worker::AwaitServers& effect);
  [[nodiscard]] ps_worker::Input perform(const ps_worker::AwaitGivenBack& effect);
  [[nodiscard]] ps_worker::Input perform(const ps_worker::SayIdle& effect);
  [[nodiscard]] ps_worker::Input perform(const ps_worker::SettleServers& effect);
  [[nodiscard]] ps_worker::Input perform(const worker::AwaitRecords& effect);
  [[nodiscard]] ps_worker::Input perform(const worker::EvaluateBatch& effect);

  [[nodiscard]] Result<ps_worker::ServersOpened> open(const ps_worker::OpenServers& effect);
  [[nodiscard]] Result<data::Batch> take(const ps_worker::TakeBatch& effect);
  [[nodiscard]] Result<ps_worker::BatchComputed> compute(const ps_worker::ComputeBatch& effect);
  [[nodiscard]] Result<worker::BatchEvaluated> evaluate(const worker::EvaluateBatch& effect);
  // The rows of a batch as an evaluation needs them.
  [[nodiscard]] std::vector<ps::TableKeys> evaluated_rows(const data::Examples& batch) const;
  [[nodiscard]] Status begin_replica();
  [[nodiscard]] bool centre_is_here() const {
    return centre_pull_ && link_->is_here(*centre_pull_);
  }
  void tell_centre();
  [[nodiscard]] ps::Peers peers_of(const ps_worker::OpenServers& effect) const;

  PsTools tools_;
  Parts parts_;
  ps_worker::PsMachine machine_;
  ps_worker::Effects wanted_;  // pending effects
  std::optional<Result<int>> end_;
  std::shared_ptr<ps::WorkerLink> link_;
  std::optional<Batch> next_;
  Batch batch_;                  // the batch that is trained
  std::optional<Error> failed_;  // why a pull could not be sent, or read
  std::optional<ps::WorkerLink::Ticket> centre_pull_;
  ps::WorkerLink::Pulled centre_;  // the newest, until an exchange uses it
  PlanVersion plan_told_;
  ps::PushOrder::Said commit_told_;  // what the machine was told about this link
};

}  // namespace antdt::trainer
