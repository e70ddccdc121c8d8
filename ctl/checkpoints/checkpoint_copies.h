// Where the checkpoints of a run lie, when its hosts do not share the run directory: which
// files are fetched to the launching host, which copies other hosts get, and what goes again.
// docs/machines.md describes the shape of a machine. Nothing of it is durable: hosts say what they
// have when they come.
//
// Of a host:
//             HostAppeared           HostProbed: another directory
//   (away) ────────────────> probing ──────────────────────────────> apart ── its copies count
//     ^                        │ HostProbed: the same directory
//     │ HostVanished           └───────────────────────────────────> shares ── has all there is
//     └─ of each of them
//
// Of a checkpoint:
//   PartsWritten, on hosts apart ──> gathering (files are fetched; goes on where it broke off)
//      ──> TellGathered: whoever asked stores it on the launching host
//      ──> CheckpointsListed ──> pushed to further hosts, the writers' first, until `copies` have
//      it ──> not kept any more ──> removed everywhere
// A gathering whose host is lost, or does not have the files any more, has failed, and so has one
// for which the launching host has no room; what fails otherwise is tried again, with growing
// pauses. Who waits to read hears of the error after kTries.
//
// Where parameter servers hold the model, each writes its part: a checkpoint is gathered from all
// of their hosts, and whoever reads it is sent all of it.
//
// Nothing is removed before it is known what training goes on from, and again while a checkpoint
// is looked for: until then a host may have the only copy of the newest one.
//
// A task is one connection to one host that does one thing. At most one writes on a host.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "ctl/checkpoints/checkpoint_names.h"
#include "ctl/checkpoints/checkpoint_part.h"

namespace antdt::ctl::copies {

using TaskId = std::uint64_t;

struct HostAppeared {
  std::string host;
};
struct HostVanished {
  std::string host;
};
// What a probe found. `whole`: names of whole checkpoints there.
struct HostProbed {
  TaskId task = 0;
  bool shares = false;  // with the launching host
  std::vector<std::string> whole = {};
};
struct TaskDone {
  TaskId task = 0;
};
// `gone`: what was asked for is not there, or not what was said, and will not be; of a copy, that
// what arrived is not what was said. `full`: the launching host has no room for it. `foreign`: the
// run directory there is another job's.
struct TaskFailed {
  TaskId task = 0;
  std::string error;
  bool gone = false;
  bool full = false;
  bool foreign = false;
};
// An unfinished checkpoint lies in `unfinished` (a name in checkpoints/) of these hosts.
// Answered by TellGathered. A later one takes its place.
struct PartsWritten {
  std::uint64_t number = 0;
  std::string unfinished;
  std::vector<Part> parts;
};
// The launching host has these checkpoints, the newest last. `stored`: it has become one now,
// and was `unfinished` before. The first one comes before any CheckpointNeeded is answered: until
// then it is not known what the launching host has.
struct CheckpointsListed {
  std::vector<std::string> names;
  std::string stored = {};
  std::string unfinished = {};
};
// The job is done, and the launching host has these. Nobody writes any more: what is unfinished
// elsewhere may all go.
struct TrainingDone {
  std::vector<std::string> names;
};
// Somebody on `host` is about to read the checkpoint. Answered by TellReached.
struct CheckpointNeeded {
  std::uint64_t number = 0;
  std::string host;
  std::string name;
};
// Members or servers could not read this checkpoint, so copies of it may be bad, or gone. None
// counts before it was compared with that of the launching host.
struct CopiesDoubted {
  std::string name;
};
// Checkpoints up to this age were given up: what is left of them only takes room.
struct CheckpointsGivenUp {
  Age up_to;
};
// Before training goes on from the newest checkpoint: is there a newer whole one elsewhere?
// `newest`: that of the launching host that is whole; "": it has none. Answered by TellFound.
struct NewestWanted {
  std::string newest;
};
// Training goes on from what the launching host has.
struct NewestChosen {};
struct TimePassed {};
using Input =
    std::variant<HostAppeared, HostVanished, HostProbed, TaskDone, TaskFailed, PartsWritten,
                 CheckpointsListed, TrainingDone, CheckpointNeeded, CopiesDoubted,
                 CheckpointsGivenUp, NewestWanted, NewestChosen, TimePassed>;

struct ProbeHost {  // answered by HostProbed
  TaskId task = 0;
  std::string host;
};
struct FetchPart {  // these files of an unfinished checkpoint, into one of the same name here
  TaskId task = 0;
  std::string unfinished;
  Part part;
};
// A checkpoint of this host, by way of `unfinished`. A bad one of that name is replaced.
struct PushCopy {
  TaskId task = 0;
  std::string host;
  std::string name;
  std::string unfinished;
};
// Removes what is unfinished and not younger than `up_to`; and all checkpoints but these, if it is
// known which ones are kept.
struct CleanHost {
  TaskId task = 0;
  std::string host;
  std::optional<std::vector<std::string>> keep;
  Age up_to;
};
struct FetchCopy {  // a whole checkpoint that this host has not
  TaskId task = 0;
  std::string host;
  std::string name;
};
struct CancelTask {  // nobody waits for that task any more
  TaskId task = 0;
};
struct TellGathered {
  std::uint64_t number = 0;
  std::string error;
};
struct TellReached {
  std::uint64_t number = 0;
  std::string error;
};
struct TellFound {
  bool fetched = false;  // the launching host has one more
  // A sentence for each still newer one that a host has and that could not be fetched; and for each
  // host that does not say what it has, or was lost with a newer one.
  std::vector<std::string> unfetched = {};
  std::vector<std::string> silent = {};
};
struct PublishCopyNote {
  std::string kind;
  std::string text;
};
using Effect = std::variant<ProbeHost, FetchPart, PushCopy, CleanHost, FetchCopy, CancelTask,
                            TellGathered, TellReached, TellFound, PublishCopyNote>;
using Effects = std::vector<Effect>;

class CheckpointCopies {
 public:
  // `copies`: on how many hosts each checkpoint is to be, the launching one with them.
  explicit CheckpointCopies(std::uint32_t copies) : copies_(copies) {}

  void step(const Input& input, MonoTime now, Effects& out);

  // Whether some host has a run directory of its own.
  [[nodiscard]] bool any_apart() const;
  [[nodiscard]] bool shares(const std::string& host) const;
  [[nodiscard]] bool knows(const std::string& host) const { return hosts_.contains(host); }
  // Nothing is under way, or waits for a pause to be over, that is still wanted.
  [[nodiscard]] bool idle() const;
  // How many hosts have it, the launching one with them.
  [[nodiscard]] std::uint32_t copies_of(const std::string& name) const;
  // Those of the launching host that are to be on further hosts, and could be.
  [[nodiscard]] std::vector<std::string> lacking() const;
  // What must hold after a step, and does; else a text. Checked by step().
  [[nodiscard]] std::string broken_invariant() const;

  static constexpr Duration kFirstPause = std::chrono::milliseconds(500);
  static constexpr Duration kLongestPause = std::chrono::seconds(15);
  // Of fetching a checkpoint back from one host, of sending one that a reader waits for, and of
  // sending one that arrives otherwise than its manifest says.
  static constexpr std::uint32_t kTries = 3;

 private:
  enum class Place { kProbing, kShares, kApart };
  struct Host {
    Place place = Place::kProbing;
    std::set<std::string> whole = {};
    std::set<std::string> doubted = {};  // it has said that they are whole; see CopiesDoubted
    std::map<std::string, std::uint32_t> spoilt =
        {};                              // how often each arrived, and not as it was said
    std::optional<TaskId> writing = {};  // the task that changes what it has
    MonoTime not_before{};               // a task failed: when it is tried again
    Duration pause = kFirstPause;
    std::string trouble = {};  // said
    bool clean = false;        // nothing is there that ought to go
    bool asked = false;        // probed once, with whatever outcome
  };
  struct Task {
    std::string host;
    Effect what;
  };
  struct Need {
    CheckpointNeeded what;
    std::uint32_t failures = 0;  // how often sending it failed
  };
  struct Gathering {
    std::uint64_t number = 0;
    std::string unfinished;
    std::vector<Part> waiting;  // parts that no task fetches now
    std::vector<TaskId> tasks;
  };

  void on(const HostAppeared& e, Effects& out);
  void on(const HostVanished& e, Effects& out);
  void on(const HostProbed& e, Effects& out);
  void on(const TaskDone& e, Effects& out);
  void on(const TaskFailed& e, Effects& out);
  void on(const PartsWritten& e, Effects& out);
  void on(const CheckpointsListed& e, Effects& out);
  void on(const TrainingDone& e, Effects& out);
  void on(const CheckpointNeeded& e, Effects& out);
  void on(const CopiesDoubted& e, Effects& out);
  void on(const CheckpointsGivenUp& e, Effects& out);
  void on(const NewestWanted& e, Effects& out);
  void on(const NewestChosen&, Effects&) { cleaning_ = Cleaning::kMay; }
  void on(const TimePassed&, Effects&) {}

  void go_on(Effects& out);
  void probe_hosts(Effects& out);
  void fetch_parts(Effects& out);
  void answer_needs(Effects& out);
  void find_newer(Effects& out);
  void end_finding(const std::string& fetched, Effects& out);
  void push_copies(Effects& out);
  void clean_hosts(Effects& out);

  [[nodiscard]] bool all_asked() const;
  [[nodiscard]] bool free_to_write(const Host& host) const;
  [[nodiscard]] bool ready(const Host& host) const { return now_ >= host.not_before; }
  [[nodiscard]] bool is_kept(const std::string& name) const;
  [[nodiscard]] bool is_needed_on(const std::string& host) const;
  template <class T>
  TaskId begin(const std::string& host, T effect, Effects& out) {
    effect.task = ++last_task_;
    tasks_[effect.task] = {host, effect};
    out.emplace_back(std::move(effect));
    return last_task_;
  }
  void host_is_anothers(const std::string& host, const std::string& error, Effects& out);
  void push_failed(const PushCopy& push, const TaskFailed& e, Effects& out);
  void push(const std::string& host, const std::string& name, Effects& out);
  void drop_task(TaskId task, Effects& out);
  void end_gathering(std::string error, Effects& out);
  [[nodiscard]] std::optional<std::string> next_holder(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> order_to_push(const std::string& name) const;

  std::uint32_t copies_;
  MonoTime now_{};
  TaskId last_task_ = 0;
  std::map<std::string, Host> hosts_;  // those that are there
  std::map<TaskId, Task> tasks_;
  std::optional<Gathering> gathering_;
  std::set<std::string> writers_;  // of what was gathered last
  // No copy of these counts before it was compared; with the hosts on which it was.
  std::map<std::string, std::set<std::string>> doubted_;
  std::vector<Need> needs_;
  bool knows_kept_ = false;
  // Whether it is known what training goes on from; while it is being chosen a checkpoint that was
  // stored late does not tell.
  enum class Cleaning { kNotYet, kChoosing, kMay };
  Cleaning cleaning_ = Cleaning::kNotYet;
  std::vector<std::string> kept_;                       // here, the newest last
  std::map<std::string, std::string> unfinished_;       // what it was before, of those kept
  std::map<std::string, std::set<std::string>> wrote_;  // hosts with files of it, likewise
  Age over_;  // of what was stored last, or given up since
  struct Finding {
    struct Tried {
      std::uint32_t times = 0;
      bool gone = false;  // it is not there, or damaged there
      std::string error = {};
    };
    std::string newest;                                               // here
    std::map<std::pair<std::string, std::string>, Tried> tries = {};  // by host, name
    std::optional<TaskId> task = {};
  };
  std::optional<Finding> finding_;
  std::set<std::pair<std::string, std::string>> fetch_said_;  // by host, name
};

}  // namespace antdt::ctl::copies
