// A parameter server on its socket.
//
// One thread, one loop. What the machines of trainer/ps decide is sent here: the
// answers to workers, and a home's decisions to the other servers, in order, said
// again every kAgain until each has acknowledged them. Its slices of a checkpoint
// are written by a child while it goes on (cut_writer.h). Who else pushes, who has
// left and when a checkpoint is made it is told by its owner (server_agent.h), not
// by workers.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/loop.h"
#include "core/result.h"
#include "core/transport/socket.h"
#include "core/wire/packet.h"
#include "core/wire/ps_messages.h"
#include "trainer/ps/closer.h"
#include "trainer/ps/server.h"
#include "trainer/ps_link/cut_writer.h"
#include "trainer/ps_link/service_times.h"

namespace antdt::ps {

// The servers of a group, by index; the socket paths of one machine.
struct Group {
  Generation generation{1};  // what is said in another one changes nothing
  std::vector<std::string> sockets;
  Consistency consistency = Consistency::kBarrier;
  std::vector<Member> workers;
  std::uint32_t backups = 0;
  // The checkpoint that the group goes on from: where its slices are (empty: none),
  // and PsSaved::version of it.
  std::string restore;
  std::uint64_t version = 0;
  std::string root;  // the run's directory: other directories are below it
};

class ServerLoop {
 public:
  static constexpr Duration kAgain = std::chrono::milliseconds(500);
  static constexpr std::size_t kCutsKept = 4;

  // Server `index` of the group on `socket`, which is bound to its end point and
  // outlives it; runs with `loop`.
  [[nodiscard]] static Result<std::unique_ptr<ServerLoop>> open(EventLoop& loop,
                                                                transport::Context& context,
                                                                transport::Socket& socket,
                                                                Group group, std::uint32_t index);
  ~ServerLoop();
  ServerLoop(const ServerLoop&) = delete;
  ServerLoop& operator=(const ServerLoop&) = delete;

  // The workers of the same group are others now: more of them, and those of
  // `leaving` push no more. Nothing that was said before is undone.
  void serve(const wire::PsServe& now);
  // What is applied of these, of whom this is the home.
  [[nodiscard]] std::vector<wire::PsPlaces> left(const std::vector<wire::PsMember>& members) const;
  // Orders checkpoint `number`; `done` is called once, from here or from the loop.
  // Said again it is made once and answered again.
  using Saved = std::function<void(const wire::PsSaved&)>;
  void cut(const wire::PsCut& order, Saved done);
  // Service times are those since the last call.
  [[nodiscard]] wire::PsStats stats();
  // Updates that are applied.
  [[nodiscard]] std::uint64_t version() const { return server_.version(); }

 private:
  struct Peer {
    std::uint32_t index;
    transport::Socket socket;
    std::uint64_t sent = 0;                 // newest decision said
    std::uint64_t acknowledged = 0;         // decisions up to here are applied there
    std::uint64_t acknowledged_before = 0;  // when it was last looked at
  };

  ServerLoop(EventLoop& loop, Group group, std::uint32_t index, transport::Socket& socket);
  [[nodiscard]] bool is_home_of(const wire::PsMember& member) const;
  void add_workers(const std::vector<Member>& workers);
  void connect(std::uint32_t index, transport::Socket link);
  void receive();
  void on_packet(const wire::Packet& packet);
  template <class M>
  void ask_server(const wire::Packet& packet, const wire::Envelope& envelope);
  void on_idle(const wire::Packet& packet, const wire::Envelope& envelope);
  void on_commit(const wire::Packet& packet, const wire::Envelope& envelope);
  void on_decision(const wire::Packet& packet, const wire::Envelope& envelope);
  void on_open(const wire::Packet& packet, const wire::Envelope& envelope);
  wire::PsApplied apply(std::uint32_t home, const wire::PsDecision& decision);
  // Where this is a home, what it decides from now on is not in it.
  void mark_cut(std::uint64_t number, const std::string& directory);
  void begin_cut(const Server::Cut& due);
  void drop_cuts_before(std::uint64_t number);
  struct Cut {
    std::vector<wire::PsPlaces> places;  // at this home's marker
    bool begun = false;
    std::optional<wire::PsSaved> outcome;
    std::vector<Saved> askers;
  };
  [[nodiscard]] Cut& cut_of(std::uint64_t number);
  // What hinders the order of a checkpoint; empty: nothing.
  [[nodiscard]] std::string hindrance(std::uint64_t number) const;
  void finish_cut(wire::PsSaved saved);
  [[nodiscard]] Status restore_slices();
  [[nodiscard]] std::vector<std::uint32_t> own_slices() const;
  void on_acknowledged(Peer& peer);
  void run(const Closer::Effects& effects);
  void distribute(Peer& peer);
  void say_again();
  template <class T>
  void answer(const wire::Packet& packet, const wire::Envelope& envelope, const T& body);
  void flush();

  EventLoop& loop_;
  Group group_;
  std::uint32_t index_;
  transport::Socket& socket_;
  Server server_;
  Closer closer_;
  std::map<Member, Asker> committing_;      // who waits for a decision
  std::deque<wire::PsDecision> decisions_;  // not acknowledged by all yet; numbers in a row
  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<wire::Packet> unsent_;
  TimerId again_;
  std::vector<ReplyTo> replies_;
  std::uint64_t requests_ = 0;
  ServiceTimes service_times_;
  std::map<std::uint64_t, Cut> cuts_;  // by number, at most kCutsKept
  CutWriter cut_writer_;
};

}  // namespace antdt::ps
