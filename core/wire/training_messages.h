// The phases of a job, and its checkpoints: between a worker and the job daemon.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/wire/membership_messages.h"
#include "core/wire/message.h"
#include "core/wire/named_sums.h"

namespace antdt::wire {

enum class PhaseKind : std::uint8_t {
  kNone,    // no phase has begun
  kTrain,   // one epoch over the training records
  kEval,    // the evaluation after an epoch
  kFinish,  // write the model, and end
};
constexpr auto names_of(PhaseKind) { return names("", "train", "eval", "finish"); }

// What an evaluation found, over all of its records. A figure that nobody summed for is left out.
struct Evaluated {
  Epoch epoch;
  std::uint64_t records = 0;
  std::optional<double> auc = {}, log_loss = {}, accuracy = {};
  NamedSums named = {};  // over all records
  ANTDT_PART {
    v("epoch", m.epoch);
    v("records", m.records);
    v("auc", m.auc);
    v("log_loss", m.log_loss);
    v("accuracy", m.accuracy);
    v("named", m.named);
  }
};

// A phase begins. Training and evaluation concern epoch `epoch`, with `records` records, of which
// `committed` are committed already.
struct PhaseStart {
  std::uint64_t phase = 0;
  PhaseKind what = PhaseKind::kNone;
  Epoch epoch;
  std::uint64_t records = 0;
  std::uint64_t committed = 0;
  // For "finish" with all-reduce: the rank that writes the model, and how often it could not be
  // written, or stored. The latest one counts.
  std::uint32_t writer = 0;
  std::uint64_t tries = 0;
  // The newest evaluation that is over.
  std::optional<Evaluated> evaluated = {};
  ANTDT_MESSAGE("phase-start") {
    v("phase", m.phase);
    v("what", m.what);
    v("epoch", m.epoch);
    v("records", m.records);
    v("committed", m.committed);
    v("writer", m.writer);
    v("tries", m.tries);
    v("evaluated", m.evaluated);
  }
};

// What a visit found, under Gaia with SkewScout. In the step before which it is, each member
// evaluates two replicas on its own records of that step: that of its domain, and the guest, that
// of another domain. Both are from before the step's exchange. Sums over all members.
struct Visit {
  Step step;             // that it precedes
  double threshold = 0;  // of the exchanges that these figures are about
  // For how many steps replicas have drifted apart with it; the bytes are those of their exchanges.
  std::uint64_t steps = 0;
  std::uint64_t records = 0;
  std::uint64_t own_right = 0, guest_right = 0;  // of these records; 0: the model counts none
  double own_loss = 0, guest_loss = 0;
  // Of all domains, each to one other one on average: of messages, and of copies that visited; of
  // the messages, if every element were in them.
  std::uint64_t sent_bytes = 0, dense_bytes = 0;
  bool operator==(const Visit&) const = default;
  ANTDT_PART {
    v("step", m.step);
    v("threshold", m.threshold);
    v("steps", m.steps);
    v("records", m.records);
    v("own_right", m.own_right);
    v("guest_right", m.guest_right);
    v("own_loss", m.own_loss);
    v("guest_loss", m.guest_loss);
    v("sent_bytes", m.sent_bytes);
    v("dense_bytes", m.dense_bytes);
  }
};

// Under control.share_steps: what a trial of shared steps and of others has found.
struct StepKinds {
  bool shares = false;          // members go on sharing
  std::uint64_t shared_us = 0;  // a step of either kind, on average
  std::uint64_t alone_us = 0;
  bool operator==(const StepKinds&) const = default;
  ANTDT_PART {
    v("shares", m.shares);
    v("shared_us", m.shared_us);
    v("alone_us", m.alone_us);
  }
};

// How far training is: from the member of rank 0 (loss) and from every member (place). One-way and
// cumulative; the last one of a phase has done = true. About once a second, the member of rank 0
// also reports which records made the steps.
struct Progress {
  std::uint64_t phase = 0;
  Step step;                  // the last step that was applied
  std::uint64_t place = 0;    // stable, as in Fetch
  std::uint64_t samples = 0;  // of all members in this phase so far
  double loss_sum = 0;        // weighted training loss of all members in this phase so far
  double weight_sum = 0;
  PlanVersion plan;   // in force
  bool done = false;  // the model contains all records of the phase, and a further step completed
  StepHistory history{};
  // From the member of rank 0: the newest visit of this phase, the newest trial of this generation.
  std::optional<Visit> visit = {};
  std::optional<StepKinds> kinds = {};
  ANTDT_MESSAGE("progress") {
    v("phase", m.phase);
    v("step", m.step);
    v("place", m.place);
    v("samples", m.samples);
    v("loss_sum", m.loss_sum);
    v("weight_sum", m.weight_sum);
    v("plan", m.plan);
    v("done", m.done);
    v("history", m.history);
    v("visit", m.visit);
    v("kinds", m.kinds);
  }
};

// Write a checkpoint at the step at which every member's slot has this number.
struct CheckpointOrder {
  std::uint64_t number = 0;
  ANTDT_MESSAGE("checkpoint-order") { v("number", m.number); }
};

struct CheckpointFile {
  std::string name;
  std::uint64_t bytes = 0;
  std::string xxh3;  // 16 hex digits
  ANTDT_PART {
    v("name", m.name);
    v("bytes", m.bytes);
    v("xxh3", m.xxh3);
  }
};

// From the member that writes the checkpoint, at the agreed step and before it reports any later
// training: which records the model contained then. The checkpoint is written while steps go on.
struct CheckpointBegun {
  std::uint64_t number = 0;
  std::uint64_t phase = 0;
  Step step;
  std::vector<MemberPlace> places;
  StepHistory history{};
  ANTDT_MESSAGE("checkpoint-begun") {
    v("number", m.number);
    v("phase", m.phase);
    v("step", m.step);
    v("places", m.places);
    v("history", m.history);
  }
};

// From the member that wrote the checkpoint: the synced files are in `directory`. The job daemon
// adds the ledger and renames it into place.
struct CheckpointWritten {
  std::uint64_t number = 0;
  std::uint64_t phase = 0;
  Step step;
  std::string directory;
  std::vector<CheckpointFile> files;
  std::vector<MemberPlace> places;
  std::string error;  // not empty: why it could not be written
  StepHistory history{};
  ANTDT_MESSAGE("checkpoint-written") {
    v("number", m.number);
    v("phase", m.phase);
    v("step", m.step);
    v("directory", m.directory);
    v("files", m.files);
    v("places", m.places);
    v("error", m.error);
    v("history", m.history);
  }
};

}  // namespace antdt::wire
