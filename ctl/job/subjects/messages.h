// Turns messages of workers and servers into inputs of the machines.
#pragma once

#include <cstdint>

#include "core/ids.h"
#include "core/wire/agent_messages.h"
#include "core/wire/envelope.h"
#include "core/wire/membership_messages.h"
#include "core/wire/operator_messages.h"
#include "core/wire/shard_messages.h"
#include "core/wire/training_messages.h"
#include "core/wire/worker_messages.h"
#include "ctl/job/work.h"

namespace antdt::ctl::job {

struct Parts;

class Messages {
 public:
  explicit Messages(Parts& parts) : parts_(parts) {}

  void on(const WorkerSaid& e, Work& work);
  // The rest of what a message means, after a machine has processed the first part.
  void on(const ProgressCounted& e, Work& work);
  void on(const GroupJoinHeard& e, Work& work);
  void on(const LooseJoinHeard& e, Work& work);
  // What a member reports of the steps of its generation, for the run's history.
  void hear_history(const wire::StepHistory& told, antdt::Step step, Work& work);

 private:
  void hear(const WorkerSaid& e, const wire::Fetch& said, Work& work);
  void hear(const WorkerSaid& e, const wire::Recalled& said, Work& work);
  void hear(const WorkerSaid& e, const wire::Progress& said, Work& work);
  void hear(const WorkerSaid& e, const wire::Join& said, Work& work);
  void hear(const WorkerSaid& e, const wire::Address& said, Work& work);
  void hear(const WorkerSaid& e, const wire::Ready& said, Work& work);
  void hear(const WorkerSaid& e, const wire::CheckpointBegun& said, Work& work);
  void hear(const WorkerSaid& e, const wire::CheckpointWritten& said, Work& work);
  void hear(const WorkerSaid& e, const wire::Traced& said, Work& work);
  void hear(const WorkerSaid& e, const wire::StackTold& said, Work& work);
  void hear(const WorkerSaid& e, const wire::Bye& said, Work& work);
  void hear(const WorkerSaid& e, const wire::Metrics& said, Work& work);
  void hear(const WorkerSaid& e, const wire::PsServing& said, Work& work);
  void hear(const WorkerSaid& e, const wire::PsSaved& said, Work& work);
  void hear(const WorkerSaid& e, const wire::PsStats& said, Work& work);
  [[nodiscard]] wire::Progress without_skipped(wire::Progress said) const;
  // Called under every sync, before the worker is a member of anything. The members that train
  // already write a checkpoint now, and the job can go on from it.
  [[nodiscard]] bool refuse_other_data(Member m, const wire::DataIdentity& data, Work& work);

  Parts& parts_;
};

}  // namespace antdt::ctl::job
