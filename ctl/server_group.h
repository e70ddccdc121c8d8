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
// A checkpoint is one cut over all servers (OrderCut, CutDone). It waits until the
// homes have answered for those who leave: what they answer is in the ledger at once,
// and may have been decided after the cut.
//
// A value without I/O. The job daemon owns one and journals image() when Changed is
// among the effects, before anything that follows it is sent.
// docs/parameter-servers.md tells why a record enters the model once.
#pragma once

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
  std::vector<Member> servers;  // by index; all of them are needed
  std::vector<Member> workers;
};
struct Joined {
  Member member;
  std::string endpoint;  // of a server
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
};
struct Tick {};
using Event = std::variant<Expect, Joined, Serving, Saved, Gone, Begin, OrderCut, Tick>;

// ---- effects
struct Changed {};  // image() is another
struct SendServe {
  Member to;
  Generation generation;
  wire::PsServe serve;
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
// What the servers held is gone. Answered by Begin.
struct StateLost {};
// `error` not empty: there is no such checkpoint.
struct CutDone {
  std::uint64_t number = 0;
  std::string directory;  // below the run's
  std::uint64_t version = 0;
  std::vector<wire::CheckpointFile> files;
  std::vector<wire::PsPlaces> places;  // of the workers that have pushed
  std::string error;
};
using Effect = std::variant<Changed, SendServe, SendCut, Formed, Admit, Left, Over, OverAgain,
                            Silent, StateLost, CutDone>;
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
  std::uint64_t cut = 0;  // under way; 0: none
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
  }
};

struct ServerGroupConfig {
  std::uint32_t servers = 0;  // 0: the job has none
  std::string sync = "ps-bsp";
  std::uint32_t backups = 0;
  Duration hang_after = std::chrono::seconds(120);
};

class ServerGroup {
 public:
  enum class State : std::uint8_t { kGathering, kForming, kServing };

  explicit ServerGroup(ServerGroupConfig config = {}) : config_(std::move(config)) {}

  [[nodiscard]] servers::Effects step(const servers::Event& event, MonoTime now);

  [[nodiscard]] ServerGroupImage image() const;
  // `at_least`: generations up to this one were used by somebody.
  void restore(const ServerGroupImage& image, Generation at_least);

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool serving() const { return state_ == State::kServing; }
  [[nodiscard]] Generation generation() const { return generation_; }
  // Of the group that serves: those that may hear of the servers, rising.
  [[nodiscard]] std::vector<Member> workers() const;
  [[nodiscard]] bool is_admitted(Member worker) const;
  // With those that are still to hear of them.
  [[nodiscard]] std::vector<Member> present() const;
  [[nodiscard]] std::vector<std::string> endpoints() const;  // by index
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
  void on(const servers::Tick& e, Effects& out);

  [[nodiscard]] bool is_expected(Member member) const;
  [[nodiscard]] std::vector<Member> missing() const;
  void begin_if_complete(Effects& out);
  void release_again(Effects& out);
  void name_the_silent(Effects& out);
  void tell_servers(Effects& out);
  void say(const GroupServer& server, Effects& out);
  [[nodiscard]] wire::PsServe serve_for(const GroupServer& server) const;
  [[nodiscard]] wire::PsCut cut_order() const;
  void say_cut(Effects& out);
  [[nodiscard]] std::uint64_t heard_by_all() const;
  [[nodiscard]] const GroupServer* find_server(Member member) const;
  void go_on_if_heard(Effects& out);
  void over(const std::string& reason, Effects& out);
  void cut_failed(std::string error, Effects& out);
  void finish_cut(Effects& out);

  struct Worker {
    std::uint64_t from_number = 0;  // known to every server that has heard this
    bool admitted = false;
  };
  struct Cut {
    std::uint64_t number = 0;
    std::map<Member, wire::PsSaved> saved;
    std::optional<MonoTime> said;  // none: not yet
  };

  ServerGroupConfig config_;
  State state_ = State::kGathering;
  Generation generation_;
  std::string restore_;
  std::uint64_t version_ = 0;
  bool state_lost_ = false;  // until Begin
  bool lost_said_ = false;
  std::vector<Member> expected_servers_;
  std::vector<Member> expected_workers_;
  std::vector<GroupServer> servers_;  // that have joined, by index
  std::set<Member> joined_;           // workers, since the last group was over
  std::map<Member, Worker> workers_;  // of the group
  std::vector<Member> leaving_;       // their homes have not answered
  std::uint64_t number_ = 0;          // of the newest PsServe
  std::map<Member, std::uint64_t> heard_;
  std::map<Member, MonoTime> said_;
  std::optional<Cut> cut_;
  std::map<Member, MonoTime> expected_since_;  // or named as silent
  MonoTime since_{};                           // something is waited for
  MonoTime released_{};                        // when it was last said that the group is over
  MonoTime now_{};
};

}  // namespace antdt::ctl
