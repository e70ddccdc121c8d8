// A parameter server on its socket: it feeds a LinkedServer (trainer/ps/process/linked_server.h)
// with what arrives, and carries out its effects with sockets, files and children. Nothing is
// decided here.
//
// One thread, one loop. A child writes the slices of a checkpoint while the server goes on
// (cut_writer.h); another makes the state for a new backup (state_maker.h). Its owner
// (server_agent.h), not the workers, tells it who pushes, who has left, and when to make a
// checkpoint.
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
#include "core/wire/servers/ps_messages.h"
#include "trainer/ps/process/linked_server.h"
#include "trainer/ps_link/cut_writer.h"
#include "trainer/ps_link/peer_links.h"
#include "trainer/ps_link/service_times.h"
#include "trainer/ps_link/state_maker.h"

namespace antdt::ps {

// Fault injections in a server (core/drill/injection.h); empty functions: none.
struct Drill {
  // makes the request take longer
  std::function<void(MonoTime began, std::uint64_t request)> after_request;
  // called before each answer of `bytes` bytes
  std::function<Duration(std::size_t bytes)> answer_delay;
};

// The servers of a group, by index.
struct Group {
  Generation generation{1};          // messages of other generations change nothing
  std::vector<std::string> sockets;  // end points (see wire::PsServe)
  Consistency consistency = Consistency::kBarrier;
  std::vector<Member> workers;
  std::uint32_t backups = 0;
  // The checkpoint from which the group goes on: the directory of its slices (empty: none), and its
  // PsSaved::version.
  std::string restore;
  std::uint64_t version = 0;
  // Called from time to time during reading, on the loop's thread, which does nothing else
  // meanwhile: the directory, the bytes read, and the total.
  std::function<void(const std::string&, std::uint64_t, std::uint64_t)> reads = {};
  std::string name = {};  // "s0 on host", for errors of its files
  std::string root;       // the run's directory, to which other directories are relative
  // A child that writes a checkpoint or copies the state is given up after this time without
  // progress.
  Duration hang_after = std::chrono::seconds(120);
  // For tcp: the public keys of the servers, by index, and this server's key pair.
  std::vector<std::string> keys = {};
  transport::KeyPair own = {};
  // If the server is two processes: the role of this one, the view, and where a primary's backup
  // is. Then the workers are only those of serve(), so that both processes begin alike.
  replica::Role role = replica::Role::kAlone;
  std::uint64_t view = 0;
  std::string backup = {};
  std::string backup_key = {};
  Drill drill = {};
};
// The part of a group that concerns the LinkedServer.
[[nodiscard]] linked::Start start_of(const Group& group, std::uint32_t index);
[[nodiscard]] Group group_of(const linked::Start& start);

class ServerLoop {
 public:
  // Server `index` of the group on `socket`, which must be bound to its end point and outlive this
  // object; runs with `loop`.
  [[nodiscard]] static Result<std::unique_ptr<ServerLoop>> open(EventLoop& loop,
                                                                transport::Context& context,
                                                                transport::Socket& socket,
                                                                Group group, std::uint32_t index);
  ~ServerLoop();
  ServerLoop(const ServerLoop&) = delete;
  ServerLoop& operator=(const ServerLoop&) = delete;

  // The workers of the same group change: some are added, and those in `leaving` push no more.
  // Servers may have moved, and this one may have become a single process. It undoes nothing of an
  // earlier call. `done` is called at most once, when the answer may be given.
  using Serving = std::function<void(const wire::PsServing&)>;
  void serve(const wire::PsServe& now, Serving done = {});
  // Called if it cannot become the backup that it was ordered to be, with a reason for a person.
  void set_broken_handler(std::function<void(const ps::replica::BreakUp&)> handler) {
    broken_ = std::move(handler);
  }
  // What is applied of those of these workers whose home this is.
  [[nodiscard]] std::vector<wire::PsPlaces> left(const std::vector<wire::PsMember>& members) const {
    return server_.node().left(members);
  }
  // Orders checkpoint `number`; `done` is called once, from here or from the loop. If the order is
  // repeated, the checkpoint is made once and answered again.
  using Saved = std::function<void(const wire::PsSaved&)>;
  void cut(const wire::PsCut& order, Saved done);
  // Percentiles of service times cover the time since the last call.
  [[nodiscard]] wire::PsStats stats();
  // Empty: no checkpoint is being written.
  [[nodiscard]] std::optional<CutProgress> writing() const { return cut_writer_.progress(); }
  // Number of updates that are applied.
  [[nodiscard]] std::uint64_t version() const { return server_.node().version(); }
  // See ServerNode.
  [[nodiscard]] std::optional<Server::Rows> release() { return server_.node().release(); }
  void adopt(Server::Rows rows) { server_.node().adopt(std::move(rows)); }
  [[nodiscard]] replica::Role role() const { return server_.replica().role(); }
  // Whether workers and other servers hear this process.
  [[nodiscard]] bool speaks() const { return server_.speaks(); }

 private:
  ServerLoop(EventLoop& loop, transport::Context& context, Group group, std::uint32_t index,
             transport::Socket& socket);
  void receive();
  void hear(const wire::Packet& packet);
  void hear_primary(const wire::Packet& packet, const wire::Envelope& envelope);
  void tick();

  // Inputs that effects lead to are put behind them, in a queue.
  void feed(linked::Input input);
  void answer(node::Input input);
  void perform(const ReplyTo& effect);
  void perform(const node::RecordDecision&) {}  // the node's other effects tell the receivers
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
  // Sends to another server.
  template <class M>
  [[nodiscard]] wire::Packet packet_of(const M& message) const;
  [[nodiscard]] Status restore_slices(const std::string& directory);

  EventLoop& loop_;
  Group group_;
  const std::uint32_t index_;
  transport::Socket& socket_;
  LinkedServer server_;
  std::deque<linked::Input> inputs_;  // inputs that are not fed yet
  bool feeding_ = false;
  linked::Effects effects_;  // effects of one step; kept so that the memory is reused
  PeerLinks links_;
  std::function<void(const ps::replica::BreakUp&)> broken_;
  std::multimap<std::uint64_t, Saved> ordered_;
  std::multimap<std::uint64_t, Serving> serving_;
  TimerId tick_;
  std::uint64_t requests_ = 0;
  Duration busy_{};  // time spent on requests
  ServiceTimes service_times_;
  std::uint64_t cuts_ = 0;
  Duration cut_pauses_{};  // sum over all of them
  Duration longest_cut_pause_{};
  CutWriter cut_writer_;
  StateMaker state_maker_;
};

}  // namespace antdt::ps
