// The parameter servers of a job and the workers that push to them: one group at
// a time, each with a generation.
//
//   kGathering ──all have joined──> kForming ──all servers serve it──> kServing
//       ^                              │                                  │
//       └──────── a server is lost ────┴──────────────────────────────────┘
//
// Workers come and go while the group serves; the others do not notice. Who comes
// is named to every server before it is told where they are (Admit). Who is lost is
// named as leaving; its home answers what of it is applied (Left), and only then
// may the rest be handed out again and its successor be admitted. A lost server ends
// the group: its rows were nowhere else, so all go back to one checkpoint
// (StateLost, answered by Begin). What each server is to know is one message that
// holds all of it (wire::PsServe), numbered and said again until it is heard.
//
// A server may be two processes, s0 and s2 of two servers, say: its primary and its backup
// (trainer/ps/replica/replica.h); of one without replicas, only while it is moved. Which is which
// is its view, which is journaled before it is said:
//
//   primary and backup ──either is lost──> alone ──another has joined──> joining
//          ^                                                                │
//          └──(the primary says that it is backed)──────────────────────────┘
//
// Each arrow but the last begins the next view. While one joins, its loss costs nothing;
// that of the primary, as of one that is alone, ends the group: nobody else has its rows.
// Workers hear of each change, and again and again, since one may miss it (Moved).
//
// Where the job promises less than exactly once (ServerGroupConfig::keeps_rows) only the lost
// server's rows come back from the checkpoint: those that are left begin the next group with
// what they have (keepers, PsServe::keep). What that means to the ledger is not decided here.
//
// How many servers there are can change (Resize): from a checkpoint that is the last of its
// group (OrderCut::last, PsServe::last_cut), behind which nothing is applied, so that nothing
// has to be trained again. It is cut when every server knows that it is the last; whoever
// ordered it says Resize when it is stored, or GoOn when it is given up. Servers that are to
// come join before, beside the group (Expect::added).
//
// A checkpoint is one cut over all servers (OrderCut, CutDone). It waits until the
// homes have answered for those who leave: what they answer is in the ledger at once,
// and may have been decided after the cut.
//
// A value without I/O. The job daemon owns one and journals image() when Changed is
// among the effects, before anything that follows it is sent.
// docs/parameter-servers.md tells why a record enters the model once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/wire/ps_messages.h"

namespace antdt::ctl {

namespace servers {

// ---- events
// The processes that run or are being started; replaces what was said before.
struct Expect {
  std::vector<Member> servers;  // by index; one process at least of each is needed
  std::vector<Member> workers;
  std::vector<Member> added = {};  // servers of the next size, which nobody waits for
};
struct Joined {
  Member member;
  std::string endpoint;      // of a server
  std::string key = {};      // public, by which it is known over tcp
  std::string problem = {};  // of a worker: it has heard where the servers are, and could not begin
};
struct Serving {
  Member server;
  Generation generation;
  wire::PsServing said;
};
struct Saved {
  Member server;
  Generation generation;
  wire::PsSaved said;
};
struct Gone {
  Member member;
  std::string reason;
};
// The next group goes on from this checkpoint, or from the seeded start.
struct Begin {
  std::string restore;
  std::uint64_t version = 0;  // updates that are in it
};
struct OrderCut {
  std::uint64_t number = 0;  // above all before
  bool last = false;         // of its group
};
// The last one is stored: the group is over, and the next one is of so many servers.
struct Resize {
  std::uint32_t count = 0;
};
// It is given up, and the group goes on.
struct GoOn {};
// From now on a step need not wait for so many pushes.
struct SetBackups {
  std::uint32_t count = 0;
};
// From now on updates go by this part of the job's learning rate.
struct SetRate {
  double rate = 1;
};
// A server reads its slices, and more bytes have come: all are waited for anew.
struct StateMoves {};
struct Tick {};
using Event = std::variant<Expect, Joined, Serving, Saved, Gone, Begin, OrderCut, Resize, GoOn,
                           SetBackups, SetRate, StateMoves, Tick>;

// ---- effects
struct Changed {};  // image() is another
struct SendServe {
  Member to;
  Generation generation;
  wire::PsServe serve;
  bool reads = false;  // it goes on to read serve.restore, which is to be on its host by then
};
struct SendCut {
  Member to;
  Generation generation;
  wire::PsCut cut;
};
// All servers serve the group: these are its workers, from place 0 on.
struct Formed {
  Generation generation;
  std::vector<Member> workers;
};
// Every server knows this worker; it may hear of them. Once more when it asks again.
struct Admit {
  Member worker;
};
// Nothing more of it is applied than this.
struct Left {
  wire::PsPlaces places;
};
// Its workers are to let go of it and to join again.
struct Over {
  Generation generation;
  std::vector<Member> workers;
  std::string reason;
};
// Once more, to those that have not joined since: it may have been lost.
struct OverAgain {
  Generation generation;
  std::vector<Member> workers;
};
// Everybody waits for it, and has for long.
struct Silent {
  Member member;
  std::string what;
};
// A server lost a process and goes on with the other, without a loss of anything.
struct Switched {
  std::uint32_t server = 0;
  Member lost;
  Member alone;
  bool promoted = false;  // it was the backup
};
// A server has a backup again: what it has said is there, and what it says will be.
struct Backed {
  std::uint32_t server = 0;
  Member primary;
  Member backup;
};
// These are to hear where the servers are by now.
struct Moved {
  std::vector<Member> workers;
};
// A worker cannot work with servers that serve; `last`: this has gone on for long.
struct Trouble {
  Member worker;
  std::string problem;
  bool last = false;
};
// What the servers held is gone. Answered by Begin.
struct StateLost {};
// `error` not empty: there is no such checkpoint.
struct CutDone {
  std::uint64_t number = 0;
  std::string directory;  // below the run's
  std::uint64_t version = 0;
  std::vector<wire::CheckpointFile> files;
  std::vector<Member> writers;         // of each file
  std::vector<wire::PsPlaces> places;  // of the workers that have pushed
  std::string error;
  std::optional<Member> unwritten = {};  // a server that had its slices and could not write them
};
using Effect = std::variant<Changed, SendServe, SendCut, Formed, Admit, Left, Over, OverAgain,
                            Silent, Switched, Backed, Moved, Trouble, StateLost, CutDone>;
using Effects = std::vector<Effect>;

}  // namespace servers

struct GroupServer {
  WorkerId worker;
  Attempt attempt;
  std::string endpoint;
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("worker", m.worker);
    v("attempt", m.attempt);
    v("endpoint", m.endpoint);
  }
  [[nodiscard]] Member member() const { return {worker, attempt}; }
};

// One server of the group: its processes.
struct ServerSeat {
  std::uint64_t view = 0;  // 0: a server of this job is one process
  WorkerId primary;
  std::optional<WorkerId> backup;
  std::optional<WorkerId> joining;  // to be the backup; there is none then
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("view", m.view);
    v("primary", m.primary);
    v("backup", m.backup);
    v("joining", m.joining);
  }
  [[nodiscard]] std::optional<WorkerId> other() const { return backup ? backup : joining; }
  [[nodiscard]] bool has(WorkerId worker) const { return worker == primary || worker == other(); }
};

// What survives a restart of the job daemon.
struct ServerGroupImage {
  Generation generation;
  std::uint8_t state = 0;
  bool state_lost = false;
  std::vector<GroupServer> servers;     // that have joined
  std::vector<wire::PsMember> workers;  // of the group
  std::vector<wire::PsMember> leaving;
  std::uint64_t number = 0;
  std::string restore;
  std::uint64_t version = 0;
  std::uint64_t cut = 0;                 // under way; 0: none
  std::optional<std::uint32_t> backups;  // other than the job file's
  double rate = 1;
  std::vector<wire::PsKey> keys;
  std::vector<ServerSeat> seats;  // by index; empty: from before there were any
  std::vector<wire::PsMember> keepers = {};
  std::uint32_t count = 0;  // of servers; 0: as many as the job file says
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("generation", m.generation);
    v("state", m.state);
    v("state_lost", m.state_lost);
    v("servers", m.servers);
    v("workers", m.workers);
    v("leaving", m.leaving);
    v("number", m.number);
    v("restore", m.restore);
    v("version", m.version);
    v("cut", m.cut);
    v("backups", m.backups);
    v("rate", m.rate);
    v("keys", m.keys);
    v("seats", m.seats);
    v("keepers", m.keepers);
    v("count", m.count);
  }
};

struct ServerGroupConfig {
  std::uint32_t servers = 0;  // 0: the job has none
  std::string sync = "ps-bsp";
  std::uint32_t backups = 0;
  Duration hang_after = std::chrono::seconds(120);
  std::uint32_t replicas = 1;  // processes that are one server: 1 or 2
  bool keeps_rows = false;     // who is left of a group goes on with what it has
};

class ServerGroup {
 public:
  enum class State : std::uint8_t { kGathering, kForming, kServing };

  explicit ServerGroup(ServerGroupConfig config = {})
      : config_(std::move(config)), count_(config_.servers) {}

  [[nodiscard]] servers::Effects step(const servers::Event& event, MonoTime now);
  // What members wait for comes: their patience begins anew.
  void excuse(MonoTime now) { since_ = now; }

  [[nodiscard]] ServerGroupImage image() const;
  // `at_least`: generations up to this one were used by somebody.
  void restore(const ServerGroupImage& image, Generation at_least);

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool serving() const { return state_ == State::kServing; }
  [[nodiscard]] Generation generation() const { return generation_; }
  // Nothing is applied behind the checkpoint that is under way.
  [[nodiscard]] bool closing() const { return last_cut_ != 0; }
  // Of the group that serves: those that may hear of the servers, rising.
  [[nodiscard]] std::vector<Member> workers() const;
  [[nodiscard]] bool is_admitted(Member worker) const;
  // With those that are still to hear of them.
  [[nodiscard]] std::vector<Member> present() const;
  [[nodiscard]] std::vector<std::string> endpoints() const;  // by index
  // Of their backups, by index; empty: it has none. Without replicas: no entries.
  [[nodiscard]] std::vector<std::string> other_endpoints() const;
  [[nodiscard]] std::vector<std::string> other_keys() const;
  // The server that this process is, or would be.
  [[nodiscard]] std::uint32_t seat_of(WorkerId server) const {
    return server.index % std::max(count_, 1U);
  }
  // Whether it is the process that serves as the first of the servers.
  [[nodiscard]] bool is_first(Member server) const {
    const ServerSeat* const seat = find_seat(server);
    return seat != nullptr && seat == &seats_.front() && seat->primary == server.worker;
  }
  // "primary", "backup", "alone", "joining"; "" where it has no part in the group.
  [[nodiscard]] std::string role_of(Member server) const;
  // Those that begin the next group with what they have, while one gathers.
  [[nodiscard]] std::vector<Member> keepers() const;
  // Of the newest PsServe.
  [[nodiscard]] std::uint64_t number() const { return number_; }
  // The other process of its server, if either of the two may be lost.
  [[nodiscard]] std::optional<WorkerId> other_of(Member server) const;
  [[nodiscard]] std::uint32_t backups() const { return backups_.value_or(config_.backups); }
  // Public keys of the servers, by index.
  [[nodiscard]] std::vector<std::string> server_keys() const;
  // For people: who is waited for, and for what; empty: nobody.
  [[nodiscard]] std::string waiting_for() const;

 private:
  using Effects = servers::Effects;
  void on(const servers::Expect& e, Effects& out);
  void on(const servers::Joined& e, Effects& out);
  void on(const servers::Serving& e, Effects& out);
  void on(const servers::Saved& e, Effects& out);
  void on(const servers::Gone& e, Effects& out);
  void on(const servers::Begin& e, Effects& out);
  void on(const servers::OrderCut& e, Effects& out);
  void on(const servers::Resize& e, Effects& out);
  void on(const servers::GoOn& e, Effects& out);
  void on(const servers::SetBackups& e, Effects& out);
  void on(const servers::SetRate& e, Effects& out);
  void on(const servers::StateMoves& e, Effects& out);
  void on(const servers::Tick& e, Effects& out);

  [[nodiscard]] bool is_expected(Member member) const;
  [[nodiscard]] bool may_join(Member member) const;
  [[nodiscard]] std::vector<Member> missing() const;
  void tell_of_change(Effects& out);
  void begin_if_complete(Effects& out);
  [[nodiscard]] bool may_sit(const GroupServer& server) const;
  [[nodiscard]] bool can_seat() const;
  [[nodiscard]] bool has_two_processes() const;
  void seat_servers();
  [[nodiscard]] bool seats_are_sound() const;
  [[nodiscard]] const ServerSeat* find_seat(Member server) const;
  [[nodiscard]] std::vector<GroupServer> seated() const;  // of whom something is expected
  void lose_server(Member member, const std::string& reason, Effects& out);
  void switch_seat(ServerSeat& seat, Member lost, Effects& out);
  void keep_rows();
  void forget_rows_of_lost();
  void let_join(Effects& out);
  void count_backup(const servers::Serving& e, Effects& out);
  void say_moved(Effects& out);
  [[nodiscard]] const GroupServer& process(WorkerId worker) const;
  void release_again(Effects& out);
  void name_the_silent(Effects& out);
  void tell_servers(Effects& out);
  void note_trouble(Member member, const std::string& problem, Effects& out);
  void say(const GroupServer& server, Effects& out);
  [[nodiscard]] wire::PsServe serve_for(const GroupServer& server) const;
  [[nodiscard]] bool is_to_read(const wire::PsServe& serve, Member server) const;
  [[nodiscard]] std::vector<wire::PsKey> keys_of_group() const;
  [[nodiscard]] std::vector<wire::PsKey> keys_to_tell() const;
  [[nodiscard]] std::string key_of(Member member) const;
  [[nodiscard]] wire::PsCut cut_order() const;
  void say_cut(Effects& out);
  [[nodiscard]] std::uint64_t heard_by_all() const;
  [[nodiscard]] const GroupServer* find_server(Member member) const;
  void go_on_if_heard(Effects& out);
  void over(const std::string& reason, Effects& out);
  void cut_failed(std::string error, Effects& out, std::optional<Member> unwritten = {});
  void finish_cut(Effects& out);

  struct Worker {
    std::uint64_t from_number = 0;  // known to every server that has heard this
    bool admitted = false;
    std::uint32_t troubles = 0;  // in this group
    MonoTime troubled{};         // the last time
  };
  struct Cut {
    std::uint64_t number = 0;
    std::map<Member, wire::PsSaved> saved;
    std::optional<MonoTime> said;  // none: not yet
  };

  ServerGroupConfig config_;
  std::uint32_t count_;  // of servers
  State state_ = State::kGathering;
  Generation generation_;
  std::string restore_;
  std::uint64_t version_ = 0;
  bool state_lost_ = false;  // until Begin
  bool lost_said_ = false;
  std::vector<Member> expected_servers_;
  std::vector<Member> expected_workers_;
  std::vector<Member> added_;
  std::vector<GroupServer> servers_;    // that have joined, by index
  std::vector<ServerSeat> seats_;       // of the group; empty while it gathers
  std::vector<Member> keepers_;         // of the group, or of the next one
  std::set<Member> joined_;             // workers, since the last group was over
  std::map<Member, std::string> keys_;  // of servers and workers that have joined
  std::map<Member, Worker> workers_;    // of the group
  std::vector<Member> leaving_;         // their homes have not answered
  std::uint64_t number_ = 0;            // of the newest PsServe
  std::map<Member, std::uint64_t> heard_;
  std::map<Member, MonoTime> said_;
  std::optional<Cut> cut_;
  std::uint64_t last_cut_ = 0;  // 0: none is the last
  std::optional<std::uint32_t> backups_;
  double rate_ = 1;
  std::map<Member, MonoTime> expected_since_;  // or named as silent
  MonoTime since_{};                           // something is waited for
  MonoTime released_{};                        // when it was last said that the group is over
  std::optional<MonoTime> moved_;              // workers were last told of the servers
  MonoTime now_{};
};

}  // namespace antdt::ctl
