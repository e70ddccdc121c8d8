// A model that the loop can train, however it is computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint_reader.h"
#include "core/clock.h"
#include "core/ids.h"
#include "core/result.h"
#include "core/wire/shard_messages.h"
#include "core/wire/training_messages.h"
#include "core/wire/worker_messages.h"
#include "trainer/collective/collective.h"
#include "trainer/data/dataset.h"
#include "trainer/loop/domains/domain_links.h"
#include "trainer/loop/served/hosted_rows.h"
#include "trainer/loop/state/device_state.h"
#include "trainer/worker/step_slot.h"

namespace antdt::trainer {

// The results of a micro-batch. Sums over its samples, not means.
struct BatchSums {
  double weight = 0;
  double loss = 0;  // weighted; natural logarithm
  // Records that could not be used, each once.
  struct Skipped {
    std::uint32_t index = 0;  // in the micro-batch
    std::string reason;
  };
  std::vector<Skipped> skipped = {};
  // For how long a device computed since the last call, updates included, where its engine knows
  // that; empty: as long as the call took.
  std::optional<Duration> device_time = {};
  worker::VisitSums visit = {};  // in a step whose exchange of updates had a visit
};

// A file of a checkpoint: `text` or, if there are any, the parts one after another. The parts are
// in the engine's memory and valid until the next step begins.
struct StateFile {
  std::string name;
  std::string text = {};
  std::vector<std::span<const std::byte>> parts = {};
};

// The training state of one member: parameters, gradients, optimizer state.
//
// A step is begin_step, compute for each micro-batch, finish_reduction, then apply or discard. All
// members do the same reductions, so a member without records runs the step, too. Where replicas
// may differ (docs/synchronisation), it is mix, begin_local_step, compute, then apply or discard;
// or exchange_updates before begin_step, whose collective is then that of a domain. One thread at a
// time.
//
// What has no Result may throw a std::exception, as where a device has failed: then this member
// gives up, and its text is the reason.
class Engine {
 public:
  virtual ~Engine() = default;

  // phase_began: a phase begins in a settled generation with the members of `collective`, or goes
  // on in a new one; called before its first step or batch. phase_ended: the phase is done, or
  // broke off.
  virtual void phase_began(const wire::PhaseStart& /*start*/, Collective& /*collective*/) {}
  virtual void phase_ended(bool /*done*/) {}

  // The gradients of this step are summed over `collective`, which must live until finish_reduction
  // has returned.
  virtual void begin_step(Collective& collective) = 0;
  // Adds the gradient of the sum of weighted losses. With `last`, each part of the gradient is
  // reduced as soon as it is complete, while this call still runs.
  [[nodiscard]] virtual Result<BatchSums> compute(const data::Examples& batch, bool last) = 0;
  // Waits until all parts are reduced. If this member had no last batch, its parts contribute what
  // they hold. Nothing is applied yet.
  [[nodiscard]] virtual Status finish_reduction() = 0;
  // One optimizer step with the reduced gradient divided by `weight`, the sum of weights over all
  // members. Afterwards the gradients are zero. After an error, as of a program's own optimizer,
  // this member's state is worth nothing.
  [[nodiscard]] virtual Status apply(double weight) = 0;
  // The most records that fit the memory at once, as computing has shown; 0: all that were tried.
  [[nodiscard]] virtual std::uint32_t max_micro_batch() const { return 0; }
  // How the gradient of the model's embedding table was summed so far, as of the last
  // finish_reduction().
  [[nodiscard]] virtual wire::TableSums table_sums() const { return {}; }
  // Factor of the job's learning rate, from the next apply() on. A model without a rate ignores it.
  virtual void set_rate(double /*factor*/) {}
  // Afterwards the gradients are zero, and what mix() or exchange_updates() changed is as it was
  // before; nothing else changes.
  virtual void discard() = 0;

  // ---------------------------------------------------------------- where replicas may differ
  // Whether this engine can do what follows. Otherwise kUsage, which says what to use instead.
  [[nodiscard]] virtual Status can_mix() const {
    return fail(
        ErrorKind::kUsage,
        "this program cannot average parameters, which trainer.sync = \"ds-sync\" needs: use "
        "sync = \"allreduce\", or antdt-trainer on processors");
  }
  // The parameters, and moments of an optimizer that must be of all records, become the mean over
  // the members of `group`, with the same bits on each. What was before is kept until apply(),
  // which forgets it, or discard(), which restores it, also after an error.
  [[nodiscard]] virtual Status mix(Collective& /*group*/) { return can_mix(); }
  // The gradients of this step stay with this member, one of `members`. Its apply() is told the
  // weight by which this member alone divides; finish_reduction() does nothing if a step that was
  // broken off calls it.
  virtual void begin_local_step(Collective& /*members*/) {}
  // The whole state becomes the mean of those of `holders`, with the same bits on each, between two
  // steps. The holders have done the same number of steps. After an error it is what it was.
  [[nodiscard]] virtual Status consolidate(Collective& /*holders*/) { return can_mix(); }

  // ---------------------------------------------------------------- where domains hold replicas
  // Whether this engine can do what follows. Otherwise kUsage, which says what to use instead.
  [[nodiscard]] virtual Status can_exchange() const {
    return fail(ErrorKind::kUsage,
                "this program cannot send updates between domains, which trainer.sync = \"gaia\" "
                "needs: use sync = \"allreduce\", or antdt-trainer on processors");
  }
  // This domain sends the others what its replica has gained, and the replica gains what they sent.
  // All members of a domain have the same bits before and after it. What was before is kept until
  // apply(), which forgets it, or discard(), which restores it, also after an error. If a replica
  // of another domain visits, compute() also evaluates both on its records (BatchSums::visit). A
  // step without this call has one domain only.
  [[nodiscard]] virtual Status exchange_updates(const DomainLinks& /*links*/,
                                                const UpdateExchange& /*about*/) {
    return can_exchange();
  }
  // The whole state of all members of these domains becomes equal, with the same bits on each,
  // between two steps: updates that are here in part of any other domain are taken back, the rest
  // of these domains' updates is exchanged, and what the optimizer keeps becomes the domains' mean.
  // After an error it is what it was.
  [[nodiscard]] virtual Status consolidate_domains(const DomainLinks& /*links*/) {
    return can_exchange();
  }
  // What was sent to other domains so far.
  [[nodiscard]] virtual wire::UpdateSums update_sums() const { return {}; }

  // The rows of this engine that are on servers; null: it keeps all of its model.
  [[nodiscard]] virtual HostedRows* hosted_rows() { return nullptr; }

  [[nodiscard]] virtual Result<wire::EvalPartial> evaluate(const data::Examples& batch) = 0;

  // The files of a checkpoint of the state after `step`. Nothing is copied.
  [[nodiscard]] virtual std::vector<StateFile> state_files(Step step) const = 0;
  // Replaces the training state in place by the content of such files; returns its step. After an
  // error the state may be a mixture of both.
  [[nodiscard]] virtual Result<Step> load(CheckpointReader& files) = 0;

  // The same state in memory, in parts whose number and sizes are equal in all engines of a job.
  // Members with equal bytes and the same step go on alike (state_hash.h). A member without the
  // state receives another member's bytes into its parts and then calls state_replaced(). Valid
  // until the next step begins.
  [[nodiscard]] virtual std::vector<std::span<std::byte>> state_parts() = 0;
  virtual void state_replaced() = 0;
  // The same state where it lies, in a device's memory; null: it lies in the host's.
  [[nodiscard]] virtual DeviceState* device_state() { return nullptr; }
};

}  // namespace antdt::trainer
