// One of the two processes of a parameter server. The primary takes events and copies them to the
// backup, which has the same state and answers nobody.
//
//   primary ──(view: alone)──> alone        the backup is lost
//   backup  ──(view: alone)──> alone        the primary is lost: promoted
//   alone   ──(view: another one joins)──> sending, its state and what follows
//   sending ──(the other one has the image, and lacks few events)──> primary
//   joining ──(the state has come)──> backup
//   joining, backup ──(its slices or the state cannot be read)──> broken
//
// Each event that changes the server has a number. The primary holds its answers to an event until
// the backup has acknowledged that number, so nobody hears anything that the backup lacks. Pulls
// are not copied; their answers are held until the events before them are acknowledged. Only the
// job daemon decides which process has which role, in views with rising numbers. Messages of an
// earlier view change nothing, so a primary that was replaced has no effect any more, even before
// it hears of that.
//
// Links keep the order of messages. If nothing is acknowledged for a while, the primary asks the
// other process how far it is, and sends again what is missing in the answer. One that stands still
// does not answer, so what waits for it is bounded, however often workers repeat their requests.
//
// A process that joins gets an image of the state after some event (state_copy.h), then the events
// that follow; nobody waits for it meanwhile. Only the two that a group begins with read the
// group's checkpoint; an image is not begun before its rows are in the primary. When it has the
// image and lacks few events, the primary begins to hold its answers, which slows the workers down
// to what the link between the two carries. When everything that it answered before is
// acknowledged, the primary is backed(): from then on the job daemon may promote the other process.
//
// The two processes have no clock but the shell's ticks, and nothing in them is durable: the views
// are, in the job daemon's journal.
//
// A value, like the ServerNode in it. docs/parameter-servers.md explains why a record enters the
// model once.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "trainer/ps/replica/state_sender.h"
#include "trainer/ps/server_node.h"

namespace antdt::ps {

namespace replica {

using Role = wire::ReplicaRole;

// ---- inputs, besides those of the node, and PsImage from the primary. EventCopied, from the
// primary: an input of its node, numbered from 1 over the whole life of the pair. With number 0
// nothing has happened; the primary asks how far the other process is.
struct EventCopied {
  std::uint64_t view = 0;
  std::uint64_t number = 0;
  node::Input input;
};
// From the backup: it has taken the events up to `number`, or only pieces of an image.
using CopiesTaken = wire::PsTaken;
// From the job daemon: the other process is gone.
struct BecameAlone {
  std::uint64_t view = 0;
};
// From the job daemon: a new process joins as the other one.
struct BackupJoined {
  std::uint64_t view = 0;
};
// From the shell: the next piece of that image, or why there is none.
struct PieceMade {
  std::uint64_t image = 0;
  StatePiece piece;
  std::string error;
};
using Input = std::variant<node::Input, EventCopied, CopiesTaken, BecameAlone, BackupJoined,
                           PieceMade, wire::PsImage>;

// ---- effects, besides those of the node: EventCopied and PsImage to the other process,
// CopiesTaken to the primary. Of its node's effects a backup passes on only ReadSlices and
// RecordDecision, so a listener hears each decision from the primary, the backup, or both. BreakUp:
// the slices, which the primary could read, could not be read here, or the received state was
// invalid; the process cannot be a backup.
struct BreakUp {
  std::string error;
  bool unread = false;  // the slices could not be read because of the disk
};
// The shell keeps the present node, replacing what it kept before, and makes the pieces of its
// state one by one when it is told to.
struct KeepState {
  std::uint64_t image = 0;
};
struct MakePiece {
  std::uint64_t image = 0;  // answered by PieceMade
};
// What was kept is not needed any more.
struct DropState {};
using Effect = std::variant<node::Effect, EventCopied, CopiesTaken, BreakUp, KeepState, MakePiece,
                            DropState, wire::PsImage>;
using Effects = std::vector<Effect>;

}  // namespace replica

class Replica {
 public:
  // How many events may be sent and unacknowledged by the other process. One that joins and lacks
  // no more is waited for.
  static constexpr std::uint64_t kAhead = 1024;
  // While the events that were sent and not acknowledged have this many bytes, none is sent.
  static constexpr std::uint64_t kMostUnderWay = 64ULL << 20;
  // How many bytes of events may wait for a process that joins; or as many as the rows have, if
  // that is more. Beyond that it gets a new image instead, or is waited for if it has the image.
  static constexpr std::uint64_t kMostBehind = 256ULL << 20;

  Replica(node::Start start, replica::Role role, std::uint64_t view = 1,
          std::uint64_t most_behind = kMostBehind)
      : start_(std::move(start)),
        node_(start_),
        state_(state_in(role)),
        view_(view),
        most_behind_(most_behind) {}

  // Appends to `out`.
  void step(const replica::Input& input, replica::Effects& out);

  // The role as the job daemon knows it: a process that sends its state counts as alone, a broken
  // one as a backup.
  [[nodiscard]] replica::Role role() const;
  [[nodiscard]] std::uint64_t view() const { return view_; }
  // Whether workers and other servers hear this process.
  [[nodiscard]] bool speaks() const { return state_ == State::kPrimary || is_alone(); }
  // Whether the other process has everything that was ever answered by this one.
  [[nodiscard]] bool backed() const {
    return state_ == State::kPrimary && acknowledged_ >= held_from_;
  }
  // Whether the other process lacks something that this one has taken, so that nobody may hear it.
  [[nodiscard]] bool is_ahead() const {
    return state_ == State::kPrimary && acknowledged_ < taken_;
  }
  [[nodiscard]] const ServerNode& node() const { return node_; }
  [[nodiscard]] ServerNode& node() { return node_; }

 private:
  enum class State : std::uint8_t { kPrimary, kBackup, kAlone, kSending, kJoining, kBroken };
  struct Held {
    std::uint64_t after = 0;  // this event must be acknowledged first
    node::Effect effect;
  };

  void on(const node::Input& input);
  void on(const replica::EventCopied& input);
  void on(const replica::CopiesTaken& input);
  void on(const replica::BecameAlone& input);
  void on(const replica::BackupJoined& input);
  void on(const replica::PieceMade& input);
  void on(const wire::PsImage& input);
  void take(const node::Input& input);
  void copy(const node::Input& input);
  void say(node::Effect effect);
  [[nodiscard]] bool answer_is_held(const node::Input& input) const;
  void let_go();
  void tick();
  [[nodiscard]] static State state_in(replica::Role role);
  [[nodiscard]] bool is_alone() const {
    return state_ == State::kAlone || state_ == State::kSending;
  }
  [[nodiscard]] bool copies() const {
    return state_ == State::kSending || state_ == State::kPrimary;
  }
  void become_alone(std::uint64_t view);
  void finish_what_the_primary_began();
  void begin_due_image();
  void send_image();
  void ask_for_piece();
  void acknowledge(std::uint64_t number);
  void send_copies();
  void send_again();
  void forget_copies();
  void hold();
  void break_up(std::string error, bool unread = false);
  void check_invariants() const;

  node::Start start_;
  ServerNode node_;
  State state_;
  std::uint64_t view_;
  std::uint64_t most_behind_;
  std::uint64_t taken_ = 0;  // number of events that changed this node
  std::uint64_t acknowledged_ = 0;
  std::uint64_t acknowledged_before_ = 0;       // its value at the last tick
  std::uint64_t sent_ = 0;                      // the newest event that was copied
  std::deque<replica::EventCopied> copied_;     // not acknowledged yet; consecutive numbers
  std::uint64_t behind_ = 0;                    // bytes of these
  std::optional<std::uint64_t> behind_before_;  // its value at the last tick, once all is taken
  std::uint64_t under_way_ = 0;                 // bytes of those of these that were sent
  std::uint64_t asked_behind_ = 0;  // the event behind which the other process was asked; 0: none
  std::deque<Held> held_;
  std::set<std::pair<std::string, std::uint64_t>> held_answers_;  // of these, to which requests
  std::optional<StateSender> sender_;  // set until the whole image has been acknowledged
  std::uint64_t images_ = 0;           // how many were made in this process
  bool image_is_due_ = false;          // the process that joins waits for one to begin
  std::uint64_t held_from_ = 0;        // all answers to events after this one were held
  // For a process that joins.
  std::optional<StateReader> reader_;
  std::uint64_t image_ = 0;
  std::uint64_t pieces_ = 0;              // pieces of it that have arrived
  std::optional<node::SlicesRead> read_;  // the result of reading the backup's own slices
  replica::Effects effects_;              // effects of the present step
  node::Effects node_wants_;              // of the node, likewise; kept for its memory
};

}  // namespace antdt::ps
