// One of the two processes that a parameter server is: the primary takes events and
// copies them to the backup, which has the same state and says nothing.
//
//   kPrimary ──(view: alone)──> kAlone        the backup is lost
//   kBackup  ──(view: alone)──> kAlone        the primary is lost: promoted
//   kAlone   ──(view: joined)──> kAlone, sends its state and what follows ──> kPrimary
//   kJoining ──the state has come──> kBackup
//
// Each event that changes the server has a number. The primary holds its answers to an event
// until the backup has acknowledged that number, so nobody hears of anything that the backup
// lacks. Pulls are not copied; their answers are held until the events before them are
// acknowledged. The job daemon alone says which process has which role, in views with rising
// numbers. Messages of an earlier view change nothing, so a primary that was replaced has no
// effect any more, even before it hears of that.
//
// A process that joins gets an image of the state after some event (state_copy.h), then the
// events that follow; nobody waits for it meanwhile. When every event has been sent to it, the
// primary begins to hold its answers, and when everything it answered before is acknowledged
// the primary is backed(): from then on the job daemon may promote the other process.
//
// A value, like the ServerNode inside it. docs/parameter-servers.md says why a record enters the
// model once.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "trainer/ps/replica/state_sender.h"
#include "trainer/ps/server_node.h"

namespace antdt::ps {

namespace replica {

enum class Role { kPrimary, kBackup, kAlone, kJoining };

// ---- events, beside those of the node, and PsImage from the primary
// From the primary: an event of its node, numbered from 1 in the whole life of the two.
struct Copied {
  std::uint64_t view = 0;
  std::uint64_t number = 0;
  node::Event event;
};
// From the backup: it has taken the events up to `number`, or only pieces of an image.
using Taken = wire::PsTaken;
// From the job daemon: this one has no other any more.
struct Alone {
  std::uint64_t view = 0;
};
// From the job daemon: this one has no other but one that joins.
struct Join {
  std::uint64_t view = 0;
};
// From the shell: the next piece of that image, or why there is none.
struct Made {
  std::uint64_t image = 0;
  StatePiece piece;
  std::string error;
};
using Event = std::variant<node::Event, Copied, Taken, Alone, Join, Made, wire::PsImage>;

// ---- effects, beside those of the node: Copied and PsImage to the other one, Taken to the
// primary.
// Of its node's a backup says Restore, and Decided: whoever keeps accounts hears of each
// decision from the one or the other, or from both.
// Its slices could not be read, those of the primary could; or what came of its state is
// none: it is no backup.
struct Broken {
  std::string error;
};
// The shell keeps the node as it is now, in place of what it has kept before, and makes the
// pieces of its state one by one, when it is told to.
struct KeepState {
  std::uint64_t image = 0;
};
struct MakePiece {
  std::uint64_t image = 0;  // answered by Made
};
// What was kept is of no use any more.
struct DropState {};
using Effect = std::variant<node::Effect, Copied, Taken, Broken, KeepState, MakePiece, DropState,
                            wire::PsImage>;
using Effects = std::vector<Effect>;

}  // namespace replica

class Replica {
 public:
  // Events, of which the other one has not acknowledged more than this are on their way.
  static constexpr std::uint64_t kAhead = 1024;
  // Bytes of events that wait for one that joins, or as many as the rows have if these are
  // more: it gets another image then, and not what is older than that.
  static constexpr std::uint64_t kMostBehind = 256ULL << 20;

  Replica(node::Start start, replica::Role role, std::uint64_t view = 1,
          std::uint64_t most_behind = kMostBehind)
      : start_(std::move(start)),
        node_(start_),
        role_(role),
        view_(view),
        most_behind_(most_behind) {}

  [[nodiscard]] replica::Effects step(const replica::Event& event);

  [[nodiscard]] replica::Role role() const { return role_; }
  [[nodiscard]] std::uint64_t view() const { return view_; }
  // Whether workers and other servers hear it.
  [[nodiscard]] bool speaks() const {
    return role_ == replica::Role::kPrimary || role_ == replica::Role::kAlone;
  }
  // The other one has all that was ever heard of this one.
  [[nodiscard]] bool backed() const {
    return role_ == replica::Role::kPrimary && acknowledged_ >= held_from_;
  }
  [[nodiscard]] const ServerNode& node() const { return node_; }
  [[nodiscard]] ServerNode& node() { return node_; }

 private:
  struct Held {
    std::uint64_t after = 0;  // this event is to be acknowledged first
    node::Effect effect;
  };

  void on(const node::Event& event);
  void on(const replica::Copied& event);
  void on(const replica::Taken& event);
  void on(const replica::Alone& event);
  void on(const replica::Join& event);
  void on(const replica::Made& event);
  void on(const wire::PsImage& event);
  void take(const node::Event& event);
  void copy(const node::Event& event);
  void say(node::Effect effect);
  void let_go();
  void tick();
  [[nodiscard]] bool copies() const { return joining_ || role_ == replica::Role::kPrimary; }
  void become_alone(std::uint64_t view);
  void finish_what_the_primary_began();
  void send_image();
  void ask_for_piece();
  void acknowledge(std::uint64_t number);
  void send_copies();
  void hold_if_all_is_sent();
  void break_up(std::string error);

  node::Start start_;
  ServerNode node_;
  replica::Role role_;
  std::uint64_t view_;
  std::uint64_t most_behind_;
  std::uint64_t taken_ = 0;  // events that changed this node
  std::uint64_t acknowledged_ = 0;
  std::uint64_t acknowledged_before_ = 0;  // at the last tick
  std::uint64_t sent_ = 0;                 // newest event that was copied
  std::deque<replica::Copied> copied_;     // not acknowledged yet; numbers in a row
  std::uint64_t behind_ = 0;               // bytes of these
  std::deque<Held> held_;
  bool joining_ = false;               // the other one is; this one speaks and waits for nobody
  std::optional<StateSender> sender_;  // while it has not all of the image
  std::uint64_t images_ = 0;           // made in this process
  bool no_image_ = false;              // the newest could not be made
  std::uint64_t held_from_ = 0;        // behind this event nothing was said too early
  // Of one that joins.
  std::optional<StateReader> reader_;
  std::uint64_t image_ = 0;
  std::uint64_t pieces_ = 0;            // of it, that are here
  std::optional<node::Restored> read_;  // what the backup's own slices said
  bool broken_ = false;
  replica::Effects effects_;  // of this step
};

}  // namespace antdt::ps
