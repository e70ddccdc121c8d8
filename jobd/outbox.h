// What the job daemon sends: where whom is reached, the messages of the present turn, and those of
// turns that are committed and may not be sent yet.
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

// Where a worker is reached: through the agent `endpoint`, or (clients that came by themselves) as
// `peer` of our own socket.
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
  // To whoever is asked on our own socket.
  template <class T>
  void answer(const wire::Packet& packet, const wire::Envelope& envelope, const T& message) {
    wire::Envelope reply;
    reply.job = job_;
    reply.seq = envelope.seq;
    messages_.push_back({{"", packet.peer}, wire::make_packet(std::move(reply), message)});
  }
  void add(Outgoing message) { messages_.push_back(std::move(message)); }
  // The newest one is held back.
  [[nodiscard]] Outgoing take_last() {
    Outgoing last = std::move(messages_.back());
    messages_.pop_back();
    return last;
  }
  [[nodiscard]] std::vector<Outgoing> take() { return std::exchange(messages_, {}); }

  // A worker is heard, or started, by this route.
  void reached_by(WorkerId worker, Route route) { routes_[worker] = std::move(route); }
  // While a message of `member` is handled, answers go the way that it came.
  void handling(Member member, Route route) { inbound_ = {member, std::move(route)}; }
  void handled() { inbound_.reset(); }
  // After a restart nobody has been heard of yet: a worker that an agent started is where it was
  // placed. None: it has no place.
  [[nodiscard]] std::optional<Route> route_to(Member member, const ctl::Lifecycle& life) const;

 private:
  std::string job_;
  std::vector<Outgoing> messages_;
  std::map<WorkerId, Route> routes_;
  std::optional<std::pair<Member, Route>> inbound_;
};

// Messages of committed turns, in order. A turn that settled a generation waits until the run's
// history is safe, but not for long; later turns wait behind it. Pure.
class HeldTurns {
 public:
  // How long members may be kept waiting for the history of the generation before theirs to be
  // safe: after that the steps of a second may be forgotten, and training goes on.
  static constexpr Duration kPatience = std::chrono::seconds(2);

  void add(std::vector<Outgoing> messages);
  // The turn's number, for history_kept().
  [[nodiscard]] std::uint64_t add_waiting(std::vector<Outgoing> messages, MonoTime now);
  void history_kept(std::uint64_t number);
  // Those that may be sent now.
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
