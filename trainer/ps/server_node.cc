#include "trainer/ps/server_node.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <tuple>
#include <utility>

#include "core/check.h"
#include "core/wire/envelope.h"
#include "trainer/ps/placement.h"

namespace antdt::ps {
namespace {

constexpr const char* kNothingToSave = "no worker has opened a table yet";

template <class T>
bool holds(const node::Input& input) {
  return std::holds_alternative<T>(input);
}

}  // namespace

ServerNode::ServerNode(node::Start start)
    : start_(std::move(start)),
      server_(start_.consistency, start_.version, homes_of(start_.consistency, start_.servers)),
      home_(start_.consistency, start_.index, start_.servers, start_.version) {
  server_.add_workers(start_.workers);
  home_.add_workers(start_.workers, start_.backups, turn());
}

void ServerNode::step(const node::Input& input, node::Effects& out) {
  ANTDT_CHECK(opening_.has_value() == holds<node::SlicesRead>(input) &&
                  saving_.has_value() == holds<node::WritingBegun>(input),
              "input {} while {}", input.index(),
              opening_  ? "a checkpoint is read"
              : saving_ ? "one begins"
                        : "nothing is read or written");
  std::visit([&](const auto& i) { on(i); }, input);
  begin_due_cuts();
  ANTDT_CHECK(!opening_ || !saving_, "a checkpoint is read while one begins");
  take_effects(out);
  // If it were sent again at once, there would be no room again.
  if (holds<node::TellUnsent>(input)) return;
  for (node::TellServer& tell : home_.distribution().unsaid()) out.emplace_back(std::move(tell));
  if (opening_) out.emplace_back(node::ReadSlices{start_.restore});
  if (saving_) out.emplace_back(*saving_);
}

void ServerNode::take_effects(node::Effects& out) {
  for (auto& decision : std::exchange(decided_, {})) {
    out.emplace_back(node::RecordDecision{std::move(decision)});
  }
  for (ReplyTo& reply : std::exchange(replies_, {})) out.emplace_back(std::move(reply));
  for (auto& saved : std::exchange(saved_, {})) out.emplace_back(node::AnswerCut{std::move(saved)});
  if (serving_) out.emplace_back(node::AnswerServe{*std::exchange(serving_, std::nullopt)});
}

bool ServerNode::changes(const node::Input& input) const {
  if (holds<node::TellUnsent>(input) || holds<node::TimePassed>(input)) return false;
  const auto* asked = std::get_if<node::RequestHeard>(&input);
  if (asked == nullptr) return true;
  const auto* push = std::get_if<wire::PsPush>(&asked->body);
  return asked->generation == start_.generation &&
         !std::holds_alternative<node::Unreadable>(asked->body) &&
         !std::holds_alternative<wire::PsPull>(asked->body) &&
         !(push != nullptr && server_.has_taken(asked->from.member, *push));
}

// --------------------------------------------------------------------- workers

void ServerNode::on(const node::ServeOrdered& input) {
  const wire::PsServe& serve = input.serve;
  start_.backups = serve.backups;
  // An invalid rate leaves the previous one.
  if (is_rate(serve.rate)) server_.set_rate(rate_ = serve.rate);
  std::vector<Member> workers;
  for (const wire::PsMember& m : serve.workers) workers.push_back({m.worker, m.attempt});
  server_.add_workers(workers);
  home_.add_workers(workers, serve.backups, turn());
  home_.revoke(serve.leaving, turn());
  home_.set_last_cut(serve.last_cut, turn());
  serving_ = wire::PsServing{serve.number, left(serve.leaving)};
}

bool ServerNode::is_rate(double rate) { return std::isfinite(rate) && rate > 0; }

wire::PsStats ServerNode::stats() const {
  wire::PsStats stats;
  if (const Store* store = server_.store()) {
    stats.rows = store->rows();
    stats.bytes = store->bytes() + server_.replica_bytes();
  }
  stats.version = server_.version();
  stats.pushes_applied = home_.counts().applied;
  stats.pushes_late = home_.counts().late;
  stats.pushes_repeated = home_.counts().repeated;
  stats.staleness_pushes = server_.staleness().pushes;
  stats.staleness_sum = server_.staleness().sum;
  stats.staleness_max = server_.staleness().most;
  return stats;
}

// ------------------------------------------------------------------- requests

void ServerNode::on(const node::RequestHeard& input) {
  if (input.generation != start_.generation) {
    return reply(input.from,
                 wire::Refused{wire::RefusalCode::kStale,
                               fmt::format("the server group is of generation {}, not {}",
                                           start_.generation, input.generation)});
  }
  std::visit([&](const auto& body) { ask(input.from, body); }, input.body);
}

void ServerNode::ask(const Asker& from, const wire::PsOpen& m) {
  const bool first = server_.store() == nullptr;
  server_.on(from, m, replies_);
  if (!first || server_.store() == nullptr || start_.restore.empty()) return;
  opening_ = std::move(replies_.back());
  replies_.pop_back();
}

void ServerNode::on(const node::SlicesRead& input) {
  ReplyTo opened = *std::exchange(opening_, std::nullopt);
  if (!input.error.empty()) {
    server_.forget_store();
    opened.body = wire::Refused{input.refusal, input.error};
  }
  replies_.push_back(std::move(opened));
}

void ServerNode::ask(const Asker& from, const wire::PsIdle& m) {
  // First the step that waited only for this worker is closed, so that the answer counts it.
  home_.idle(from.member, turn());
  server_.on(from, m, replies_, home_.updates());
}

void ServerNode::ask(const Asker& from, const wire::PsCommit& m) { home_.commit(from, m, turn()); }

// ------------------------------------------------------------------ decisions

void ServerNode::ask(const Asker& from, const wire::PsDecision& m) {
  const WorkerId home = from.member.worker;
  if (home.role != 's' || home.index == start_.index || home.index >= start_.servers) {
    return reply(from, wire::Refused{wire::RefusalCode::kInvalid, "not a decision of this group"});
  }
  std::ignore = server_.apply(home.index, m, replies_);
  // A home that hears of a cut before it is ordered to make it does not wait for the order, because
  // decisions are held back until every home has sent its marker.
  if (m.cut != 0) mark_cut(m.cut, m.directory);
  reply(from, wire::PsApplied{server_.decided(home.index)});
}

void ServerNode::on(const node::DecisionsApplied& input) {
  home_.distribution().acknowledged(input.server, input.applied.number);
}

void ServerNode::on(const node::TellUnsent& input) {
  home_.distribution().no_room(input.server, input.number);
}

void ServerNode::on(const node::TimePassed&) { home_.distribution().look(); }

// ---------------------------------------------------------------- checkpoints

std::vector<std::uint32_t> ServerNode::own_slices() const {
  std::vector<std::uint32_t> own;
  for (std::uint32_t slice = 0; slice < kSlices; ++slice) {
    if (server_of_slice(slice, start_.servers) == start_.index) own.push_back(slice);
  }
  return own;
}

// Why the order of a checkpoint cannot be followed; empty: it can.
std::string ServerNode::hindrance(std::uint64_t number) const {
  if (number == 0) return "checkpoints are numbered from 1";
  if (cuts_.overtaken(number)) return CutOrders::kOvertaken;
  if (server_.store() == nullptr) return kNothingToSave;
  return {};
}

void ServerNode::on(const node::SlicesOrdered& input) {
  const std::uint64_t number = input.cut.number;
  if (const wire::PsSaved* saved = cuts_.outcome(number)) {
    saved_.push_back(*saved);
    return;
  }
  if (std::string error = hindrance(number); !error.empty()) {
    wire::PsSaved& saved = saved_.emplace_back();
    saved.number = number;
    saved.error = std::move(error);
    return;
  }
  cuts_.know(number);
  // Where members decide, they say after which step it is made.
  if (start_.consistency != Consistency::kSteps) mark_cut(number, input.cut.directory);
}

// If this server is a home, the cut does not contain what it decides from now on.
void ServerNode::mark_cut(std::uint64_t number, const std::string& directory) {
  if (home_.mark_cut(number, directory, turn())) cuts_.marked(number, home_.places());
}

// One at a time: later decisions, and the next cut, wait behind a cut.
void ServerNode::begin_due_cuts() {
  while (server_.due() && !saving_) {
    const Server::Cut due = *server_.due();
    for (wire::PsSaved& passed : cuts_.begun(due.number, server_.version())) {
      saved_.push_back(std::move(passed));
    }
    if (server_.store() != nullptr) {
      saving_ = node::WriteSlices{due.number, due.directory};
    } else {
      saved_.push_back(cuts_.failed(due.number, kNothingToSave));
      server_.go_on(replies_);
    }
  }
}

void ServerNode::on(const node::WritingBegun& input) {
  saving_.reset();
  if (input.error.empty()) {
    cuts_.paused(input.number, input.pause_us);
  } else {
    saved_.push_back(cuts_.failed(input.number, input.error));
  }
  server_.go_on(replies_);
}

void ServerNode::on(const node::SlicesWritten& input) {
  saved_.push_back(input.error.empty() ? cuts_.written(input.number, input.files)
                                       : cuts_.failed(input.number, input.error));
}

}  // namespace antdt::ps
