// Those who train together, whichever way they agree: in a collective (ring_group.h), or around
// parameter servers (servers_group.h). The job goes by this interface and does not ask which.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "core/wire/membership_messages.h"
#include "core/wire/training_messages.h"
#include "ctl/lifecycle/lifecycle_events.h"
#include "ctl/processes/worker_process.h"

namespace antdt::ctl::job {

class Work;
struct CheckpointFound;

// What training goes on with after a loss of training state.
struct Beginning {
  std::string ledger, accounts;  // images
  std::uint64_t version = 0;     // of the model on servers
  std::string who;               // goes on with what
};

class Group {
 public:
  Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  virtual ~Group() = default;

  [[nodiscard]] virtual Generation generation() const = 0;
  // They are together, so that steps can be made.
  [[nodiscard]] virtual bool whole() const = 0;
  // Nothing is to be trained behind the checkpoint that is under way.
  [[nodiscard]] virtual bool closing() const { return false; }
  // Who is told what concerns all workers.
  [[nodiscard]] virtual std::vector<Member> members() const = 0;
  // After an earlier incarnation: whose generation is settled.
  [[nodiscard]] virtual std::vector<Member> restored() = 0;

  // This incarnation follows another one, and the group has heard whom to expect.
  virtual void recover(Work& work) = 0;
  virtual void finish_recovery(Work& work) = 0;
  // These processes are to be in it, or are.
  virtual void expect(const std::vector<WorkerProcess>& running, Work& work) = 0;
  // Whether who joins like this is to be a member of it, and not a loose client.
  [[nodiscard]] virtual bool takes(const wire::Join& join) const = 0;
  virtual void join(Member member, Generation generation, const wire::Join& join, Work& work) = 0;
  virtual void release(const lifecycle::ReleaseWorker& gone, Work& work) = 0;
  virtual void tick(Work& work) = 0;
  // All effects of one step of its machine have been carried out.
  virtual void stepped(Work& work) = 0;
  // Nobody makes steps, and nobody is seen to be the cause.
  virtual void stuck(const std::string& why, Work& work) = 0;
  // Somebody reads or receives training state, and bytes have come.
  virtual void state_moves(Work& work) = 0;
  // The phase has other records to train than its members were told.
  virtual void records_skipped(Work& work) = 0;
  virtual void order_checkpoint(const lifecycle::OrderCheckpoint& order, Work& work) = 0;
  // Whether one of this generation may write a checkpoint by itself.
  [[nodiscard]] virtual bool may_write_checkpoint(Generation generation) const = 0;
  // A checkpoint failed while the job waits for its trained model.
  virtual void model_failed() {}
  virtual void set_rate(double rate, Work& work) = 0;
  // The last phase, once more: the message may have been lost.
  virtual void say_finish_again(Work& work) = 0;

  // What it goes on with where nobody holds the training state.
  [[nodiscard]] virtual Result<Beginning> beginning(const CheckpointFound& found) const = 0;
  virtual void begin(const std::string& checkpoint, std::uint64_t version, Work& work) = 0;
};

}  // namespace antdt::ctl::job
