// Requests of a worker to its parameter servers; any number of them may be outstanding.
//
//   said ──its answer──> answered ──take()──> forgotten
//   said ──(no answer for a while, and the caller waits)──> the server is asked for no rows
//   said ──(the server answers what was sent later)──> said again, unchanged, when it is due
//
// A server answers a repeated request in the same way (server.h). It takes what comes over a link
// in its order, so a request is repeated only if it cannot be in the server's queue any more: a
// server that has more to do than it can would otherwise get even more. If a server is two
// processes (replica/replica.h), then while the primary is silent an empty request is sent to the
// backup, which answers it only once it is promoted:
//
//   primary, backup ──(the backup answers)──> the backup is the server; pending requests go to it
//   primary, backup ──(a newer roster)──> the processes that it names
//
// Before a request is repeated, a newer roster is looked for, so that a backup that came later is
// known when it is needed.
//
// For one generation of the group. A value without I/O: time passes only while the caller waits
// (WaitGoesOn), which it must do by next_due(). Nothing is durable here.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/result.h"
#include "core/wire/envelope.h"
#include "core/wire/servers/ps_messages.h"

namespace antdt::ps {

namespace requests {

using LinkId = std::uint64_t;  // unique among all links that there ever were
using Ask = std::variant<wire::PsOpen, wire::PsPut, wire::PsPull, wire::PsPush, wire::PsCommit,
                         wire::PsIdle, wire::PsStepPull, wire::PsStepPush>;
struct UnreadableReply {
  Error error;
};
using Reply = std::variant<UnreadableReply, wire::PsOpened, wire::PsPulled, wire::PsStaged,
                           wire::PsIdled, wire::Done, wire::Refused, wire::PsDecided>;

// ---- inputs
struct ReplyHeard {
  LinkId link = 0;
  std::uint64_t seq = 0;
  Reply reply;
};
// The caller waits for servers. Answered by LookForRoster, before any repetition.
struct WaitGoesOn {};
// The roster that was found; empty: there is no newer one.
struct RosterLooked {
  std::optional<wire::PsRoster> newer;
};
// This host cannot reach a server.
struct ReachFailed {
  std::uint32_t server = 0;
  std::string why;
};
using Input = std::variant<ReplyHeard, WaitGoesOn, RosterLooked, ReachFailed>;

// ---- effects
struct OpenRequestLink {
  LinkId link = 0;
  std::string endpoint;
  std::string key;  // over tcp
};
struct CloseRequestLink {
  LinkId link = 0;
};
// If there is no room, it counts as lost and is sent again.
struct SendRequest {
  LinkId link = 0;
  std::uint64_t seq = 0;
  std::shared_ptr<const Ask> ask;
};
// -> RosterLooked
struct LookForRoster {
  std::uint64_t than = 0;  // look for a roster with a higher number
};
// Find out whether a connection over tcp can be made. -> ReachFailed, if not
struct CheckReach {
  std::uint32_t server = 0;
  std::string endpoint;
};
using Effect =
    std::variant<OpenRequestLink, CloseRequestLink, SendRequest, LookForRoster, CheckReach>;
using Effects = std::vector<Effect>;

struct Start {
  wire::PsRoster roster;
  Duration give_up{};  // kUnreachable if a request is not answered for this long; 0: never
  // The interval after which an unanswered request is followed by an empty one, or sent again.
  Duration again = std::chrono::seconds(2);
  // kUnreachable if a server that was never heard accepts no connection for this long, since it was
  // asked and since it was named.
  Duration reach = std::chrono::seconds(10);
};

}  // namespace requests

class Requests {
 public:
  using Id = std::uint64_t;
  // A request to a server of two processes is looked after earlier: first after this time, then
  // after twice as long each time, up to Start::again.
  static constexpr Duration kAgainOfTwo = std::chrono::milliseconds(250);

  explicit Requests(requests::Start start);

  // Adds the links with which it begins.
  void begin(requests::Effects& out);
  // Appends to `out`. The input is passed by value, because replies are large.
  void step(requests::Input input, MonoTime now, requests::Effects& out);

  Id say(std::uint32_t server, requests::Ask ask, MonoTime now, requests::Effects& out);
  [[nodiscard]] bool answered(Id id) const;
  // Takes the reply to a request, which is then forgotten. A refusal is an error: kAborted if the
  // server says that the group is over, kPeerIo if it cannot read the checkpoint just now, kCorrupt
  // if that is damaged or does not fit, else kRefused; so is an answer that makes no sense.
  template <class Reply>
  [[nodiscard]] Result<Reply> take(Id id) {
    ANTDT_TRY(requests::Reply reply, take_reply(id));
    if (auto* wanted = std::get_if<Reply>(&reply)) return std::move(*wanted);
    return fail(ErrorKind::kRefused, "a parameter server answered something else than was asked");
  }
  // The answer is not needed any more.
  void forget(Id id) { under_way_.erase(id); }

  // How many requests have been answered so far.
  [[nodiscard]] std::uint64_t answers() const { return answers_; }
  [[nodiscard]] bool waits_for_any() const;
  // When the next request must be repeated, or given up.
  [[nodiscard]] MonoTime next_due() const;
  // Why no server can be used any more.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }
  // The least round-trip time since the last call, among requests that the server did not delay, so
  // that it is the time of the link.
  [[nodiscard]] std::optional<Duration> take_hop() { return std::exchange(hop_, std::nullopt); }
  [[nodiscard]] std::size_t servers() const { return servers_.size(); }
  // In the order in which they must be read: of each server the backup first, because once it
  // answers, the other process does not count any more.
  [[nodiscard]] std::vector<requests::LinkId> links() const;

 private:
  // One process. Over tcp the next one of that host may listen at the same end point, with a key of
  // its own.
  struct Address {
    std::string endpoint;
    std::string key;
    bool operator==(const Address&) const = default;
  };
  struct Server {
    Address at;
    MonoTime since{};  // when it was named in place of another
    requests::LinkId link = 0;
    bool heard = false;  // whether it has answered anything
    Address other_at;
    requests::LinkId other = 0;  // link to its backup; 0: it has none
  };
  struct UnderWay {
    std::uint32_t server = 0;
    std::shared_ptr<const requests::Ask> ask;  // kept until it is answered
    MonoTime begun;
    MonoTime again;
    Duration pause{};      // pause before `again`
    Id sent = 0;           // its place among all that was sent
    bool asked = false;    // the server was asked for nothing behind it
    bool missing = false;  // it is not on its way to the server
    std::optional<requests::Reply> answer;
  };

  void on(requests::ReplyHeard& input, MonoTime now, requests::Effects& out);
  void on(const requests::WaitGoesOn& input, MonoTime now, requests::Effects& out);
  void on(const requests::RosterLooked& input, MonoTime now, requests::Effects& out);
  void on(const requests::ReachFailed& input, MonoTime now, requests::Effects& out);

  // How long the server may be silent the first time.
  [[nodiscard]] Duration patience_with(const Server& server) const;
  void move_to_other(std::uint32_t server, MonoTime now, requests::Effects& out);
  void replace_server(std::uint32_t server, Address at, MonoTime now, requests::Effects& out);
  void replace_other(std::uint32_t server, Address at, MonoTime now, requests::Effects& out);
  requests::LinkId open_link(const Address& at, requests::Effects& out);
  void say_again_now(std::uint32_t server, MonoTime now);
  void say_what_is_due(MonoTime now, requests::Effects& out);
  void ask_for_nothing(requests::LinkId link, Id id, requests::Effects& out);
  void note_order(std::uint32_t server, Id answered, MonoTime now);
  [[nodiscard]] MonoTime given_up_at(const UnderWay& request) const;
  [[nodiscard]] Result<requests::Reply> take_reply(Id id);
  void check_invariants() const;

  requests::Start start_;
  std::vector<Server> servers_;  // by index
  std::uint64_t number_;         // number of the roster that this is from
  requests::LinkId last_link_ = 0;
  Id seq_ = 0;
  std::map<Id, UnderWay> under_way_;
  std::uint64_t answers_ = 0;
  std::optional<Duration> hop_;
  std::optional<Error> failure_;
};

}  // namespace antdt::ps
