// The job of a world of one: what an agent and a job daemon would say to the only worker. Pure.
//
//   greeted ──Join──> forming ──Address──> connecting ──Ready──> in phase 1, 2, … ──> over
//      └────Join of a loose client──────────────────────────────────^      │
//                forming <──Join: the program ends the training─────────────┘
//
// The phases are train 0, eval 0, train 1, …; there is no final model to keep, so that the last one
// is followed by Leave. What is asked again is answered again. Records are handed out in one
// stream. Nothing is durable.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "core/wire/envelope.h"
#include "core/wire/membership_messages.h"
#include "core/wire/shard_messages.h"
#include "core/wire/training_messages.h"

namespace antdt::capi {

struct LocalJobConfig {
  std::uint64_t records = 0;
  std::uint64_t eval_records = 0;  // 0: no evaluation
  std::uint32_t epochs = 1;
  std::uint32_t micro_batch = 32;
  std::uint32_t accumulation = 1;
  std::uint64_t seed = 0;
  bool shuffle = true;
  std::string secret;  // of all generations
};

class LocalJob {
 public:
  explicit LocalJob(LocalJobConfig config);

  // What the worker said; appends what it is answered. An error (kCorrupt) is a packet that cannot
  // be read.
  [[nodiscard]] Status hear(const wire::Packet& packet, std::vector<wire::Packet>& answers);

 private:
  struct Answers;
  struct Phase {
    wire::PhaseKind what = wire::PhaseKind::kNone;
    Epoch epoch;
    std::uint64_t records = 0;
  };
  void on(const wire::Hello& hello, const Answers& answers);
  void on(const wire::Join& join, const Answers& answers);
  void on(const wire::Address& address, const Answers& answers);
  void on(const wire::Ready& ready, const Answers& answers);
  void on(const wire::Fetch& fetch, const Answers& answers);
  void on(const wire::Progress& progress, const Answers& answers);

  void start_phase(const Answers& answers) const;
  void next_phase(const Answers& answers);
  void end_training();
  void grant(const wire::Fetch& fetch, wire::Grants& reply);
  [[nodiscard]] std::uint64_t phase_number() const { return phase_ + 1; }
  [[nodiscard]] bool over() const { return phase_ >= phases_.size(); }

  const LocalJobConfig config_;
  std::vector<Phase> phases_;
  bool collective_ = true;  // the worker is a member, not a loose client
  Generation generation_;   // formed last, and the one before it, whose state goes on
  Generation base_;
  Step begun_at_;  // the step of the member when the phase began, and the last it told
  Step step_;
  std::size_t phase_ = 0;
  std::uint64_t cursor_ = 0;     // records of the phase that were handed out
  std::uint64_t committed_ = 0;  // and are done
  std::uint64_t answered_ = 0;   // number of the last request
  wire::Grants last_reply_;      // to it
};

}  // namespace antdt::capi
