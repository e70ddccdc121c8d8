// One whole parameter server of a group: what it holds (server.h), what it decides and tells the
// other servers as a home (home.h), and the checkpoints that it is ordered to make (cut_orders.h).
//
//   ready ──(the first worker opens tables, and there is a checkpoint)──> reading
//   reading ──SlicesRead──> ready
//   ready ──(the markers of all homes are here)──> forking ──WritingBegun──> ready
//
// A value whose shell carries out its effects in order. There is no clock: the same inputs give the
// same state, to the last bit, and the same effects. If a file must be read or written, the effect
// for that is the last of its step, and the shell's answer is the next input:
//
//   ReadSlices   fills store() with the slices of a checkpoint  -> SlicesRead
//   WriteSlices  store() as it is now is what is written        -> WritingBegun, later
//                                                                  SlicesWritten
//
// Nothing is durable except what is written then.
//
// What a server has acknowledged is not sent to it again. A message that was lost on its way is
// sent again at the second TimePassed after it, so a shell ticks every kAgain.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/wire/envelope.h"
#include "core/wire/servers/ps_messages.h"
#include "trainer/ps/cut_orders.h"
#include "trainer/ps/home.h"
#include "trainer/ps/server.h"

namespace antdt::ps {

namespace node {

// ---- inputs. Unreadable: a message that cannot be read, and what to answer to its sender.
struct Unreadable {
  wire::Refused refused;
};
using Request =
    std::variant<Unreadable, wire::PsOpen, wire::PsPut, wire::PsPull, wire::PsPush, wire::PsCommit,
                 wire::PsIdle, wire::PsDecision, wire::PsStepPull, wire::PsStepPush>;
// From a worker, or from another server.
struct RequestHeard {
  Asker from;
  Generation generation;
  Request body;
};
// That server has applied this home's decisions up to this number.
struct DecisionsApplied {
  std::uint32_t server = 0;
  wire::PsApplied applied;
};
// An earlier TellServer could not be sent.
struct TellUnsent {
  std::uint32_t server = 0;
  std::uint64_t number = 0;
};
// From the job daemon: workers to add, and in `leaving` those whose pushes are refused from now on.
// It undoes nothing of an earlier one.
struct ServeOrdered {
  wire::PsServe serve;
};
// From the job daemon. If it is repeated, the checkpoint is made once and answered again.
struct SlicesOrdered {
  wire::PsCut cut;
};
struct SlicesRead {
  std::string error;  // empty: the slices are in the store
  // With an error, the answer to who asked. kIo: it is the disk or the file server, and may pass.
  wire::RefusalCode refusal = wire::RefusalCode::kCorrupt;
};
struct WritingBegun {
  std::uint64_t number = 0;
  std::uint64_t pause_us = 0;
  std::string error;  // empty: SlicesWritten follows
};
struct SlicesWritten {
  std::uint64_t number = 0;
  std::vector<wire::CheckpointFile> files;
  std::string error;
};
struct TimePassed {};
using Input = std::variant<RequestHeard, DecisionsApplied, TellUnsent, ServeOrdered, SlicesOrdered,
                           SlicesRead, WritingBegun, SlicesWritten, TimePassed>;

// ---- effects. RecordDecision, for listeners: a decision of this home, before it is sent anywhere.
struct RecordDecision {
  wire::PsDecision decision;
};
struct ReadSlices {
  std::string directory;
};
struct WriteSlices {
  std::uint64_t number = 0;
  std::string directory;
};
// To the job daemon, if it ordered the checkpoint.
struct AnswerCut {
  wire::PsSaved saved;
};
// To the job daemon, which sent ServeOrdered.
struct AnswerServe {
  wire::PsServing serving;
};
using TellServer = Distribution::Tell;
using Effect = std::variant<ReplyTo, RecordDecision, TellServer, AnswerCut, AnswerServe, ReadSlices,
                            WriteSlices>;
using Effects = std::vector<Effect>;

// What it is told at its beginning.
struct Start {
  Generation generation{1};  // messages of other generations change nothing
  std::uint32_t index = 0;
  std::uint32_t servers = 1;
  Consistency consistency = Consistency::kBarrier;
  std::vector<Member> workers;
  std::uint32_t backups = 0;
  // The checkpoint from which the group goes on (empty: none), and its PsSaved::version.
  std::string restore;
  std::uint64_t version = 0;
};

}  // namespace node

class ServerNode {
 public:
  static constexpr Duration kAgain = std::chrono::milliseconds(500);

  explicit ServerNode(node::Start start);

  // Appends to `out`.
  void step(const node::Input& input, node::Effects& out);

  // Whether a backup must take this input, too. Inputs that only read, and repeated ones, change
  // nothing that anyone can observe.
  [[nodiscard]] bool changes(const node::Input& input) const;
  // The effect that the shell must still answer: `E` is Restored or CutBegun.
  template <class E>
  [[nodiscard]] bool waits_for() const;
  [[nodiscard]] std::uint64_t beginning() const { return saving_ ? saving_->number : 0; }
  // Checkpoints that were begun and are not written yet.
  [[nodiscard]] std::vector<std::uint64_t> writing() const { return cuts_.writing(); }

  // What is applied of those of these workers whose home this server is.
  [[nodiscard]] std::vector<wire::PsPlaces> left(const std::vector<wire::PsMember>& members) const {
    return home_.left(members);
  }
  // All values except requests and service times, which only the shell knows.
  [[nodiscard]] wire::PsStats stats() const;
  [[nodiscard]] std::uint64_t version() const { return server_.version(); }
  [[nodiscard]] const Server& server() const { return server_; }
  // Null until a worker has opened it. For code that reads and writes slices.
  [[nodiscard]] Store* store() { return server_.store(); }
  [[nodiscard]] const Store* store() const { return server_.store(); }
  [[nodiscard]] std::vector<std::uint32_t> own_slices() const;
  // Passes the rows of a group that is over to the node of the next group, before that node's first
  // input; it then reads no checkpoint. The node that gave them up must not be used any more.
  [[nodiscard]] std::optional<Server::Rows> release() { return server_.release(); }
  void adopt(Server::Rows rows) { server_.adopt(std::move(rows)); }

  // The state without rows, between two inputs (state_copy.h). restore() takes it over into a node
  // of the same group that has taken no input; after an error (kCorrupt) that node must not be used
  // any more.
  [[nodiscard]] NodeImage image() const;
  [[nodiscard]] Status restore(const NodeImage& image);

 private:
  void on(const node::RequestHeard& event);
  void on(const node::DecisionsApplied& event);
  void on(const node::TellUnsent& event);
  void on(const node::ServeOrdered& event);
  void on(const node::SlicesOrdered& event);
  void on(const node::SlicesRead& event);
  void on(const node::WritingBegun& event);
  void on(const node::SlicesWritten& event);
  void on(const node::TimePassed& event);

  void ask(const Asker& from, const node::Unreadable& m) { reply(from, m.refused); }
  void ask(const Asker& from, const wire::PsOpen& m);
  template <class M>  // a request that the server answers by itself
  void ask(const Asker& from, const M& m) {
    server_.on(from, m, replies_);
  }
  void ask(const Asker& from, const wire::PsCommit& m);
  void ask(const Asker& from, const wire::PsIdle& m);
  void ask(const Asker& from, const wire::PsDecision& m);

  [[nodiscard]] Home::Turn turn() { return {server_, decided_, replies_}; }
  void mark_cut(std::uint64_t number, const std::string& directory);
  void begin_due_cuts();
  void reply(const Asker& to, ServerReply body) { replies_.push_back({to, std::move(body)}); }
  [[nodiscard]] std::string hindrance(std::uint64_t number) const;
  void take_effects(node::Effects& out);
  [[nodiscard]] static bool is_rate(double rate);

  node::Start start_;
  double rate_ = 1;  // factor of the learning rates
  Server server_;
  Home home_;
  CutOrders cuts_;
  // Effects of this step.
  std::vector<wire::PsDecision> decided_;
  std::vector<ReplyTo> replies_;
  std::vector<wire::PsSaved> saved_;
  std::optional<wire::PsServing> serving_;
  // The effect that the shell must still answer; no other input may come before the answer.
  std::optional<ReplyTo> opening_;           // for ReadSlices: the request that is answered then
  std::optional<node::WriteSlices> saving_;  // for WriteSlices
};

template <>
inline bool ServerNode::waits_for<node::SlicesRead>() const {
  return opening_.has_value();
}
template <>
inline bool ServerNode::waits_for<node::WritingBegun>() const {
  return saving_.has_value();
}

}  // namespace antdt::ps
