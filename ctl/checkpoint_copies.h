// Where the checkpoints of a run lie, when its hosts do not share the run directory: which
// files are fetched to the launching host, which copies other hosts get, and what goes again.
// A value: no I/O, no clock. Nothing of it is durable: hosts say what they have when they come.
//
// Of a host:
//                HostUp                Probed: another directory
//   (away) ────────────────> probing ──────────────────────────────> apart ── its copies count
//     ^                        │ Probed: the same directory
//     │ HostLost               └───────────────────────────────────> shares ── has all there is
//     └─ of each of them
//
// Of a checkpoint:
//   Written on hosts apart ──> gathering (its files are fetched; goes on where it broke off)
//      ──> Gathered: whoever asked stores it on the launching host
//      ──> Kept ──> pushed to further hosts, the writers' first, until `copies` have it
//      ──> not kept any more ──> removed everywhere
// A gathering whose host is lost, or does not have the files any more, has failed; what fails
// otherwise is tried again, with growing pauses.
//
// A task is one connection to one host that does one thing. At most one writes on a host.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/wire/messages.h"

namespace antdt::ctl::copies {

using TaskId = std::uint64_t;

// Files of an unfinished checkpoint, and the host on which they were written.
struct Part {
  std::string host;
  std::vector<wire::CheckpointFile> files;
};

namespace in {
struct HostUp {
  std::string host;
};
struct HostLost {
  std::string host;
};
// What a probe found. `whole`: names of whole checkpoints there.
struct Probed {
  TaskId task = 0;
  bool shares = false;  // with the launching host
  std::vector<std::string> whole = {};
};
struct Done {
  TaskId task = 0;
};
// `gone`: what was asked for is not there, or not what was said, and will not be.
struct Failed {
  TaskId task = 0;
  std::string error;
  bool gone = false;
};
// An unfinished checkpoint lies in `unfinished` (a name in checkpoints/) of these hosts.
// Answered by Gathered. A later one takes its place.
struct Written {
  std::uint64_t number = 0;
  std::string unfinished;
  std::vector<Part> parts;
};
// The launching host has these checkpoints, the newest last. `stored`: it has become one now,
// and was `unfinished` before.
struct Kept {
  std::vector<std::string> names;
  std::string stored = {};
  std::string unfinished = {};
};
// Somebody on `host` is about to read the checkpoint. Answered by Reached.
struct Needed {
  std::uint64_t number = 0;
  std::string host;
  std::string name;
};
// Before training goes on from the newest checkpoint: is there a newer whole one elsewhere?
// `newest`: that of the launching host that is whole; "": it has none. Answered by Found.
struct Find {
  std::string newest;
};
struct Tick {};
}  // namespace in
using Input = std::variant<in::HostUp, in::HostLost, in::Probed, in::Done, in::Failed, in::Written,
                           in::Kept, in::Needed, in::Find, in::Tick>;

namespace out {
struct Probe {  // answered by Probed
  TaskId task = 0;
  std::string host;
};
struct Fetch {  // these files of an unfinished checkpoint, into one of the same name here
  TaskId task = 0;
  std::string unfinished;
  Part part;
};
struct Push {  // a checkpoint of this host, by way of `unfinished`
  TaskId task = 0;
  std::string host;
  std::string name;
  std::string unfinished;
};
// Removes all checkpoints but these, and what is unfinished with a number up to `before`.
struct Clean {
  TaskId task = 0;
  std::string host;
  std::vector<std::string> keep;
  std::uint64_t before = 0;
};
struct FetchBack {  // a whole checkpoint that this host has not
  TaskId task = 0;
  std::string host;
  std::string name;
};
struct Cancel {  // nobody waits for that task any more
  TaskId task = 0;
};
struct Gathered {
  std::uint64_t number = 0;
  std::string error;
};
struct Reached {
  std::uint64_t number = 0;
  std::string error;
};
struct Found {  // `fetched`: the launching host has one more
  bool fetched = false;
};
struct Note {
  std::string kind;
  std::string text;
};
}  // namespace out
using Effect = std::variant<out::Probe, out::Fetch, out::Push, out::Clean, out::FetchBack,
                            out::Cancel, out::Gathered, out::Reached, out::Found, out::Note>;
using Effects = std::vector<Effect>;

// "s0000000012-l1-g2-w0.1" -> (1, 12); later checkpoints are greater.
[[nodiscard]] std::optional<std::pair<std::uint64_t, std::uint64_t>> order_of(
    const std::string& name);
// ".tmp-12-w0.1" -> 12.
[[nodiscard]] std::optional<std::uint64_t> number_of(const std::string& unfinished);

class CheckpointCopies {
 public:
  // `copies`: on how many hosts each checkpoint is to be, the launching one with them.
  explicit CheckpointCopies(std::uint32_t copies) : copies_(copies) {}

  void step(const Input& input, MonoTime now, Effects& out);

  // Whether some host has a run directory of its own.
  [[nodiscard]] bool any_apart() const;
  [[nodiscard]] bool shares(const std::string& host) const;
  // Nothing is under way, or waits for a pause to be over, that is still wanted.
  [[nodiscard]] bool idle() const;
  // How many hosts have it, the launching one with them.
  [[nodiscard]] std::uint32_t copies_of(const std::string& name) const;
  // What must hold between two steps; an empty text: it does.
  [[nodiscard]] std::string broken_invariant() const;

  static constexpr Duration kFirstPause = std::chrono::milliseconds(500);
  static constexpr Duration kLongestPause = std::chrono::seconds(15);

 private:
  enum class Place { kProbing, kShares, kApart };
  struct Host {
    Place place = Place::kProbing;
    std::set<std::string> whole = {};
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
  struct Gathering {
    std::uint64_t number = 0;
    std::string unfinished;
    std::vector<Part> waiting;  // parts that no task fetches now
    std::vector<TaskId> tasks;
  };

  void on(const in::HostUp& e, Effects& out);
  void on(const in::HostLost& e, Effects& out);
  void on(const in::Probed& e, Effects& out);
  void on(const in::Done& e, Effects& out);
  void on(const in::Failed& e, Effects& out);
  void on(const in::Written& e, Effects& out);
  void on(const in::Kept& e, Effects& out);
  void on(const in::Needed& e, Effects& out);
  void on(const in::Find& e, Effects& out);
  void on(const in::Tick&, Effects&) {}

  void go_on(Effects& out);
  void probe_hosts(Effects& out);
  void fetch_parts(Effects& out);
  void answer_needs(Effects& out);
  void find_newer(Effects& out);
  void push_copies(Effects& out);
  void clean_hosts(Effects& out);

  [[nodiscard]] bool free_to_write(const Host& host) const;
  [[nodiscard]] bool ready(const Host& host) const { return now_ >= host.not_before; }
  [[nodiscard]] bool is_kept(const std::string& name) const;
  [[nodiscard]] bool is_needed_on(const std::string& host) const;
  template <class T>
  TaskId begin(const std::string& host, T effect, Effects& out);
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
  std::vector<in::Needed> needs_;
  std::vector<std::string> kept_;                       // here, the newest last
  std::map<std::string, std::string> unfinished_;       // what it was before, of those kept
  std::map<std::string, std::set<std::string>> wrote_;  // hosts with files of it, likewise
  std::uint64_t before_ = 0;                            // what is unfinished up to it may go
  struct Finding {
    std::string newest;                                        // here
    std::set<std::pair<std::string, std::string>> tried = {};  // host, name
    std::optional<TaskId> task = {};
  };
  std::optional<Finding> finding_;
};

}  // namespace antdt::ctl::copies
