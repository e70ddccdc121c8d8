// State shared by the machine of a member and the machines of its phases.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/ids.h"
#include "trainer/worker/member/effects.h"
#include "trainer/worker/member/exchange.h"
#include "trainer/worker/member/inputs.h"
#include "trainer/worker/sharing/share_seat.h"
#include "trainer/worker/sharing/share_trial.h"
#include "trainer/worker/training_state.h"

namespace antdt::worker {

// What is being written beside the steps: one checkpoint at a time.
enum class Saving : std::uint8_t { kNothing, kOrdered, kFinalModel };

// In a generation whose members may share steps (trainer/worker/sharing).
struct SharingState {
  sharing::ShareSeat seat;
  sharing::ShareTrial trial = sharing::ShareTrial();  // of rank 0, which decides for all
  bool shares = true;                                 // the next step, as all members know
};

struct MemberState {
  WorkerId self;
  StepExchange exchange;
  TrainingState training = {};
  Heard heard = {};
  // In the generation that was formed last: its rank, and the domains of its members, by rank.
  std::uint32_t rank = 0;
  std::vector<std::string> domains = {};
  std::optional<SharingState> sharing = {};
  // The last generation for which this member was ready, and its members. If that settled, this
  // member holds its state, even if the Settle never arrived.
  Generation ready = {};
  std::vector<WorkerId> ready_members = {};
  Saving saving = Saving::kNothing;
  bool told_end = false;                // it left a phase of training since its program ended that
  bool stages_rows = false;             // WorkerConfig::stages_rows
  TimeUse resting = TimeUse::kStartup;  // what its time counts as while it waits for orders

  [[nodiscard]] bool wants_to_leave() const { return heard.wants_to_leave(); }
  [[nodiscard]] bool wants_to_stop() const { return wants_to_leave() || heard.job.regroup; }
};

// How a phase ended for this member.
enum class PhaseEnd : std::uint8_t {
  kDone,   // every record is in the model
  kOver,   // the generation is over, so it joins the next one
  kEnded,  // its program ends the training; the others may still be in the last step
  kLeave,  // this member was asked to leave, and may leave now
};

}  // namespace antdt::worker
