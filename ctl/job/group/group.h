// The workers that train together, in a collective (ring_group.h) or with parameter servers
// (servers_group.h). The job uses this interface and does not ask which of the two it has.
#pragma once

#include <cstdint>
#include <optional>
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

// The state with which training begins again after its training state was lost.
struct Beginning {
  std::string ledger, accounts;  // images of both
  std::uint64_t version = 0;     // number of updates in the model on the servers
  std::string who;               // what goes on with which state, for people
};

// What members are told whose model is kept.
inline constexpr const char* kDone = "the job is done";

class Group {
 public:
  Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  virtual ~Group() = default;

  [[nodiscard]] virtual Generation generation() const = 0;
  // Whether the group is complete, so that it can make steps.
  [[nodiscard]] virtual bool whole() const = 0;
  // Whether the group ends with the checkpoint that is being made, so that nothing may be trained
  // after it.
  [[nodiscard]] virtual bool closing() const { return false; }
  // The workers that receive messages meant for all.
  [[nodiscard]] virtual std::vector<Member> members() const = 0;
  // After a restart: the members of the generation that an earlier incarnation left settled.
  // Nothing if it left none; a settled group of servers may have no worker at the moment.
  [[nodiscard]] virtual std::optional<std::vector<Member>> restored() = 0;

  // This incarnation follows another one, and the group has heard whom to expect.
  virtual void recover(Work& work) = 0;
  virtual void finish_recovery(Work& work) = 0;
  // The processes that run now are, or will be, members.
  virtual void expect(Work& work) = 0;
  // Whether a worker that joins like this becomes a member, and not a loose client.
  [[nodiscard]] virtual bool takes(const wire::Join& join) const = 0;
  virtual void join(Member member, Generation generation, const wire::Join& join, Work& work) = 0;
  virtual void release(const lifecycle::ReleaseWorker& gone, Work& work) = 0;
  virtual void tick(Work& work) = 0;
  // All effects of one step of the group's machine have been carried out.
  virtual void stepped(Work& work) = 0;
  // Nobody makes steps, and no single process is found to be the cause.
  virtual void stuck(const std::string& why, Work& work) = 0;
  // Whether nothing is formed before this process has joined.
  [[nodiscard]] virtual bool awaits(Member member) const = 0;
  // Some process that is waited for reads its data or a checkpoint, or receives training state, and
  // more bytes have arrived.
  virtual void state_moves(Work& work) = 0;
  // The phase has fewer records to train than its members were told.
  virtual void records_skipped(Work& work) = 0;
  virtual void order_checkpoint(const lifecycle::OrderCheckpoint& order, Work& work) = 0;
  // Whether a member of this generation may write a checkpoint by itself.
  [[nodiscard]] virtual bool may_write_checkpoint(Generation generation) const = 0;
  // A checkpoint failed while the job waits for its trained model.
  virtual void model_failed() {}
  virtual void set_rate(double rate, Work& work) = 0;
  // Announces the last phase once more, because the message may have been lost.
  virtual void say_finish_again(Work& work) = 0;

  // The state with which training begins again if nobody holds the training state.
  [[nodiscard]] virtual Result<Beginning> beginning(const CheckpointFound& found) const = 0;
  virtual void begin(const std::string& checkpoint, std::uint64_t version, Work& work) = 0;
  // If training waits because no member could read its checkpoint, and `found` is that one, the
  // members try again: true. False: training begins with what was found.
  [[nodiscard]] virtual bool tries_again(const CheckpointFound& /*found*/, Work& /*work*/) {
    return false;
  }
};

}  // namespace antdt::ctl::job
