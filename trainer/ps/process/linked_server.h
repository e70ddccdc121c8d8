// One server of a group with its links: to the workers and servers that send requests, to the other
// servers, and to its backup. It contains the server itself (replica/replica.h).
//
//   writes nothing ──WriteSlices──> writing ──SlicesWritten──> writes nothing
//   writing ──(a later checkpoint)──StopWriting, WriteSlices──> writing
//
// A link to another end point than the newest order names is replaced; what was on its way is sent
// again on the new link. A server that is moved to a new view begins it with a new link to its
// backup, if it has one.
//
// A value without I/O or clock; its shell feeds node::TimePassed every ServerNode::kAgain.
// ReadSlices and WriteSlices are answered as in ServerNode. Nothing is durable here.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/ids.h"
#include "core/wire/servers/ps_messages.h"
#include "trainer/ps/replica/replica.h"

namespace antdt::ps {

namespace linked {

// ---- inputs, besides those of the replica and its node, which come from its links and files.
// CopyHeard: an input of the node that the primary copied to this backup, over the link to `peer`.
struct CopyHeard {
  std::string peer;
  Generation generation;
  wire::PsCopied copied;
};
// A piece of the primary's state, for a backup that joins.
struct ImageHeard {
  std::string peer;
  Generation generation;
  wire::PsImage image;
};
// The primary sent a copy that this process cannot read.
struct CopyUnreadable {
  std::string error;
};
// The backup has taken what was copied to it.
struct BackupAnswered {
  wire::PsTaken taken;
};
// From the job daemon: the members of the group, and where all are.
struct GroupOrdered {
  wire::PsServe serve;
};
using Input = std::variant<replica::Input, CopyHeard, ImageHeard, CopyUnreadable, BackupAnswered,
                           GroupOrdered>;
// An input of the node inside.
[[nodiscard]] inline Input of_node(node::Input input) { return replica::Input(std::move(input)); }

// ---- effects, besides those of the node and of the replica that need no link. OpenLink: replaces
// the link to that server, if there is one.
struct OpenLink {
  std::uint32_t server = 0;
  std::string endpoint;
  std::string key;  // for tcp
};
// Replaces the link to the backup, if there is one.
struct OpenBackupLink {
  std::string endpoint;
  std::string key;
};
struct CloseBackupLink {};
// To the backup; if there is no room it is sent again later.
struct SendCopy {
  wire::PsCopied copied;
};
struct SendImage {
  wire::PsImage image;
};
// To the primary, over the link on which it was last heard.
struct AnswerPrimary {
  std::string peer;
  wire::PsTaken taken;
};
// The checkpoint that is being written is not needed any more.
struct StopWriting {};
using Effect =
    std::variant<ReplyTo, node::RecordDecision, node::TellServer, node::AnswerCut,
                 node::AnswerServe, node::ReadSlices, node::WriteSlices, replica::BreakUp,
                 replica::KeepState, replica::MakePiece, replica::DropState, OpenLink,
                 OpenBackupLink, CloseBackupLink, SendCopy, SendImage, AnswerPrimary, StopWriting>;
using Effects = std::vector<Effect>;

// The server's part in a group, at the beginning.
struct Start {
  node::Start node;
  replica::Role role = replica::Role::kAlone;
  std::uint64_t view = 0;
  std::vector<std::string> endpoints;  // of the servers, by index
  std::vector<std::string> keys = {};  // for tcp: public keys of the servers, by index
  std::string backup = {};             // for a primary: where its backup is
  std::string backup_key = {};
};
// The public keys of the servers, by index, in the order for one of them.
[[nodiscard]] std::vector<std::string> keys_in(const wire::PsServe& serve);

}  // namespace linked

class LinkedServer {
 public:
  explicit LinkedServer(linked::Start start);

  // Adds the links with which it begins. Must be called before the first step.
  void begin(linked::Effects& out);
  // Appends to `out`.
  void step(const linked::Input& input, linked::Effects& out);

  // Whether workers and other servers hear this process.
  [[nodiscard]] bool speaks() const { return replica_.speaks(); }
  [[nodiscard]] const Replica& replica() const { return replica_; }
  // For code that reads and writes slices, or moves rows from group to group.
  [[nodiscard]] ServerNode& node() { return replica_.node(); }
  [[nodiscard]] const ServerNode& node() const { return replica_.node(); }
  [[nodiscard]] std::uint32_t index() const { return index_; }
  [[nodiscard]] Generation generation() const { return generation_; }

 private:
  // The process to which a link leads. Over tcp the next one of that host may listen at the same
  // end point, with a key of its own.
  struct LinkedTo {
    std::string endpoint;
    std::string key;
    bool operator==(const LinkedTo&) const = default;
  };
  void on(const replica::Input& input, linked::Effects& out);
  void on(const linked::CopyHeard& input, linked::Effects& out);
  void on(const linked::ImageHeard& input, linked::Effects& out);
  void on(const linked::CopyUnreadable& input, linked::Effects& out);
  void on(const linked::BackupAnswered& input, linked::Effects& out);
  void on(const linked::GroupOrdered& input, linked::Effects& out);

  void begun_writing(const node::WritingBegun& begun, linked::Effects& out);
  void link_others(linked::Effects& out);
  void take_up_view(const wire::PsServe& serve, linked::Effects& out);
  void feed(const replica::Input& input, linked::Effects& out);
  void pass(node::Effect effect, linked::Effects& out);
  void check_invariants() const;

  const std::uint32_t index_;
  const Generation generation_;
  std::vector<std::string> endpoints_;
  std::vector<std::string> keys_;
  std::vector<std::optional<LinkedTo>> linked_to_;  // for each server; empty: no link
  std::string backup_;                  // end point of the link; empty: none
  std::string backup_key_;
  Replica replica_;
  replica::Effects replica_wants_;        // effects of the present step; kept for its memory
  std::string primary_peer_;              // the link on which the primary was last heard
  std::set<std::uint64_t> serve_asked_;   // numbers of orders that are not answered yet
  std::set<std::uint64_t> cuts_asked_;    // checkpoints about which the job daemon must be told
  std::optional<std::uint64_t> writing_;  // number of the checkpoint
  std::vector<std::uint64_t>
      stopped_;  // checkpoints that it replaced and that are not answered yet
};

}  // namespace antdt::ps
