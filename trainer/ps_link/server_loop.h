// A parameter server on its socket.
//
// One thread, one loop. It feeds a ServerNode (trainer/ps/server_node.h) what arrives
// and sends what that says: the answers to workers, and a home's decisions to the
// other servers. Its slices of a checkpoint are written by a child while it goes on
// (cut_writer.h). Who else pushes, who has left and when a checkpoint is made it is
// told by its owner (server_agent.h), not by workers.
//
// It may be one of two that are one server (trainer/ps/replica/replica.h): the primary connects to
// its backup, copies its events over that link and hears there what was taken. To a new
// one it sends its state first, which a child makes (state_maker.h).
#pragma once

#include <cstdint>
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
#include "trainer/ps/replica/replica.h"
#include "trainer/ps_link/cut_writer.h"
#include "trainer/ps_link/service_times.h"
#include "trainer/ps_link/state_maker.h"

namespace antdt::ps {

// What a drill makes worse in a server (core/drill/injection.h); empty: nothing.
struct Drill {
  std::function<void(MonoTime began, std::uint64_t request)> after_request;  // takes longer
  std::function<Duration(std::size_t bytes)> answer_delay;  // before each answer of these bytes
};

// The servers of a group, by index.
struct Group {
  Generation generation{1};          // what is said in another one changes nothing
  std::vector<std::string> sockets;  // end points (wire::PsServe)
  Consistency consistency = Consistency::kBarrier;
  std::vector<Member> workers;
  std::uint32_t backups = 0;
  // The checkpoint that the group goes on from: where its slices are (empty: none),
  // and PsSaved::version of it.
  std::string restore;
  std::uint64_t version = 0;
  // Called from time to time while it reads them, on the loop's thread, which does nothing else:
  // the directory, how many bytes of how many are read.
  std::function<void(const std::string&, std::uint64_t, std::uint64_t)> reads = {};
  std::string root;  // the run's directory: other directories are below it
  // A child that writes a checkpoint or copies the state is given up without progress for so long.
  Duration hang_after = std::chrono::seconds(120);
  // Over tcp: the public keys of the servers, by index, and this one's pair.
  std::vector<std::string> keys = {};
  transport::KeyPair own = {};
  // Where the server is two processes: which one this is, in which view, and where the
  // backup of a primary is. The workers are then those of serve() alone: both are to
  // begin with the same.
  replica::Role role = replica::Role::kAlone;
  std::uint64_t view = 0;
  std::string backup = {};
  std::string backup_key = {};
  Drill drill = {};
};

class ServerLoop {
 public:
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
  // `leaving` push no more; servers may be elsewhere, and this one alone. Nothing that was
  // said before is undone. `done` is called at most once, when the answer may be given:
  // never where this is a backup, which is no home.
  using Serving = std::function<void(const wire::PsServing&)>;
  void serve(const wire::PsServe& now, Serving done = {});
  // It cannot be the backup that it is to be: why, as a person can mend it.
  void set_broken_handler(std::function<void(const std::string&)> handler) {
    broken_ = std::move(handler);
  }
  // What is applied of these, of whom this is the home.
  [[nodiscard]] std::vector<wire::PsPlaces> left(const std::vector<wire::PsMember>& members) const {
    return replica_.node().left(members);
  }
  // Orders checkpoint `number`; `done` is called once, from here or from the loop.
  // Said again it is made once and answered again.
  using Saved = std::function<void(const wire::PsSaved&)>;
  void cut(const wire::PsCut& order, Saved done);
  // Percentiles of service times are of those since the last call.
  [[nodiscard]] wire::PsStats stats();
  // Updates that are applied.
  [[nodiscard]] std::uint64_t version() const { return replica_.node().version(); }
  // As of ServerNode.
  [[nodiscard]] std::optional<Server::Rows> release() { return replica_.node().release(); }
  void adopt(Server::Rows rows) { replica_.node().adopt(std::move(rows)); }
  [[nodiscard]] replica::Role role() const { return replica_.role(); }
  // Whether workers and other servers hear it.
  [[nodiscard]] bool speaks() const { return replica_.speaks(); }

 private:
  struct Peer {
    std::uint32_t index;
    std::string endpoint;
    transport::Socket socket;
  };

  ServerLoop(EventLoop& loop, transport::Context& context, Group group, std::uint32_t index,
             transport::Socket& socket);
  [[nodiscard]] Status connect_to_others();
  [[nodiscard]] Status connect_to_backup();
  void take_up_view(const wire::PsServe& now);
  void receive();
  void hear(const wire::Packet& packet);
  void hear_primary(const wire::Packet& packet, const wire::Envelope& envelope);
  void hear_from(Peer& peer);
  void hear_from_backup();
  template <class M>
  void say_to_backup(const M& message);
  void tick();

  void note_no_room();
  void step(const replica::Event& event);
  void run(const node::Effect& effect);
  void run(const replica::Copied& effect);
  void run(const replica::Taken& effect);
  void run(const replica::Broken& effect);
  void run(const replica::KeepState& effect);
  void run(const replica::MakePiece& effect);
  void run(const replica::DropState&) { state_maker_.end(); }
  void run(const wire::PsImage& effect) { say_to_backup(effect); }
  void run(const ReplyTo& effect);
  void run(const node::Decided&) {}  // the node says to whom
  void run(const node::Tell& effect);
  void run(const node::Saved& effect);
  void run(const node::Serving& effect);
  void run(const node::Restore& effect);
  void run(const node::BeginCut& effect);
  [[nodiscard]] Status restore_slices(const std::string& directory);

  EventLoop& loop_;
  transport::Context& context_;
  Group group_;
  const std::uint32_t index_;
  transport::Socket& socket_;
  Replica replica_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::optional<transport::Socket> backup_;
  std::string copied_by_;  // peer of the newest copy, which is to be answered
  std::function<void(const std::string&)> broken_;
  std::vector<node::NoRoom> no_room_;  // of this step
  std::multimap<std::uint64_t, Saved> ordered_;
  std::multimap<std::uint64_t, Serving> serving_;
  TimerId tick_;
  std::uint64_t requests_ = 0;
  Duration busy_{};  // with them
  ServiceTimes service_times_;
  std::uint64_t cuts_ = 0;
  Duration cut_pauses_{};  // of all of them
  Duration longest_cut_pause_{};
  CutWriter cut_writer_;
  StateMaker state_maker_;
};

}  // namespace antdt::ps
