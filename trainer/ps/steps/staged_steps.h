// Which step the rows of a server contain, where the members of a collective agree on steps
// (docs/synchronisation/hybrid.md). Pure; the rows themselves are elsewhere (step_server.h).
//
// Each message of a member says which step it has concluded last. The rows follow:
//
//                  part of s + 1: staged
//                        ┌────┐
//                        v    │   "concluded s + 1"
//   after s, undoable ──────────────────────────────> after s + 1, undoable
//      ^        │                                        │
//      │        └──(a new generation of members is       │ (a new generation is after s: what no
//      │            after s)──> after s, for good        │  survivor has did not happen)
//      └─────────────────────────────────────────────────┘
//
// Members are at most one step apart, because each stages its part of a step on every server, also
// an empty one, and concludes the step only when all have. So
//
//   - a member that has concluded s + 1 proves that every part of it is staged here, and that all
//     members had concluded s;
//   - the rows are one step ahead of the furthest survivor at most, and one step behind it at most.
//
// A message names the generation of the members, which speak only once it is settled. The first
// message of a newer one says after which step all its members are, and ends the earlier ones:
// their messages are refused.
//
// The same messages in the same order give the same effects. No clock. Nothing is durable: the rows
// of a lost server are those of a checkpoint.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "core/ids.h"
#include "trainer/ps/rows/tables.h"

namespace antdt::ps {

namespace steps {

// What a member knows when it sends a message.
struct Concluded {
  Generation generation;      // settled
  std::uint32_t members = 0;  // of that generation
  Step step;                  // the last step that was concluded
  double weight = 0;          // what its gradients are divided by; 0: it changed nothing
  double rate = 1;            // factor of the learning rate in that step
  std::uint64_t cut = 0;      // the checkpoint that contains this step and no later one; 0: none
  std::string directory;      // where the slices of that checkpoint go
};

// ---- inputs
// A member wants rows as they are after `concluded.step`.
struct RowsWanted {
  Concluded concluded;
};
// The part of a member of the step after `concluded.step`. Keys rise.
struct PartArrived {
  Concluded concluded;
  std::uint32_t rank = 0;
  std::vector<TableGradient> part;
};
using Input = std::variant<RowsWanted, PartArrived>;

// ---- effects, in the order in which they must be carried out. The last one is the answer.
// The rows change by the sum of these parts divided by `weight`. What they were before is kept, in
// place of what was kept for the step before.
struct ApplyStep {
  Step step;
  double weight = 0;
  double rate = 1;
  std::vector<std::vector<TableGradient>> parts;  // by rank
};
// The rows become what was kept.
struct TakeBack {
  Step step;
};
// What was kept is not needed any more.
struct ForgetBefore {};
// The rows as they are now are those of the checkpoint.
struct WriteCut {
  std::uint64_t number = 0;
  std::string directory;
  Step step;
};
struct RowsAreCurrent {};
struct PartIsStaged {};
// The sender is of a generation that is over, or behind: nobody waits for what it wants.
struct RefuseStale {
  std::string why;
};
// The rows do not belong to the sender's replica, or the message is impossible.
struct RefuseUnfit {
  std::string why;
};
using Effect = std::variant<ApplyStep, TakeBack, ForgetBefore, WriteCut, RowsAreCurrent,
                            PartIsStaged, RefuseStale, RefuseUnfit>;
using Effects = std::vector<Effect>;

}  // namespace steps

class StagedSteps {
 public:
  // `step`: the one after which the rows are at the beginning.
  explicit StagedSteps(Step step = {}) : step_(step) {}

  // Appends to `out`.
  void step(const steps::Input& input, steps::Effects& out);

  // The rows are as after this step.
  [[nodiscard]] Step after() const { return step_; }
  // The newest settled generation of members that was heard of.
  [[nodiscard]] Generation generation() const { return generation_; }
  [[nodiscard]] std::size_t staged() const { return parts_.size(); }

 private:
  // Whether a step can be taken back: it is kept what the rows were before it.
  enum class Last : std::uint8_t { kForGood, kUndoable };

  void on(const steps::RowsWanted& input, steps::Effects& out);
  void on(const steps::PartArrived& input, steps::Effects& out);
  // Follows what the sender has concluded. Returns whether the rows are as it expects them.
  [[nodiscard]] bool follow(const steps::Concluded& concluded, steps::Effects& out);
  [[nodiscard]] bool begin(const steps::Concluded& concluded, steps::Effects& out);
  [[nodiscard]] bool conclude(const steps::Concluded& concluded, steps::Effects& out);
  void cut_if_new(const steps::Concluded& concluded, steps::Effects& out);
  void check_invariants() const;

  Step step_;
  Last last_ = Last::kForGood;
  Generation generation_;
  std::uint32_t members_ = 0;  // of that generation
  std::uint64_t cut_ = 0;      // the newest checkpoint that was written here
  std::map<std::uint32_t, std::vector<TableGradient>> parts_;  // of the next step, by rank
};

}  // namespace antdt::ps
