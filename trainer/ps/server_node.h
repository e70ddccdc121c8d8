// One parameter server of a group, whole: what it holds (server.h), what it decides
// as a home (closer.h), what it has to tell the other servers (distribution.h), and
// the checkpoints it is told to make (cut_orders.h).
//
// A value: step(event) -> effects, which its shell runs in order. The same events give the same
// state, to the last bit, and the same effects. Where a file has to be read or written, the
// effect that says so is the last of its step, and the shell's answer is the next event:
//
//   Restore   fills store() with the slices of a checkpoint    -> Restored
//   BeginCut  store() as it is now is what is written          -> CutBegun, later CutWritten
//
// What a server has acknowledged is not sent to it again. A message that was lost on its way is
// sent again at the second Tick after it, so a shell ticks every kAgain.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/wire/ps_messages.h"
#include "trainer/ps/closer.h"
#include "trainer/ps/cut_orders.h"
#include "trainer/ps/distribution.h"
#include "trainer/ps/server.h"

namespace antdt::ps {

namespace node {

// ---- events
// A message that cannot be read, and what to answer to the member that sent it.
struct Unreadable {
  wire::Refused refused;
};
using Request = std::variant<Unreadable, wire::PsOpen, wire::PsPut, wire::PsPull, wire::PsPush,
                             wire::PsCommit, wire::PsIdle, wire::PsDecision>;
// By a worker, or by another server.
struct Asked {
  Asker from;
  Generation generation;
  Request body;
};
// That server has applied this home's decisions up to that number.
struct Acknowledged {
  std::uint32_t server = 0;
  wire::PsApplied applied;
};
// An earlier Tell could not be sent.
struct NoRoom {
  std::uint32_t server = 0;
  std::uint64_t number = 0;
};
// From the job daemon: workers to add, and in `leaving` those whose pushes are refused from now
// on. Nothing of an earlier one is undone.
struct Serve {
  wire::PsServe serve;
};
// From the job daemon. Repeated, the checkpoint is made once and answered again.
struct OrderCut {
  wire::PsCut cut;
};
struct Restored {
  std::string error;  // empty: the slices are in the store
};
struct CutBegun {
  std::uint64_t number = 0;
  std::uint64_t pause_us = 0;
  std::string error;  // empty: CutWritten follows
};
struct CutWritten {
  std::uint64_t number = 0;
  std::vector<wire::CheckpointFile> files;
  std::string error;
};
struct Tick {};
using Event = std::variant<Asked, Acknowledged, NoRoom, Serve, OrderCut, Restored, CutBegun,
                           CutWritten, Tick>;

// ---- effects
// For whoever keeps accounts: a decision of this home, before anybody else hears of it.
struct Decided {
  wire::PsDecision decision;
};
struct Restore {
  std::string directory;
};
struct BeginCut {
  std::uint64_t number = 0;
  std::string directory;
};
// To the job daemon, if it ordered it.
struct Saved {
  wire::PsSaved saved;
};
// To the job daemon, which said Serve.
struct Serving {
  wire::PsServing serving;
};
using Tell = Distribution::Tell;
using Effect = std::variant<ReplyTo, Decided, Tell, Saved, Serving, Restore, BeginCut>;
using Effects = std::vector<Effect>;

// What it is told when it begins.
struct Start {
  Generation generation{1};  // what is said in another one changes nothing
  std::uint32_t index = 0;
  std::uint32_t servers = 1;
  Consistency consistency = Consistency::kBarrier;
  std::vector<Member> workers;
  std::uint32_t backups = 0;
  // The checkpoint that the group goes on from (empty: none), and its PsSaved::version.
  std::string restore;
  std::uint64_t version = 0;
};

}  // namespace node

class ServerNode {
 public:
  static constexpr Duration kAgain = std::chrono::milliseconds(500);

  explicit ServerNode(node::Start start);

  [[nodiscard]] node::Effects step(const node::Event& event);

  // Whether a backup has to take this event, too. Events that only read, and repeated ones,
  // change nothing that anybody can see.
  [[nodiscard]] bool changes(const node::Event& event) const;
  // The effect that is still to be answered: `E` is Restored or CutBegun.
  template <class E>
  [[nodiscard]] bool waits_for() const;
  [[nodiscard]] std::uint64_t beginning() const { return saving_ ? saving_->number : 0; }
  // Checkpoints that are begun and not written.
  [[nodiscard]] std::vector<std::uint64_t> writing() const { return cuts_.writing(); }

  // Whether this server decides for that worker.
  [[nodiscard]] bool is_home_of(WorkerId worker) const;
  // What is applied of these workers, whose home this server must be.
  [[nodiscard]] std::vector<wire::PsPlaces> left(const std::vector<wire::PsMember>& members) const;
  // All but requests and service times, which the shell sees.
  [[nodiscard]] wire::PsStats stats() const;
  [[nodiscard]] std::uint64_t version() const { return server_.version(); }
  // Null until a worker has opened it. For who reads and writes slices.
  [[nodiscard]] Store* store() { return server_.store(); }
  [[nodiscard]] const Store* store() const { return server_.store(); }
  [[nodiscard]] std::vector<std::uint32_t> own_slices() const;
  // Hands the rows of a group that is over to the node of the next group, before that one's first
  // event; it then reads no checkpoint. The node that gave them must not be used any more.
  [[nodiscard]] std::optional<Server::Rows> release() { return server_.release(); }
  void adopt(Server::Rows rows) { server_.adopt(std::move(rows)); }

  // The state without rows, between two events (state_copy.h). restore() takes it over into a node
  // of the same group that has taken no event; after an error (kCorrupt) that node must not be
  // used any more.
  [[nodiscard]] NodeImage image() const;
  [[nodiscard]] Status restore(const NodeImage& image);

 private:
  void on(const node::Asked& event);
  void on(const node::Acknowledged& event);
  void on(const node::NoRoom& event);
  void on(const node::Serve& event);
  void on(const node::OrderCut& event);
  void on(const node::Restored& event);
  void on(const node::CutBegun& event);
  void on(const node::CutWritten& event);
  void on(const node::Tick& event);

  void ask(const Asker& from, const node::Unreadable& m) { reply(from, m.refused); }
  void ask(const Asker& from, const wire::PsOpen& m);
  void ask(const Asker& from, const wire::PsPut& m) { server_.on(from, m, replies_); }
  void ask(const Asker& from, const wire::PsPull& m) { server_.on(from, m, replies_); }
  void ask(const Asker& from, const wire::PsPush& m) { server_.on(from, m, replies_); }
  void ask(const Asker& from, const wire::PsCommit& m);
  void ask(const Asker& from, const wire::PsIdle& m);
  void ask(const Asker& from, const wire::PsDecision& m);

  void add_workers(const std::vector<Member>& workers);
  void set_rate(double rate);
  void run(const Closer::Effects& effects);
  void answer_commit(Member member, ServerReply body);
  void mark_cut(std::uint64_t number, const std::string& directory);
  void begin_due_cuts();
  void reply(const Asker& to, ServerReply body) { replies_.push_back({to, std::move(body)}); }
  [[nodiscard]] std::string hindrance(std::uint64_t number) const;
  [[nodiscard]] node::Effects take_effects();

  node::Start start_;
  double rate_ = 1;  // of the learning rates
  Server server_;
  Closer closer_;
  Distribution distribution_;
  CutOrders cuts_;
  std::map<Member, Asker> committing_;  // who waits for a decision
  // Effects of this step.
  std::vector<wire::PsDecision> decided_;
  std::vector<ReplyTo> replies_;
  std::vector<wire::PsSaved> saved_;
  std::optional<wire::PsServing> serving_;
  // The effect that the shell has still to answer; no other event may come before the answer.
  std::optional<ReplyTo> opening_;        // Restore: what is answered then
  std::optional<node::BeginCut> saving_;  // BeginCut
};

template <>
inline bool ServerNode::waits_for<node::Restored>() const {
  return opening_.has_value();
}
template <>
inline bool ServerNode::waits_for<node::CutBegun>() const {
  return saving_.has_value();
}

}  // namespace antdt::ps
