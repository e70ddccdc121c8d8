// Requests of a worker to its parameter servers, any number of them under way.
//
//   said ──its answer──> answered ──take()──> forgotten
//   said ──(no answer for a while, and somebody waits)──> said again, unchanged
//
// Servers answer what is said again as before (server.h). Where a server is two processes
// (replica/replica.h), the backup is asked for nothing when the primary is silent, and answers that
// only once it is promoted:
//
//   primary, backup ──(the backup answers)──> the backup is the server; what waits is said to it
//   primary, backup ──(a newer roster)──> the processes that it names
//
// A newer roster is looked for before a server is said anything again, so that a backup that came
// later is known when it is needed.
//
// For one generation of the group. A value without I/O: time passes while the caller waits
// (WaitGoesOn), at the latest at next_due(). Nothing is durable here.
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
#include "core/wire/ps_messages.h"

namespace antdt::ps {

namespace requests {

using LinkId = std::uint64_t;  // of all that there ever were
using Ask = std::variant<wire::PsOpen, wire::PsPut, wire::PsPull, wire::PsPush, wire::PsCommit,
                         wire::PsIdle>;
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
// The caller waits for servers. Answered by LookForRoster, which comes first.
struct WaitGoesOn {};
// What was found; none: there is no newer one.
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
// Without room it counts as lost, and is said again.
struct SendRequest {
  LinkId link = 0;
  std::uint64_t seq = 0;
  std::shared_ptr<const Ask> ask;
};
// -> RosterLooked
struct LookForRoster {
  std::uint64_t than = 0;  // its number
};
// Whether a connection over tcp can be made. -> ReachFailed, if not
struct CheckReach {
  std::uint32_t server = 0;
  std::string endpoint;
};
using Effect =
    std::variant<OpenRequestLink, CloseRequestLink, SendRequest, LookForRoster, CheckReach>;
using Effects = std::vector<Effect>;

struct Start {
  wire::PsRoster roster;
  Duration give_up{};  // kUnreachable when a request is not answered for so long; 0: never
  Duration again = std::chrono::seconds(2);  // when what was not answered is said again
  // kUnreachable when a server that was never heard takes no connection for so long.
  Duration reach = std::chrono::seconds(10);
};

}  // namespace requests

class Requests {
 public:
  using Id = std::uint64_t;
  // A server of two processes is said again sooner: the first time after this, then after twice as
  // long each time, up to Start::again.
  static constexpr Duration kAgainOfTwo = std::chrono::milliseconds(250);

  explicit Requests(requests::Start start);

  // The links that it begins with.
  void begin(requests::Effects& out);
  // Appends to `out`. By value: replies are large.
  void step(requests::Input input, MonoTime now, requests::Effects& out);

  Id say(std::uint32_t server, requests::Ask ask, MonoTime now, requests::Effects& out);
  [[nodiscard]] bool answered(Id id) const;
  // Of a request that is answered; it is forgotten. A refusal is an error: kAborted where the
  // server says that the group is over, else kRefused.
  template <class Reply>
  [[nodiscard]] Result<Reply> take(Id id) {
    ANTDT_TRY(requests::Reply reply, take_reply(id));
    if (auto* wanted = std::get_if<Reply>(&reply)) return std::move(*wanted);
    return fail(ErrorKind::kCorrupt, "a parameter server answered something else than was asked");
  }
  // Its answer is of no interest any more.
  void forget(Id id) { under_way_.erase(id); }

  // How many requests have been answered so far.
  [[nodiscard]] std::uint64_t answers() const { return answers_; }
  [[nodiscard]] bool waits_for_any() const;
  // When the next one is to be said again, or given up.
  [[nodiscard]] MonoTime next_due() const;
  // Why no server can be worked with any more.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }
  // The least that a request and its answer took since this was asked last: of those that
  // no server kept waiting, so that it is what the link takes.
  [[nodiscard]] std::optional<Duration> take_hop() { return std::exchange(hop_, std::nullopt); }
  [[nodiscard]] std::size_t servers() const { return servers_.size(); }
  // In the order in which they are to be heard: of each server first the backup, since once that
  // answers the other one does not count any more.
  [[nodiscard]] std::vector<requests::LinkId> links() const;

 private:
  struct Server {
    std::string endpoint;
    requests::LinkId link = 0;
    bool heard = false;  // it has answered something
    std::string other_endpoint;
    requests::LinkId other = 0;  // to its backup; 0: it has none
  };
  struct UnderWay {
    std::uint32_t server = 0;
    std::shared_ptr<const requests::Ask> ask;  // until it is answered
    MonoTime begun;
    MonoTime again;
    Duration pause;  // before `again`
    std::optional<requests::Reply> answer;
  };

  void on(requests::ReplyHeard& input, MonoTime now, requests::Effects& out);
  void on(const requests::WaitGoesOn& input, MonoTime now, requests::Effects& out);
  void on(const requests::RosterLooked& input, MonoTime now, requests::Effects& out);
  void on(const requests::ReachFailed& input, MonoTime now, requests::Effects& out);

  // How long it may be silent the first time.
  [[nodiscard]] Duration patience_with(const Server& server) const;
  void move_to_other(std::uint32_t server, MonoTime now, requests::Effects& out);
  void replace_server(std::uint32_t server, const std::string& endpoint, const std::string& key,
                      MonoTime now, requests::Effects& out);
  void replace_other(std::uint32_t server, const std::string& endpoint, const std::string& key,
                     MonoTime now, requests::Effects& out);
  requests::LinkId open_link(const std::string& endpoint, const std::string& key,
                             requests::Effects& out);
  void say_again_now(std::uint32_t server, MonoTime now);
  void say_what_is_due(MonoTime now, requests::Effects& out);
  [[nodiscard]] MonoTime given_up_at(const UnderWay& request) const;
  [[nodiscard]] Result<requests::Reply> take_reply(Id id);
  void check_invariants() const;

  requests::Start start_;
  std::vector<Server> servers_;  // by index
  std::uint64_t number_;         // of the roster that this is of
  requests::LinkId last_link_ = 0;
  Id seq_ = 0;
  std::map<Id, UnderWay> under_way_;
  std::uint64_t answers_ = 0;
  std::optional<Duration> hop_;
  std::optional<Error> failure_;
};

}  // namespace antdt::ps
