// The ranks of a script that knows nothing of AntDT, as their tracers tell of them: how far they
// are, and whether they hang. docs/machines.md describes the shape of a machine.
//
//   moving ──nobody moved for `patience`, and one is in a collective──> asking   (AskForStacks)
//   moving, asking ──a rank says that it failed──> asking after a failure        (AskForStacks)
//   asking ──all have told, or kAnswerWithin is over──> hung          (SayHang)
//   asking after a failure ──the same, or a rank goes──> ended        (SayHang), or moving if what
//                            they called does not explain the failure
//   hung ──`hang_after` is over and they cannot go on──> ended        (EndRank)
//   hung ──a rank goes──> ended
//   any but asking after a failure ──a rank comes, or one moves──> moving  (SayHangOver, after a
//                            hang); ended, and one moves: only kEndsWithin after they were asked
//
// A rank moves when it enters another collective or takes a step of its optimizer. Ranks cannot go
// on by themselves if all of them wait in collectives, or if the cause answers nothing; a cause
// that is doing something else (rank 0 evaluates, while the others wait in a barrier) is only said,
// and is ended when it has used no processor for kIdleTimes `hang_after`.
//
// Nothing is durable: after a restart of the job daemon the tracers say all of it again.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/wire/trace_messages.h"
#include "ctl/trace/hang.h"

namespace antdt::ctl::trace {

struct RankSaid {
  Member member;
  wire::Traced said;
};
// With the number of the newest AskForStacks; 0: by itself, since a collective failed there.
struct StackHeard {
  Member member;
  wire::StackTold told;
};
struct RankGone {
  Member member;
};
struct TimePassed {};
using Input = std::variant<RankSaid, StackHeard, RankGone, TimePassed>;

struct AskForStacks {
  std::uint64_t number = 0;
  std::vector<Member> members;
};
struct SayHang {
  Hang hang;
};
struct SayHangOver {};
// It is to be ended: it hangs.
struct EndRank {
  Member member;
  std::string why;
};
using Effect = std::variant<AskForStacks, SayHang, SayHangOver, EndRank>;
using Effects = std::vector<Effect>;

class TracedRanks {
 public:
  static constexpr Duration kAnswerWithin = std::chrono::seconds(3);
  // The one that failed may be there so long, while the others go on.
  static constexpr Duration kEndsWithin = std::chrono::seconds(10);
  static constexpr int kPatienceParts = 4;  // `patience` is this part of hang_after
  static constexpr int kIdleTimes = 5;

  explicit TracedRanks(Duration hang_after) : hang_after_(hang_after) {}

  void step(const Input& input, MonoTime now, Effects& out);

  struct Rank {
    Member member;
    wire::Traced said;
    MonoTime heard{};
    std::uint64_t idle_cpu_ms = 0;  // what it had used at idle_since
    MonoTime idle_since{};          // it has used next to no processor since then
    std::optional<wire::StackTold> told;
  };
  [[nodiscard]] const std::map<WorkerId, Rank>& ranks() const { return ranks_; }
  [[nodiscard]] const std::optional<Hang>& hang() const { return hang_; }  // the present one

  struct Progress {
    Step step;                  // of who is furthest
    std::uint64_t samples = 0;  // of all
    bool samples_known = false;
    double samples_per_second = 0;  // of the last seconds
    double steps_per_second = 0;
    std::uint64_t ranks = 0;  // the most that there were at once
    std::string runs;         // as the last one said
    double seconds = 0;       // from the first step that was heard of to the last one
  };
  [[nodiscard]] const Progress& progress() const { return progress_; }

 private:
  enum class State : std::uint8_t { kMoving, kAsking, kAskingAfterFailure, kHung, kEnded };

  void on(const RankSaid& e, MonoTime now, Effects& out);
  void on(const StackHeard& e, MonoTime now, Effects& out);
  void on(const RankGone& e, MonoTime now, Effects& out);
  void on(const TimePassed& e, MonoTime now, Effects& out);

  void moved(MonoTime now, Effects& out);
  void ask(State why, MonoTime now, Effects& out);
  void conclude(MonoTime now, Effects& out);
  void end_if_hopeless(MonoTime now, Effects& out);
  void count(MonoTime now);
  [[nodiscard]] std::vector<RankFound> found(MonoTime now) const;
  [[nodiscard]] bool asking() const {
    return state_ == State::kAsking || state_ == State::kAskingAfterFailure;
  }
  [[nodiscard]] bool is_idle(WorkerId worker, MonoTime now) const;
  void check_invariants() const;

  struct Point {
    MonoTime at{};
    Step step;
    std::uint64_t samples = 0;
  };

  Duration hang_after_;
  std::map<WorkerId, Rank> ranks_;
  State state_ = State::kMoving;
  MonoTime moved_{};  // when one of them moved last
  MonoTime asked_{};  // while they are asked: since when
  std::uint64_t number_ = 0;
  std::optional<Hang> hang_;
  MonoTime concluded_{};  // when the present hang was found
  Progress progress_;
  std::uint64_t earlier_samples_ = 0;  // of ranks that are gone
  std::optional<MonoTime> first_step_;
  std::deque<Point> recent_;
};

}  // namespace antdt::ctl::trace
