// What a process of the job has around it. One for all of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/delivery.h"
#include "core/sync_strategy.h"
#include "core/wire/membership_messages.h"
#include "core/wire/ps_messages.h"
#include "sim/hosts/program.h"
#include "sim/model.h"
#include "sim/servers/ps_packets.h"
#include "trainer/worker/worker_config.h"

namespace antdt::sim {

class PsWorker;
class Ring;
class Worker;

struct JobShape {
  std::uint64_t train_records = 0;
  std::uint64_t eval_records = 0;
  std::uint32_t epochs = 0;
  std::uint32_t global_batch = 0;
  Duration sample_time{};  // to compute one
  Duration write_time{};   // of a checkpoint
  Duration read_time{};
  std::uint32_t servers = 0;  // 0: the workers are in a collective
  SyncStrategy sync = SyncStrategy::kAllReduce;
  std::uint64_t staleness = 0;
  std::uint32_t backups = 0;
  std::uint32_t replicas = 1;  // processes that are one server
  Delivery delivery = Delivery::kExactlyOnce;
  std::string fingerprint = "f";  // of the data that a worker finds on its host
  [[nodiscard]] wire::DataIdentity data() const {
    return {train_records, eval_records, fingerprint, "the data " + fingerprint};
  }
  [[nodiscard]] worker::WorkerConfig worker_config(Member member, std::uint32_t pid) const {
    worker::WorkerConfig config;
    config.self = member.worker;
    config.join.pid = pid;
    config.join.data = data();
    config.eval_batch = kEvalBatch;
    return config;
  }
  [[nodiscard]] std::uint32_t server_processes() const { return servers * replicas; }
};

class Surroundings {
 public:
  virtual ~Surroundings() = default;
  virtual void to_agent(Program& from, Said message) = 0;
  virtual void exited(Program& program, int code, int signal) = 0;

  // Of workers in a collective. That of a generation is made by the first that comes.
  virtual Ring& ring(std::uint64_t key, const std::vector<WorkerId>& members) = 0;
  // What went wrong, or "".
  [[nodiscard]] virtual std::string write_checkpoint(const std::string& directory,
                                                     const Trained& state) = 0;
  // Null: it cannot be read.
  virtual const Trained* read_checkpoint(const std::string& directory) = 0;
  // For the invariants: a record enters a worker's hands, a model.
  virtual void took(const Worker& worker, Record record) = 0;
  virtual void trained(const Worker& worker, Record record) = 0;
  virtual void phase_done(const Worker& worker) = 0;

  // Of servers and of their workers.
  [[nodiscard]] virtual std::uint64_t new_socket(const Program& of) = 0;
  virtual void ask(const Program& from, const std::string& endpoint, PsPacket packet) = 0;
  virtual void answer(const Program& from, PsAnswer answer) = 0;
  [[nodiscard]] virtual std::string write_slices(const std::string& directory,
                                                 const PsSlices& slices) = 0;
  // Null: they cannot be read.
  virtual const PsSlices* read_slices(const std::string& directory) = 0;
  // The child of a server that makes its state for another process.
  [[nodiscard]] virtual bool loses_child() = 0;
  // For the invariants: a group begins; what a push has in it; what a home decided.
  virtual void group_began(Generation generation, const std::string& restore) = 0;
  virtual void pushed(const PsWorker& worker, std::uint64_t number,
                      const std::vector<Record>& records) = 0;
  // Of a home that is two processes either may say so, or both.
  virtual void decided(Generation generation, std::uint32_t home,
                       const wire::PsDecision& decision) = 0;
  virtual void phase_done(const PsWorker& worker) = 0;
};

}  // namespace antdt::sim
