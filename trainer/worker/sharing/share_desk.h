// The desk of a group of members that share their steps: it hands out the records of each step in
// runs, so that members that are faster in this very step compute more of them. A machine.
//
// A member, in each step:
//
//   not offered ──Offered──> computing its first run, or idle without one
//   computing, idle ──Asked──> waiting
//   waiting ──Answer with a run──> computing it: of its own part, or of one that is behind
//   waiting ──Answer without a run, since all is handed out──> done; it goes on to the sum of the
//                                                               gradients
//
// A part is handed out from both ends: its owner goes on where its last run ended, and others take
// from the end. So each record of an offered part is handed out exactly once, and what is left of a
// part is one range. Whoever is handed a run adds its gradient before the sum, or leaves the
// collective; then the step does not complete, and its records are still their owners'.
//
// A run is a part of what its member would compute until the end of the step, by the speeds that
// the members have in this step (weighted factoring: Hummel, Schmidt, Uma and Wein, "Load-Sharing
// in Heterogeneous Systems via Weighted Factoring", SPAA 1996). A member that would end its
// smallest run later than the others would end all that is left gets none.
//
// An ask for which nothing is left waits while a member of the group has not offered its part.
// Messages may be lost, repeated and late: an ask has a number and contains the offer, a repeated
// one gets the same answer, and messages of earlier steps are ignored. Nothing is durable.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "trainer/worker/sharing/share_rules.h"

namespace antdt::worker::sharing {

// Records [from, to) of the part of a member, which is named by its index in the group.
struct Run {
  std::uint32_t owner = 0;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  [[nodiscard]] std::uint32_t records() const { return to - from; }
  bool operator==(const Run&) const = default;
};

// ------------------------------------------------------------------------- inputs

struct Offered {
  std::uint32_t member = 0;  // index in the group
  Step step;
  std::uint32_t records = 0;  // its part of the step
  std::uint32_t first = 0;    // how many of them it computes without asking
  std::uint32_t most = 0;     // the largest run that it can compute; 0: any
};
// The member has computed all that it was handed.
struct Asked {
  Offered offer;
  std::uint32_t number = 0;  // of its asks in this step: 1, 2, ...
};
using Input = std::variant<Offered, Asked>;

// ------------------------------------------------------------------------ effects

// The answer to ask `number` of `member`. Empty run: nothing is left. With `last`, nothing is left
// behind the run, so the member need not ask again.
struct Answer {
  std::uint32_t member = 0;
  Step step;
  std::uint32_t number = 0;
  std::optional<Run> run;
  bool last = false;
  double first = 0;  // with which part of its records it should begin the next step
  bool operator==(const Answer&) const = default;
};
using Effects = std::vector<Answer>;

class ShareDesk {
 public:
  ShareDesk(std::uint32_t members, ShareRules rules);

  void step(const Input& input, MonoTime now, Effects& out);

  // Records of the present step that are offered and not handed out.
  [[nodiscard]] std::uint64_t left() const;

 private:
  struct NotOffered {};
  struct Idle {};
  struct Computing {
    std::uint32_t records = 0;
    MonoTime since{};
  };
  struct Waiting {
    MonoTime since{};
  };
  struct Done {};
  using State = std::variant<NotOffered, Idle, Computing, Waiting, Done>;
  struct Computed {
    std::uint32_t records = 0;
    double seconds = 0;  // with the messages
  };
  // The time of a record in runs of one size, relative to all runs of the same step.
  struct SmallRun {
    double relative = 0;  // mean
    std::uint32_t count = 0;
  };
  struct Member {
    // Of the present step.
    State state = NotOffered{};
    std::uint32_t front = 0;  // its part that is left
    std::uint32_t back = 0;
    std::uint32_t part = 0;
    std::uint32_t most = 0;
    MonoTime began{};
    std::uint64_t computed = 0;
    std::uint32_t asks = 0;        // its newest ask
    std::optional<Answer> answer;  // to that ask; none while it waits
    std::vector<Computed> runs;
    // Of all steps: records a second, 0: unknown; and of small runs the time of a record, by the
    // multiples of `multiple_of` that they have.
    double usual = 0;
    // What part of its records it could compute in the ideal time of a step: the least of recent
    // steps.
    double steady = 0;
    std::vector<SmallRun> small;

    [[nodiscard]] std::uint32_t left() const { return back - front; }
    [[nodiscard]] const Computing* computes() const { return std::get_if<Computing>(&state); }
    [[nodiscard]] const Waiting* waits() const { return std::get_if<Waiting>(&state); }
  };
  // How fast a member is, and when it will have computed what it was handed.
  struct Pace {
    double per_second = 0;  // 0: unknown
    double busy_s = 0;
  };
  struct Others {
    double per_second = 0;  // of the members whose speed is known
    double in_hand = 0;     // records that these compute now
    std::uint32_t known = 0;
    std::uint32_t unknown = 0;
    std::optional<double> relief_s;  // when one of them could have computed one run more
  };
  void on(const Offered& input, MonoTime now);
  void on(const Asked& input, MonoTime now, Effects& out);
  void begin(Step step);
  void serve_all(MonoTime now, Effects& out);
  void serve(std::uint32_t index, MonoTime now, Effects& out);
  [[nodiscard]] std::optional<Run> choose(std::uint32_t index, MonoTime now);
  [[nodiscard]] Run hand_out(std::uint32_t index, std::uint32_t owner, std::uint32_t records);
  [[nodiscard]] std::uint32_t furthest_behind(MonoTime now) const;
  [[nodiscard]] Others others_than(std::uint32_t index, MonoTime now) const;
  [[nodiscard]] Pace pace_of(const Member& member, MonoTime now) const;
  [[nodiscard]] std::uint32_t least_run(const Member& member) const;
  void learn(Member& member) const;
  void learn_steadiness();
  [[nodiscard]] double careful(const Member& member) const;
  void check_invariants() const;
  [[nodiscard]] bool all_offered() const { return offered_ == members_.size(); }

  const ShareRules rules_;
  Step step_;
  std::vector<Member> members_;
  std::size_t offered_ = 0;
  std::uint64_t parts_ = 0;  // records of the step so far
};

}  // namespace antdt::worker::sharing
