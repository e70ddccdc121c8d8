// A parameter server on its socket.
//
// One thread, one loop. What the machines of trainer/ps decide is sent here: the
// answers to workers, and a home's decisions to the other servers, in order, said
// again every kAgain until each has acknowledged them. Its slices of a checkpoint
// are written by a child while it goes on (cut_writer.h).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
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
  // The server that decides for this worker: with a barrier one for all.
  [[nodiscard]] std::uint32_t home_of(Member worker) const {
    const auto count = static_cast<std::uint32_t>(sockets.size());
    return consistency == Consistency::kBarrier ? 0 : worker.worker.index % count;
  }
  // Where a slice is.
  [[nodiscard]] std::uint32_t server_of_slice(std::uint32_t slice) const {
    return slice % static_cast<std::uint32_t>(sockets.size());
  }
};

class ServerLoop {
 public:
  static constexpr Duration kAgain = std::chrono::milliseconds(500);
  static constexpr std::size_t kCutsKept = 4;

  // Server `index` of the group, bound to its socket; runs with `loop`.
  [[nodiscard]] static Result<std::unique_ptr<ServerLoop>> open(EventLoop& loop,
                                                                transport::Context& context,
                                                                Group group, std::uint32_t index);
  ~ServerLoop();
  ServerLoop(const ServerLoop&) = delete;
  ServerLoop& operator=(const ServerLoop&) = delete;

  [[nodiscard]] const Server& server() const { return server_; }
  [[nodiscard]] std::uint64_t requests() const { return requests_; }

 private:
  struct Peer {
    std::uint32_t index;
    transport::Socket socket;
    std::uint64_t sent = 0;                 // newest decision said
    std::uint64_t acknowledged = 0;         // decisions up to here are applied there
    std::uint64_t acknowledged_before = 0;  // when it was last looked at
  };

  ServerLoop(EventLoop& loop, Group group, std::uint32_t index, transport::Socket socket);
  void connect(std::uint32_t index, transport::Socket link);
  void receive();
  void on_packet(const wire::Packet& packet);
  template <class M>
  void ask_server(const wire::Packet& packet, const wire::Envelope& envelope);
  void on_idle(const wire::Packet& packet, const wire::Envelope& envelope);
  void on_commit(const wire::Packet& packet, const wire::Envelope& envelope);
  void on_decision(const wire::Packet& packet, const wire::Envelope& envelope);
  void on_open(const wire::Packet& packet, const wire::Envelope& envelope);
  void on_cut(const wire::Packet& packet, const wire::Envelope& envelope);
  wire::PsApplied apply(std::uint32_t home, const wire::PsDecision& decision);
  void begin_cut(const wire::PsDecision& decision);
  struct Cut {
    std::optional<Result<wire::PsSaved>> outcome;
    std::uint64_t pause_us = 0;
    std::vector<std::pair<wire::Packet, wire::Envelope>> askers;
  };
  [[nodiscard]] Cut& cut_of(std::uint64_t number);
  void answer_cut(Cut& cut);
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
  transport::Socket socket_;
  Server server_;
  Closer closer_;
  std::map<Member, Asker> committing_;      // who waits for a decision
  std::deque<wire::PsDecision> decisions_;  // not acknowledged by all yet; numbers in a row
  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<wire::Packet> unsent_;
  TimerId again_;
  std::vector<ReplyTo> replies_;
  std::uint64_t requests_ = 0;
  std::map<std::uint64_t, Cut> cuts_;  // by number, at most kCutsKept
  CutWriter cut_writer_;
};

}  // namespace antdt::ps
