// Requests of a worker to its parameter servers, any number of them under way.
//
//   said --its answer--> answered --take--> forgotten
//   said --Peers::again without one, while somebody waits--> said again, unchanged
//
// Bytes move in ZeroMQ's thread whatever this one does, so a request that was said is
// on its way while its caller computes; its answer is taken in when the caller comes
// back. Servers answer what is said again as before (server.h). For one generation of
// the group, and one thread: when the group is over, whatever waits fails with
// kAborted.
//
// Where a server is two processes (trainer/ps/replica/replica.h), the backup is asked for nothing,
// which it answers once it is promoted, when the primary is silent. Its first answer says
// that the other one does not count any more, whatever that may still say: that one is let
// go of, and what it has not answered is said to its successor. Where processes of servers
// were replaced, a newer roster names them; it is looked for before a server is silent, so that
// a backup that came later is known when it is needed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/result.h"
#include "core/transport/socket.h"
#include "core/wire/packet.h"
#include "trainer/ps/server.h"

namespace antdt::ps {

// The servers of a group as a worker needs them (wire::PsRoster).
struct Peers {
  Generation generation{1};          // what is said in another one changes nothing
  std::vector<std::string> servers;  // end points, by index
  Consistency consistency = Consistency::kBarrier;
  Duration give_up{};  // kUnreachable when a request is not answered for so long; 0: never
  Duration again = std::chrono::seconds(2);  // when what was not answered is said again
  // Over tcp: the public keys of the servers, by index, and this process's pair.
  std::vector<std::string> keys = {};
  transport::KeyPair own = {};
  // kUnreachable when a server that was never heard takes no connection for so long.
  Duration reach = std::chrono::seconds(10);
  // A drill: how much longer a message of so many bytes takes to be sent.
  std::function<Duration(std::size_t bytes)> send_delay = {};
  // Backups of the servers, by index, where they have one (wire::PsRoster).
  std::vector<std::string> others = {};
  std::vector<std::string> other_keys = {};
  // PsRoster::number of all this, and the newest there is, if it is newer than one of that
  // number: asked for whenever servers are waited for.
  std::uint64_t number = 0;
  std::function<std::optional<wire::PsRoster>(std::uint64_t than)> newer = {};
};

class Requests {
 public:
  // Waits for nobody: servers that are not there yet are waited for by wait().
  [[nodiscard]] static Result<std::unique_ptr<Requests>> connect(transport::Context& context,
                                                                 const Peers& peers, Member self);
  ~Requests();
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;

  using Id = std::uint64_t;
  template <class Ask>
  Id say(std::uint32_t server, const Ask& message) {
    wire::Envelope envelope = envelope_;
    envelope.seq = ++seq_;
    return say(server, seq_, wire::make_packet(envelope, message));
  }
  // Takes in the answers that have come; whether there was one.
  bool receive();
  // Until one has come: answers to others than the caller waits for as well.
  [[nodiscard]] Status wait();
  [[nodiscard]] bool answered(Id id) const;
  // Of a request that is answered; it is forgotten. A refusal is an error.
  template <class Reply>
  [[nodiscard]] Result<Reply> take(Id id) {
    ANTDT_TRY(const wire::Packet packet, take_packet(id));
    return wire::open_reply<Reply>(packet);
  }
  // Its answer is of no interest any more.
  void forget(Id id) { under_way_.erase(id); }

  // From any thread, once and for all: the wait() that blocks and all later ones fail
  // with kAborted at once.
  void abort();
  [[nodiscard]] Status check_open() const;  // kAborted once it was

  // The least that a request and its answer took since this was asked last: of those that
  // no server kept waiting, so that it is what the link takes.
  [[nodiscard]] std::optional<Duration> take_hop() { return std::exchange(hop_, std::nullopt); }

  [[nodiscard]] std::size_t servers() const { return endpoints_.size(); }

 private:
  // The first time that a server of two processes is silent for so long; then for twice
  // as long each time, up to `again`.
  static constexpr Duration kAgainOfTwo = std::chrono::milliseconds(250);
  struct UnderWay {
    std::uint32_t server = 0;
    wire::Packet packet;
    MonoTime begun;
    MonoTime again;
    Duration pause;  // before `again`
    std::optional<wire::Packet> answer;
  };
  Requests(transport::Context& context, const Peers& peers, Member self, int wake_fd);
  Id say(std::uint32_t server, Id id, wire::Packet packet);
  // How long it may be silent the first time.
  [[nodiscard]] Duration patience_with(std::uint32_t server) const;
  void hold_back(Duration delay) const;
  void take_in(std::uint32_t server, wire::Packet packet);
  void ask_other(std::uint32_t server);
  // An answer of the backup: from now on it is the server.
  void move_to_other(std::uint32_t server);
  // What a newer roster says of them.
  [[nodiscard]] Status look_for_servers();
  [[nodiscard]] Status replace_server(std::uint32_t server, const std::string& endpoint,
                                      const std::string& key);
  [[nodiscard]] Status replace_other(std::uint32_t server, const std::string& endpoint,
                                     const std::string& key);
  void drop_other_link(std::uint32_t server);
  void say_again_now(std::uint32_t server);
  [[nodiscard]] Result<wire::Packet> take_packet(Id id);
  [[nodiscard]] MonoTime given_up_at(const UnderWay& request) const;
  // When the next one is to be said again, or given up.
  [[nodiscard]] MonoTime next_due() const;
  [[nodiscard]] Status say_again();
  // An error where this host cannot reach a server, as far as that can be seen.
  [[nodiscard]] Status check_reach(std::uint32_t server, Duration waited) const;

  transport::Context& context_;
  const transport::KeyPair own_;
  std::vector<std::string> endpoints_;  // of the servers, by index
  const Duration give_up_;
  const Duration again_;
  const Duration reach_;
  const std::function<Duration(std::size_t)> send_delay_;
  const int wake_fd_;  // readable once aborted
  wire::Envelope envelope_;
  std::atomic<bool> aborted_ = false;
  Id seq_ = 0;
  std::vector<transport::Socket> links_;  // by server; behind them those to the others
  // By server: its place in links_ and in the roster's `others`; 0: it has none.
  std::vector<std::size_t> others_;
  std::vector<std::string> other_endpoints_;
  std::uint64_t number_;  // of the roster that this is of
  const std::function<std::optional<wire::PsRoster>(std::uint64_t)> newer_;
  std::optional<Duration> hop_;
  std::vector<bool> heard_;  // by server: it has answered something
  std::map<Id, UnderWay> under_way_;
};

}  // namespace antdt::ps
