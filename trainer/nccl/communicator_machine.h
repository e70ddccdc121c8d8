// What happens to one communicator of NCCL: when it is polled, when a caller is answered, and how
// it ends. A communicator belongs to one generation. Nothing is durable.
//
//   new ──FormWanted──> forming                                  (Form)
//   forming ──Polled: success──> ready                           (Answer)
//   ready ──EnqueueWanted──> enqueuing                           (Enqueue)
//   enqueuing ──Polled: success──> ready                         (Answer)
//   ready ──FinishWanted──> finishing                            (MarkWork)
//   finishing ──WorkQueried: done──> ready                       (Answer)
//   ready ──CloseWanted──> closing                               (Finalize, Poll, Destroy)
//   closing ──Destroyed──> over                                  (Answer)
//   any of these ──an error, AbortWanted, out of time──> aborting    (Abort, once no call runs)
//   aborting ──Aborted──> draining, or over if nothing was enqueued  (MarkWork)
//   draining ──WorkQueried: done──> over                         (Answer)
//   aborting, draining, closing ──out of patience──> stuck       (Answer)
//
// Effects that are calls (all but Answer) are made by one
// thread, one after another: the machine wants the next one only when the last has returned. So no
// two threads are ever in the communicator, as NCCL demands of those who abort. AbortWanted only
// notes that the communicator is to end; the thread that makes the calls aborts it.
//
// A call does not block, because the communicator is non-blocking; NCCL does not promise that of
// ncclCommAbort and ncclCommDestroy. If any call has not returned long after the end was wanted,
// the communicator is stuck: its caller is answered, and its thread and its memory are given up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/result.h"
#include "trainer/nccl/abi.h"

namespace antdt::nccl::communicator {

// Wanted by a caller, who waits for the Answer: one at a time.
struct FormWanted {};
struct EnqueueWanted {
  std::string what;  // for messages, "the all-reduce of 4096 elements"
};
struct FinishWanted {};
struct CloseWanted {};
// From any thread, at any time.
struct AbortWanted {};

// How a call ended. `text` is NCCL's or CUDA's own.
struct Returned {  // Form, Enqueue, Finalize, or a Poll that could not poll
  Code code{};
  std::string text = {};
};
struct Polled {  // the state of the communicator
  Code code{};
  std::string text = {};
};
enum class WorkState : std::uint8_t { kRunning, kDone, kFailed };
struct WorkQueried {
  WorkState state{};
  std::string text = {};
};
struct Destroyed {};
struct Aborted {
  Code code{};
};
struct TimePassed {};

using Input = std::variant<FormWanted, EnqueueWanted, FinishWanted, CloseWanted, AbortWanted,
                           Returned, Polled, WorkQueried, Destroyed, Aborted, TimePassed>;

struct Form {
  bool operator==(const Form&) const = default;
};
struct Enqueue {
  bool operator==(const Enqueue&) const = default;
};
struct Poll {
  bool operator==(const Poll&) const = default;
};
// Marks what was enqueued until now, and queries whether it is done; QueryWork queries again.
struct MarkWork {
  bool operator==(const MarkWork&) const = default;
};
struct QueryWork {
  bool operator==(const QueryWork&) const = default;
};
struct Finalize {
  bool operator==(const Finalize&) const = default;
};
struct Destroy {
  bool operator==(const Destroy&) const = default;
};
struct Abort {
  bool operator==(const Abort&) const = default;
};
struct Answer {
  Status status;
};
using Effect =
    std::variant<Form, Enqueue, Poll, MarkWork, QueryWork, Finalize, Destroy, Abort, Answer>;
using Effects = std::vector<Effect>;

struct Patience {
  Duration forming = std::chrono::minutes(2);
  // Of one enqueuing or finishing. The job daemon finds a member that hangs long before; see
  // CollectiveOptions::operation_timeout.
  Duration operation = std::chrono::hours(24);
  Duration closing = std::chrono::seconds(5);
  // From the moment at which the end was wanted until the caller is answered in any case.
  Duration aborting = std::chrono::seconds(10);
  // Of a caller who comes only after that moment, at least: what it waited for before may be what
  // held the abort up.
  Duration late_caller = std::chrono::seconds(5);
};
// For a job in which a member without progress for `hang_after` is ended. Forming that hangs is
// given up long before, so that the members join again with the problem, and none is ended. An
// abort waits for what the device computes already, which may take as long as a step.
[[nodiscard]] Patience patience_in(Duration hang_after);

class CommunicatorMachine {
 public:
  enum class State : std::uint8_t {
    kNew,
    kForming,
    kReady,
    kEnqueuing,
    kFinishing,
    kClosing,
    kAborting,
    kDraining,
    kOver,
    kStuck,
  };

  explicit CommunicatorMachine(Patience patience = {}) : patience_(patience) {}

  void step(const Input& input, MonoTime now, Effects& out);

  [[nodiscard]] State state() const { return state_; }
  // No call will be wanted any more.
  [[nodiscard]] bool ended() const { return state_ == State::kOver || state_ == State::kStuck; }
  // When TimePassed is due, at the latest: for the thread that makes the calls, and for a caller.
  [[nodiscard]] MonoTime next() const;
  [[nodiscard]] MonoTime deadline() const;

 private:
  void on(const FormWanted& input, MonoTime now, Effects& out);
  void on(const EnqueueWanted& input, MonoTime now, Effects& out);
  void on(const FinishWanted& input, MonoTime now, Effects& out);
  void on(const CloseWanted& input, MonoTime now, Effects& out);
  void on(const AbortWanted& input, MonoTime now, Effects& out);
  void on(const Returned& input, MonoTime now, Effects& out);
  void on(const Polled& input, MonoTime now, Effects& out);
  void on(const WorkQueried& input, MonoTime now, Effects& out);
  void on(const Destroyed& input, MonoTime now, Effects& out);
  void on(const Aborted& input, MonoTime now, Effects& out);
  void on(const TimePassed& input, MonoTime now, Effects& out);

  // Whether the communicator takes a request; if not, the caller is answered, at once or when the
  // communicator has ended.
  [[nodiscard]] bool takes(State needed, MonoTime now, Effects& out);
  // Begins a state with a call, which waits for a poll that runs just now.
  void begin(State state, std::string what, Effect first, MonoTime now, Effects& out);
  void call(Effect effect, Effects& out);
  void call_returned();
  void poll_again(MonoTime now);
  // The end was wanted; what answers the caller, and everyone after it, is `why`.
  void end_for(Error why, MonoTime now, Effects& out);
  void abort_now(Effects& out);
  // A caller came after the end was wanted, and is answered when the communicator has ended.
  void wait_late(MonoTime now);
  void over(State state, Effects& out);
  void answer(Status status, Effects& out);
  [[nodiscard]] Duration patience() const;
  void check_invariants() const;

  const Patience patience_;
  State state_ = State::kNew;
  bool in_call_ = false;         // a call has not returned
  bool caller_waits_ = false;    // for an Answer
  std::optional<Effect> first_;  // the call with which the present state begins
  bool has_work_ = false;        // something was enqueued, and is not known to be done
  std::string what_;             // is being done, for messages
  MonoTime began_{};             // the present state
  MonoTime next_poll_{};
  Duration pause_{};          // until the poll after that
  std::optional<Error> end_;  // why it ends
  MonoTime end_wanted_{};
  MonoTime give_up_{};  // when it is stuck, once the end was wanted
};

}  // namespace antdt::nccl::communicator
