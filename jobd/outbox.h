// What the job daemon sends: the routes to all receivers, the messages of the present turn, and
// those of committed turns that may not be sent yet.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/wire/packet.h"
#include "ctl/lifecycle/lifecycle.h"

namespace antdt::jobd {

// How a worker is reached: through the agent `endpoint` or, if it is a client that came by itself,
// as `peer` of our own socket.
struct Route {
  std::string endpoint;
  std::string peer;
};
struct Outgoing {
  Route route;
  wire::Packet packet;
};

class Outbox {
 public:
  explicit Outbox(std::string job) : job_(std::move(job)) {}

  template <class T>
  void send(const Route& route, Member member, Generation generation, const T& message,
            std::uint64_t seq = 0) {
    wire::Envelope envelope;
    envelope.job = job_;
    envelope.worker = member.worker;
    envelope.attempt = member.attempt;
    envelope.generation = generation;
    envelope.seq = seq;
    messages_.push_back({route, wire::make_packet(std::move(envelope), message)});
  }
  // Answers the sender of a request on our own socket.
  template <class T>
  void answer(const wire::Packet& packet, const wire::Envelope& envelope, const T& message) {
    wire::Envelope reply;
    reply.job = job_;
    reply.seq = envelope.seq;
    messages_.push_back({{"", packet.peer}, wire::make_packet(std::move(reply), message)});
  }
  void add(Outgoing message) { messages_.push_back(std::move(message)); }
  // Takes back the newest message, to hold it back.
  [[nodiscard]] Outgoing take_last() {
    Outgoing last = std::move(messages_.back());
    messages_.pop_back();
    return last;
  }
  [[nodiscard]] std::vector<Outgoing> take() { return std::exchange(messages_, {}); }

  // A worker was heard, or started, over this route.
  void reached_by(WorkerId worker, Route route) { routes_[worker] = std::move(route); }
  // While a message of `member` is handled, answers use the route over which it came.
  void handling(Member member, Route route) { inbound_ = {member, std::move(route)}; }
  void handled() { inbound_.reset(); }
  // After a restart, nobody has been heard of yet; then a worker that an agent started is reached
  // where it was placed. Empty if it has no place.
  [[nodiscard]] std::optional<Route> route_to(Member member, const ctl::Lifecycle& life) const;

 private:
  std::string job_;
  std::vector<Outgoing> messages_;
  std::map<WorkerId, Route> routes_;
  std::optional<std::pair<Member, Route>> inbound_;
};

// Messages of committed turns, in order. A turn that settled a generation waits until the run's
// history is synced, but not for long; later turns wait behind it. Pure.
class HeldTurns {
 public:
  // The longest wait for the history of the previous generation. After that the turn is sent, even
  // though the steps of a second may be lost from the history.
  static constexpr Duration kPatience = std::chrono::seconds(2);

  void add(std::vector<Outgoing> messages);
  // Returns the turn's number, for history_kept().
  [[nodiscard]] std::uint64_t add_waiting(std::vector<Outgoing> messages, MonoTime now);
  void history_kept(std::uint64_t number);
  // The messages that may be sent now.
  [[nodiscard]] std::vector<Outgoing> take_due(MonoTime now);

 private:
  struct Turn {
    std::vector<Outgoing> messages;
    std::optional<MonoTime> waits_until;
  };
  std::deque<Turn> turns_;
  std::uint64_t first_ = 0;  // number of turns_.front()
};

}  // namespace antdt::jobd
