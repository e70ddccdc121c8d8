// A parameter server on its socket: it feeds a LinkedServer (trainer/ps/process/linked_server.h)
// what arrives and does what that wants, with sockets, files and children. Nothing is decided here.
//
// One thread, one loop. Slices of a checkpoint are written by a child while the server goes on
// (cut_writer.h); the state for a new backup is made by another (state_maker.h). Who pushes, who
// has left and when a checkpoint is made it is told by its owner (server_agent.h), not by workers.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/loop.h"
#include "core/result.h"
#include "core/transport/socket.h"
#include "core/wire/packet.h"
#include "core/wire/ps_messages.h"
#include "trainer/ps/process/linked_server.h"
#include "trainer/ps_link/cut_writer.h"
#include "trainer/ps_link/peer_links.h"
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
// What of it the LinkedServer is about.
[[nodiscard]] linked::Start start_of(const Group& group, std::uint32_t index);
[[nodiscard]] Group group_of(const linked::Start& start);

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
  // said before is undone. `done` is called at most once, when the answer may be given.
  using Serving = std::function<void(const wire::PsServing&)>;
  void serve(const wire::PsServe& now, Serving done = {});
  // It cannot be the backup that it is to be: why, as a person can mend it.
  void set_broken_handler(std::function<void(const std::string&)> handler) {
    broken_ = std::move(handler);
  }
  // What is applied of these, of whom this is the home.
  [[nodiscard]] std::vector<wire::PsPlaces> left(const std::vector<wire::PsMember>& members) const {
    return server_.node().left(members);
  }
  // Orders checkpoint `number`; `done` is called once, from here or from the loop.
  // Said again it is made once and answered again.
  using Saved = std::function<void(const wire::PsSaved&)>;
  void cut(const wire::PsCut& order, Saved done);
  // Percentiles of service times are of those since the last call.
  [[nodiscard]] wire::PsStats stats();
  // Updates that are applied.
  [[nodiscard]] std::uint64_t version() const { return server_.node().version(); }
  // As of ServerNode.
  [[nodiscard]] std::optional<Server::Rows> release() { return server_.node().release(); }
  void adopt(Server::Rows rows) { server_.node().adopt(std::move(rows)); }
  [[nodiscard]] replica::Role role() const { return server_.replica().role(); }
  // Whether workers and other servers hear it.
  [[nodiscard]] bool speaks() const { return server_.speaks(); }

 private:
  ServerLoop(EventLoop& loop, transport::Context& context, Group group, std::uint32_t index,
             transport::Socket& socket);
  void receive();
  void hear(const wire::Packet& packet);
  void hear_primary(const wire::Packet& packet, const wire::Envelope& envelope);
  void tick();

  // Inputs that effects lead to come behind them, in a queue.
  void feed(linked::Input input);
  void answer(node::Input input);
  void perform(const ReplyTo& effect);
  void perform(const node::RecordDecision&) {}  // the node says to whom
  void perform(const node::TellServer& effect);
  void perform(const node::AnswerCut& effect);
  void perform(const node::AnswerServe& effect);
  void perform(const node::ReadSlices& effect);
  void perform(const node::WriteSlices& effect);
  void perform(const linked::StopWriting&) { std::ignore = cut_writer_.give_up(); }
  void perform(const replica::BreakUp& effect);
  void perform(const replica::KeepState& effect);
  void perform(const replica::MakePiece& effect);
  void perform(const replica::DropState&) { state_maker_.end(); }
  void perform(const linked::OpenLink& effect);
  void perform(const linked::OpenBackupLink& effect);
  void perform(const linked::CloseBackupLink&) { links_.close_backup(); }
  void perform(const linked::SendCopy& effect);
  void perform(const linked::SendImage& effect);
  void perform(const linked::AnswerPrimary& effect);
  // To another server.
  template <class M>
  [[nodiscard]] wire::Packet packet_of(const M& message) const;
  [[nodiscard]] Status restore_slices(const std::string& directory);

  EventLoop& loop_;
  Group group_;
  const std::uint32_t index_;
  transport::Socket& socket_;
  LinkedServer server_;
  std::deque<linked::Input> inputs_;  // that are not fed yet
  bool feeding_ = false;
  linked::Effects effects_;  // of one step; its memory is used again
  PeerLinks links_;
  std::function<void(const std::string&)> broken_;
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
