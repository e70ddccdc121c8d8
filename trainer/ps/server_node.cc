#include "trainer/ps/server_node.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <tuple>
#include <utility>

#include "core/check.h"
#include "trainer/ps/placement.h"

namespace antdt::ps {
namespace {

constexpr const char* kNothingToSave = "no worker has opened a table yet";

template <class T>
bool holds(const node::Event& event) {
  return std::holds_alternative<T>(event);
}

}  // namespace

ServerNode::ServerNode(node::Start start)
    : start_(std::move(start)),
      server_(start_.consistency, start_.version, homes_of(start_.consistency, start_.servers)),
      // The updates before the group are counted once (PsIdled).
      closer_(start_.consistency == Consistency::kBarrier, start_.index == 0 ? start_.version : 0),
      distribution_(start_.index, start_.servers) {
  add_workers(start_.workers);
}

node::Effects ServerNode::step(const node::Event& event) {
  ANTDT_CHECK(opening_.has_value() == holds<node::Restored>(event) &&
                  saving_.has_value() == holds<node::CutBegun>(event),
              "event {} while {}", event.index(),
              opening_  ? "a checkpoint is read"
              : saving_ ? "one begins"
                        : "nothing is read or written");
  std::visit([&](const auto& e) { on(e); }, event);
  begin_due_cuts();
  node::Effects effects = take_effects();
  // What finds no room now would find none at once.
  if (holds<node::NoRoom>(event)) return effects;
  for (node::Tell& tell : distribution_.unsaid()) effects.emplace_back(std::move(tell));
  if (opening_) effects.emplace_back(node::Restore{start_.restore});
  if (saving_) effects.emplace_back(*saving_);
  return effects;
}

node::Effects ServerNode::take_effects() {
  node::Effects effects;
  for (auto& decision : std::exchange(decided_, {})) {
    effects.emplace_back(node::Decided{std::move(decision)});
  }
  for (ReplyTo& reply : std::exchange(replies_, {})) effects.emplace_back(std::move(reply));
  for (auto& saved : std::exchange(saved_, {})) effects.emplace_back(node::Saved{std::move(saved)});
  if (serving_) effects.emplace_back(node::Serving{*std::exchange(serving_, std::nullopt)});
  return effects;
}

bool ServerNode::changes(const node::Event& event) const {
  if (holds<node::NoRoom>(event) || holds<node::Tick>(event)) return false;
  const auto* asked = std::get_if<node::Asked>(&event);
  return asked == nullptr || (asked->generation == start_.generation &&
                              !std::holds_alternative<node::Unreadable>(asked->body) &&
                              !std::holds_alternative<wire::PsPull>(asked->body));
}

// --------------------------------------------------------------------- workers

bool ServerNode::is_home_of(WorkerId worker) const {
  return home_of(start_.consistency, worker, start_.servers) == start_.index;
}

void ServerNode::add_workers(const std::vector<Member>& workers) {
  server_.add_workers(workers);
  std::vector<Member> own;
  std::ranges::copy_if(workers, std::back_inserter(own),
                       [&](Member m) { return is_home_of(m.worker); });
  Closer::Effects effects;
  closer_.add_workers(own, start_.backups, effects);
  run(effects);
}

void ServerNode::on(const node::Serve& event) {
  start_.backups = event.serve.backups;
  set_rate(event.serve.rate);
  std::vector<Member> workers;
  for (const wire::PsMember& m : event.serve.workers) workers.push_back({m.worker, m.attempt});
  add_workers(workers);
  Closer::Effects effects;
  for (const wire::PsMember& m : event.serve.leaving) {
    if (is_home_of(m.worker)) std::ignore = closer_.revoke({m.worker, m.attempt}, effects);
  }
  closer_.set_last_cut(event.serve.last_cut, effects);
  run(effects);
  serving_ = wire::PsServing{event.serve.number, left(event.serve.leaving)};
}

// A rate that is none leaves the one before.
void ServerNode::set_rate(double rate) {
  if (!std::isfinite(rate) || rate <= 0) return;
  rate_ = rate;
  server_.set_rate(rate);
}

std::vector<wire::PsPlaces> ServerNode::left(const std::vector<wire::PsMember>& members) const {
  std::vector<wire::PsPlaces> places;
  for (const wire::PsMember& m : members) {
    if (is_home_of(m.worker)) places.push_back(closer_.places({m.worker, m.attempt}));
  }
  return places;
}

wire::PsStats ServerNode::stats() const {
  wire::PsStats stats;
  if (const Store* store = server_.store()) {
    stats.rows = store->rows();
    stats.bytes = store->bytes();
  }
  stats.version = server_.version();
  stats.pushes_applied = closer_.counts().applied;
  stats.pushes_late = closer_.counts().late;
  stats.pushes_repeated = closer_.counts().repeated;
  stats.staleness_pushes = server_.staleness().pushes;
  stats.staleness_sum = server_.staleness().sum;
  stats.staleness_max = server_.staleness().most;
  return stats;
}

// ------------------------------------------------------------------- requests

void ServerNode::on(const node::Asked& event) {
  if (event.generation != start_.generation) {
    return reply(event.from,
                 wire::Refused{"stale", fmt::format("the server group is of generation {}, not {}",
                                                    start_.generation, event.generation)});
  }
  std::visit([&](const auto& body) { ask(event.from, body); }, event.body);
}

void ServerNode::ask(const Asker& from, const wire::PsOpen& m) {
  const bool first = server_.store() == nullptr;
  server_.on(from, m, replies_);
  if (!first || server_.store() == nullptr || start_.restore.empty()) return;
  opening_ = std::move(replies_.back());
  replies_.pop_back();
}

void ServerNode::on(const node::Restored& event) {
  ReplyTo opened = *std::exchange(opening_, std::nullopt);
  if (!event.error.empty()) {
    server_.forget_store();
    opened.body = wire::Refused{"corrupt", event.error};
  }
  replies_.push_back(std::move(opened));
}

void ServerNode::ask(const Asker& from, const wire::PsIdle& m) {
  // First the step that waited for nobody else: the answer counts it.
  Closer::Effects effects;
  closer_.idle(from.member, effects);
  run(effects);
  server_.on(from, m, replies_, closer_.updates());
}

void ServerNode::ask(const Asker& from, const wire::PsCommit& m) {
  committing_[from.member] = from;
  Closer::Effects effects;
  closer_.commit(from.member, m, effects);
  run(effects);
}

void ServerNode::run(const Closer::Effects& effects) {
  for (const Closer::Effect& effect : effects) {
    if (const auto* decision = std::get_if<wire::PsDecision>(&effect)) {
      decided_.push_back(*decision);
      // Applied here first: whoever hears of it and pulls from here sees it, unless it
      // waits for a cut.
      std::ignore = server_.apply(start_.index, *decision, replies_);
      distribution_.add(*decision);
    } else if (const auto* a = std::get_if<Closer::Answer>(&effect)) {
      answer_commit(a->to, a->decided);
    } else {
      const auto& refuse = std::get<Closer::Refuse>(effect);
      answer_commit(refuse.to, refuse.refused);
    }
  }
}

void ServerNode::answer_commit(Member member, ServerReply body) {
  const auto asker = committing_.find(member);
  if (asker == committing_.end()) return;
  reply(asker->second, std::move(body));
  committing_.erase(asker);
}

// ------------------------------------------------------------------ decisions

void ServerNode::ask(const Asker& from, const wire::PsDecision& m) {
  const WorkerId home = from.member.worker;
  if (home.role != 's' || home.index == start_.index || home.index >= start_.servers) {
    return reply(from, wire::Refused{"invalid", "not a decision of this group"});
  }
  std::ignore = server_.apply(home.index, m, replies_);
  // A home that hears of a cut before it is told to make it does not wait for that:
  // decisions are held back until every home has put its marker.
  if (m.cut != 0) mark_cut(m.cut, m.directory);
  reply(from, wire::PsApplied{server_.decided(home.index)});
}

void ServerNode::on(const node::Acknowledged& event) {
  distribution_.acknowledged(event.server, event.applied.number);
}

void ServerNode::on(const node::NoRoom& event) {
  distribution_.no_room(event.server, event.number);
}

void ServerNode::on(const node::Tick&) { distribution_.look(); }

// ---------------------------------------------------------------- checkpoints

std::vector<std::uint32_t> ServerNode::own_slices() const {
  std::vector<std::uint32_t> own;
  for (std::uint32_t slice = 0; slice < kSlices; ++slice) {
    if (server_of_slice(slice, start_.servers) == start_.index) own.push_back(slice);
  }
  return own;
}

// What hinders the order of a checkpoint; empty: nothing.
std::string ServerNode::hindrance(std::uint64_t number) const {
  if (number == 0) return "checkpoints are numbered from 1";
  if (cuts_.overtaken(number)) return CutOrders::kOvertaken;
  if (server_.store() == nullptr) return kNothingToSave;
  return {};
}

void ServerNode::on(const node::OrderCut& event) {
  const std::uint64_t number = event.cut.number;
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
  mark_cut(number, event.cut.directory);
}

// Where this is a home, what it decides from now on is not in it.
void ServerNode::mark_cut(std::uint64_t number, const std::string& directory) {
  if (start_.index >= homes_of(start_.consistency, start_.servers)) return;
  Closer::Effects effects;
  closer_.cut(number, directory, effects);
  if (effects.empty()) return;
  cuts_.marked(number, closer_.places());
  run(effects);
}

// One at a time: behind a cut waits what was decided after it, and the next one.
void ServerNode::begin_due_cuts() {
  while (server_.due() && !saving_) {
    const Server::Cut due = *server_.due();
    for (wire::PsSaved& passed : cuts_.begun(due.number, server_.version())) {
      saved_.push_back(std::move(passed));
    }
    if (server_.store() != nullptr) {
      saving_ = node::BeginCut{due.number, due.directory};
    } else {
      saved_.push_back(cuts_.failed(due.number, kNothingToSave));
      server_.go_on(replies_);
    }
  }
}

void ServerNode::on(const node::CutBegun& event) {
  saving_.reset();
  if (event.error.empty()) {
    cuts_.paused(event.number, event.pause_us);
  } else {
    saved_.push_back(cuts_.failed(event.number, event.error));
  }
  server_.go_on(replies_);
}

void ServerNode::on(const node::CutWritten& event) {
  saved_.push_back(event.error.empty() ? cuts_.written(event.number, event.files)
                                       : cuts_.failed(event.number, event.error));
}

}  // namespace antdt::ps
