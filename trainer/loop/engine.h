// A model that the loop can train, whatever computes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint_reader.h"
#include "core/ids.h"
#include "core/result.h"
#include "core/wire/shard_messages.h"
#include "core/wire/training_messages.h"
#include "trainer/collective/collective.h"
#include "trainer/data/dataset.h"

namespace antdt::trainer {

// What a micro-batch gave. Sums over its samples, not means.
struct BatchSums {
  double weight = 0;
  double loss = 0;  // weighted, natural logarithm
};

// A file of a checkpoint: `text`, or, where there are any, the parts one after another, which lie
// in the engine's memory until the next step begins.
struct StateFile {
  std::string name;
  std::string text = {};
  std::vector<std::span<const std::byte>> parts = {};
};

// The training state of one member: parameters, gradients, optimizer state.
//
// A step is begin_step, compute for each micro-batch, finish_reduction, then
// apply or discard. All members do the same reductions, so a member without
// records runs the step too. One thread at a time.
class Engine {
 public:
  virtual ~Engine() = default;

  // A phase begins for a settled generation whose members are `collective`, or goes on for a new
  // one; before its first step or batch. It is over: all of it is done, or it broke off.
  virtual void phase_began(const wire::PhaseStart& /*start*/, Collective& /*collective*/) {}
  virtual void phase_ended(bool /*done*/) {}

  // Gradients of this step are summed over `collective`, which must live until
  // finish_reduction has returned.
  virtual void begin_step(Collective& collective) = 0;
  // Adds the gradient of the sum of weighted losses. With `last`, each part of
  // the gradient is reduced as soon as it is complete, while this still runs.
  [[nodiscard]] virtual Result<BatchSums> compute(const data::Examples& batch, bool last) = 0;
  // Waits until all parts are reduced; parts that no batch of this member was
  // the last for contribute what they hold. Nothing is applied yet.
  [[nodiscard]] virtual Status finish_reduction() = 0;
  // One optimizer step with the reduced gradient divided by `weight`, the sum
  // of weights over all members. Gradients are zero afterwards.
  virtual void apply(double weight) = 0;
  // Of the job's learning rate, from the next apply() on. What has none ignores it.
  virtual void set_rate(double /*factor*/) {}
  virtual void discard() = 0;  // gradients are zero afterwards, nothing else changes

  [[nodiscard]] virtual Result<wire::EvalPartial> evaluate(const data::Examples& batch) = 0;

  // The files of a checkpoint of the state as it is after `step`. Nothing is copied.
  [[nodiscard]] virtual std::vector<StateFile> state_files(Step step) const = 0;
  // Replaces the training state by what such files hold, in place; answers its step. After an
  // error the state may be any mixture of both.
  [[nodiscard]] virtual Result<Step> load(CheckpointReader& files) = 0;

  // The same state where it lies in memory, in parts whose number and sizes are
  // those of any other engine of the same job: members with equal bytes and the same step
  // will go on alike (state_hash.h), and a member without the state
  // receives another's bytes into them and calls state_replaced() then. Valid
  // until the next step begins.
  [[nodiscard]] virtual std::vector<std::span<std::byte>> state_parts() = 0;
  virtual void state_replaced() = 0;
};

}  // namespace antdt::trainer
