#include "trainer/ps/process/linked_server.h"

#include <utility>

#include "core/check.h"
#include "core/overloaded.h"
#include "trainer/ps/replica/copied.h"

namespace antdt::ps {
namespace {

constexpr const char* kLater = "a later checkpoint was begun";

}  // namespace

std::vector<std::string> linked::keys_in(const wire::PsServe& serve) {
  std::vector<std::string> keys(serve.servers.size());
  for (const wire::PsKey& k : serve.keys) {
    if (k.worker.role == 's' && k.worker.index < keys.size()) keys[k.worker.index] = k.key;
  }
  return keys;
}

LinkedServer::LinkedServer(linked::Start start)
    : index_(start.node.index),
      generation_(start.node.generation),
      endpoints_(std::move(start.endpoints)),
      keys_(std::move(start.keys)),
      linked_to_(endpoints_.size()),
      backup_(std::move(start.backup)),
      backup_key_(std::move(start.backup_key)),
      replica_(std::move(start.node), start.role, start.view) {}

// A backup sends nothing to other servers.
void LinkedServer::begin(linked::Effects& out) {
  if (speaks()) link_others(out);
  if (!backup_.empty()) out.emplace_back(linked::OpenBackupLink{backup_, backup_key_});
}

void LinkedServer::step(const linked::Input& input, linked::Effects& out) {
  std::visit([&](const auto& i) { on(i, out); }, input);
  check_invariants();
}

void LinkedServer::check_invariants() const {
  ANTDT_CHECK(stopped_.empty() || node().waits_for<node::WritingBegun>(),
              "{} checkpoints were stopped for one that does not begin", stopped_.size());
  ANTDT_CHECK(backup_.empty() || speaks(), "a backup of server {} has a backup itself", index_);
}

// -------------------------------------------------------------------------- links

// A link that leads to the right process is kept. What was on its way on a replaced link is sent
// again.
void LinkedServer::link_others(linked::Effects& out) {
  for (std::uint32_t other = 0; other < endpoints_.size(); ++other) {
    LinkedTo now{endpoints_[other], other < keys_.size() ? keys_[other] : std::string()};
    if (other == index_ || linked_to_[other] == now) continue;
    const bool replaced = linked_to_[other].has_value();
    out.emplace_back(linked::OpenLink{other, now.endpoint, now.key});
    linked_to_[other] = std::move(now);
    if (replaced) feed(node::Input(node::TellUnsent{other, 1}), out);
  }
}

void LinkedServer::on(const linked::GroupOrdered& input, linked::Effects& out) {
  const wire::PsServe& serve = input.serve;
  const bool next_view = serve.view > replica_.view();
  // The group has as many servers as it began with; otherwise the order does not say where they
  // are.
  if (serve.servers.size() == endpoints_.size()) {
    endpoints_ = serve.servers;
    keys_ = linked::keys_in(serve);
  }
  // A process that is promoted now had no links before.
  if (next_view || speaks()) link_others(out);
  if (next_view) take_up_view(serve, out);
  // A backup is not a home, and its node hears all of this from its primary.
  if (!speaks()) {
    out.emplace_back(node::AnswerServe{wire::PsServing{serve.number, {}}});
    return;
  }
  serve_asked_.insert(serve.number);
  feed(node::Input(node::ServeOrdered{serve}), out);
}

// From: alone, primary, backup, in an earlier view. To: alone, or sending its state to the process
// that joins. Later messages of the previous other process belong to an earlier view.
void LinkedServer::take_up_view(const wire::PsServe& serve, linked::Effects& out) {
  const bool joins = serve.replica == wire::ReplicaRole::kPrimary;
  if (!joins && serve.replica != wire::ReplicaRole::kAlone) {
    out.emplace_back(replica::BreakUp{"it is told to begin anew, and is a server already"});
    return;
  }
  const bool had_backup = !std::exchange(backup_, joins ? serve.other : std::string()).empty();
  backup_key_ = serve.other_key;
  if (!backup_.empty()) {
    out.emplace_back(linked::OpenBackupLink{backup_, backup_key_});
  } else if (had_backup) {
    out.emplace_back(linked::CloseBackupLink{});
  }
  joins ? feed(replica::BackupJoined{serve.view}, out)
        : feed(replica::BecameAlone{serve.view}, out);
}

// ------------------------------------------------------------------ what is heard

void LinkedServer::on(const replica::Input& input, linked::Effects& out) {
  const auto* of_node = std::get_if<node::Input>(&input);
  if (of_node == nullptr) return feed(input, out);
  if (const auto* ordered = std::get_if<node::SlicesOrdered>(of_node)) {
    cuts_asked_.insert(ordered->cut.number);
  } else if (const auto* begun = std::get_if<node::WritingBegun>(of_node)) {
    return begun_writing(*begun, out);
  } else if (const auto* written = std::get_if<node::SlicesWritten>(of_node)) {
    // From: writing. To: writes nothing. A checkpoint that was stopped has been answered.
    if (writing_ != written->number) return;
    writing_.reset();
  }
  feed(input, out);
}

void LinkedServer::on(const linked::CopyHeard& input, linked::Effects& out) {
  if (input.generation != generation_) return;
  const auto copied = from_wire(input.copied, generation_);
  if (!copied) {
    out.emplace_back(replica::BreakUp{copied.error().message});
    return;
  }
  primary_peer_ = input.peer;
  feed(*copied, out);
}

void LinkedServer::on(const linked::ImageHeard& input, linked::Effects& out) {
  if (input.generation != generation_) return;
  primary_peer_ = input.peer;
  feed(input.image, out);
}

void LinkedServer::on(const linked::CopyUnreadable& input, linked::Effects& out) {
  out.emplace_back(replica::BreakUp{input.error});
}

void LinkedServer::on(const linked::BackupAnswered& input, linked::Effects& out) {
  if (!backup_.empty()) feed(input.taken, out);
}

// ------------------------------------------------------------------- checkpoints

// To: writing; writes nothing, if it could not begin. The previous checkpoint ends when this one
// begins: whoever orders a later one does not wait for the earlier one any more, and may end the
// job once the later one is written.
void LinkedServer::begun_writing(const node::WritingBegun& begun, linked::Effects& out) {
  if (!begun.error.empty()) writing_.reset();
  feed(node::Input(begun), out);
  while (!stopped_.empty() && !node().waits_for<node::WritingBegun>()) {
    const std::uint64_t number = stopped_.back();
    stopped_.pop_back();
    feed(node::Input(node::SlicesWritten{number, {}, kLater}), out);
  }
}

// ------------------------------------------------------------------ what is wanted

void LinkedServer::feed(const replica::Input& input, linked::Effects& out) {
  replica_wants_.clear();
  replica_.step(input, replica_wants_);
  for (replica::Effect& effect : replica_wants_) {
    std::visit(Overloaded{
                   [&](node::Effect& e) { pass(std::move(e), out); },
                   [&](replica::EventCopied& e) {
                     if (!backup_.empty()) out.emplace_back(linked::SendCopy{to_wire(e)});
                   },
                   [&](wire::PsImage& e) {
                     if (!backup_.empty()) out.emplace_back(linked::SendImage{std::move(e)});
                   },
                   [&](replica::CopiesTaken& e) {
                     out.emplace_back(linked::AnswerPrimary{primary_peer_, e});
                   },
                   [&](auto& e) { out.emplace_back(std::move(e)); },
               },
               effect);
  }
}

void LinkedServer::pass(node::Effect effect, linked::Effects& out) {
  std::visit(Overloaded{
                 [&](ReplyTo& e) {
                   // A sender that asked the replaced primary asks again here.
                   if (!e.to.peer.empty()) out.emplace_back(std::move(e));
                 },
                 [&](node::TellServer& e) {
                   // While the group begins, some links may not exist yet; the message is repeated.
                   if (linked_to_[e.server]) out.emplace_back(std::move(e));
                 },
                 [&](node::AnswerCut& e) {
                   if (cuts_asked_.erase(e.saved.number) > 0) out.emplace_back(std::move(e));
                 },
                 [&](node::AnswerServe& e) {
                   const std::uint64_t number = e.serving.number;
                   const bool asked = serve_asked_.contains(number);
                   // Nobody waits for the answers to earlier orders any more.
                   serve_asked_.erase(serve_asked_.begin(), serve_asked_.upper_bound(number));
                   if (asked) out.emplace_back(std::move(e));
                 },
                 [&](node::WriteSlices& e) {
                   if (const auto before = std::exchange(writing_, e.number)) {
                     stopped_.push_back(*before);
                     out.emplace_back(linked::StopWriting{});
                   }
                   out.emplace_back(std::move(e));
                 },
                 [&](auto& e) { out.emplace_back(std::move(e)); },
             },
             effect);
}

}  // namespace antdt::ps
