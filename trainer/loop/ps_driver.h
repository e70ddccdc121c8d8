// The training thread of a worker of parameter servers: it does what the worker's machine wants
// (trainer/worker/servers/ps_machine.h) and tells it what came of that. Nothing is decided here.
//
//   machine ──effects──> this thread: link to the servers, model, reader, client
//      ^                                            │
//      └──what came of the operation, or the next order; before it what is known by now──┘
//
// An operation blocks. An Abort reaches it through the guard, from the message thread; where
// nobody answers any more a thread beside ends it (leave_watch.h).
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
#include "trainer/loop/generation_guard.h"
#include "trainer/loop/ps_model.h"
#include "trainer/loop/time_account.h"
#include "trainer/ps_link/worker_link.h"
#include "trainer/worker/servers/ps_machine.h"

namespace antdt::trainer {

namespace ps_worker = worker::ps_worker;

// Lives as long as the worker. References, never owned.
struct PsTools {
  const Clock& clock;
  client::Client& client;
  PsModel& model;
  transport::Context& context;  // of its links to the servers
  data::Prefetcher& prefetcher;
  TimeAccount& account;
  Injected& injected;
  GenerationGuard& guard;
  const std::atomic<bool>& stop;  // SIGTERM came
};

class PsDriver {
 public:
  struct Parts {
    data::RecordReader* train = nullptr;
    data::RecordReader* eval = nullptr;
    wire::DataIdentity data;
    std::uint64_t seed = 0;          // of the rows that servers draw: the job's
    std::uint32_t eval_batch = 256;  // records
    transport::KeyPair keys = {};    // of its own, for servers that are reached over tcp
    wire::Device device = {};
  };
  PsDriver(PsTools tools, Parts parts);

  // Until the job or this worker's part of it ends; answers the exit code, and bye
  // has been said. An error is why this worker gives up; the caller says so.
  [[nodiscard]] Result<int> run();

 private:
  struct Batch {
    data::Examples examples;
    std::vector<ps::TableKeys> rows;
    std::optional<ps::WorkerLink::Ticket> pull;  // that was said for it
    ps::WorkerLink::Pulled pulled;
    PsModel::Computed computed;
  };
  [[nodiscard]] Result<int> live();
  void tell(ps_worker::Input input);
  // What is known by now.
  void tell_news();
  [[nodiscard]] ps_worker::Input next_order();
  // Does what was wanted since; answers what came of the operation among it, if there was one.
  [[nodiscard]] std::optional<ps_worker::Input> perform_all();

  void perform(worker::Send& effect);
  void perform(const worker::SpendTime& effect);
  void perform(const ps_worker::LeaveServers& effect);
  void perform(const worker::StartReading& effect);
  void perform(const worker::StopReading& effect);
  void perform(const ps_worker::SayPull& effect);
  void perform(const ps_worker::ForgetPull& effect);
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
  [[nodiscard]] ps::Peers peers_of(const ps_worker::OpenServers& effect) const;

  PsTools tools_;
  Parts parts_;
  ps_worker::PsMachine machine_;
  ps_worker::Effects wanted_;  // and not done yet
  std::optional<Result<int>> end_;
  std::shared_ptr<ps::WorkerLink> link_;
  std::optional<Batch> next_;
  Batch batch_;                  // that is trained
  std::optional<Error> failed_;  // a pull could not be said
  PlanVersion plan_told_;
  ps::PushOrder::Said commit_told_;  // of this link
};

}  // namespace antdt::trainer
