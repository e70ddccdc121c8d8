#include "trainer/ps/server.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/overloaded.h"
#include "core/wire/envelope.h"
#include "trainer/ps/rows/rows.h"

namespace antdt::ps {
namespace {

wire::Refused invalid(std::string reason) {
  return {wire::RefusalCode::kInvalid, std::move(reason)};
}

constexpr const char* kFollows = "these servers follow the steps of a collective";

steps::Concluded concluded_in(const wire::PsConcluded& m) {
  return {m.generation, m.members, m.step, m.weight, m.rate, m.cut, m.directory};
}

Result<TableSpec::Init> parse_init(const std::string& name) {
  if (name == "zero") return TableSpec::Init::kZero;
  if (name == "uniform") return TableSpec::Init::kUniform;
  if (name == "normal") return TableSpec::Init::kNormal;
  return fail(ErrorKind::kUsage, "'{}' is no way to begin a row: use zero, uniform or normal",
              name);
}

Result<TableSpec> spec_of(const wire::PsTable& m, std::uint32_t widest) {
  if (m.width == 0 || m.width > widest) {
    return fail(ErrorKind::kUsage, "table '{}' has rows of {} floats; 1 to {} are possible", m.name,
                m.width, widest);
  }
  for (const double number : {m.learning_rate, m.weight_decay, m.l1, m.init_scale}) {
    if (!std::isfinite(number)) {
      return fail(ErrorKind::kUsage, "table '{}': a number is not finite", m.name);
    }
  }
  TableSpec spec;
  spec.name = m.name;
  spec.width = m.width;
  ANTDT_TRY(spec.rule.kind, parse_update_rule(m.rule));
  spec.rule.learning_rate = static_cast<float>(m.learning_rate);
  spec.rule.weight_decay = static_cast<float>(m.weight_decay);
  spec.rule.l1 = static_cast<float>(m.l1);
  if (spec.rule.kind == UpdateRule::Kind::kMean && !(m.learning_rate > 0 && m.learning_rate <= 1)) {
    return fail(ErrorKind::kUsage,
                "table '{}': its rows follow a mean by a share of {}, which must be above 0 and at "
                "most 1",
                m.name, m.learning_rate);
  }
  ANTDT_TRY(spec.init, parse_init(m.init));
  spec.init_scale = static_cast<float>(m.init_scale);
  return spec;
}

Result<std::vector<TableSpec>> specs_of(const std::vector<wire::PsTable>& tables,
                                        std::uint32_t widest) {
  std::vector<TableSpec> specs;
  for (const wire::PsTable& table : tables) {
    ANTDT_TRY(specs.emplace_back(), spec_of(table, widest));
  }
  return specs;
}

}  // namespace

// ---------------------------------------------------------------- who and what

Server::Worker* Server::worker_of(const Asker& from, std::vector<ReplyTo>& replies) {
  const auto found = workers_.find(from.member);
  if (found == workers_.end()) {
    replies.push_back(
        {from, wire::Refused{wire::RefusalCode::kStale, "this worker is not of the server group"}});
    return nullptr;
  }
  if (!store_) {
    replies.push_back({from, invalid("no tables are open: ps-open comes first")});
    return nullptr;
  }
  return &found->second;
}

void Server::add_workers(const std::vector<Member>& workers) {
  for (const Member member : workers) {
    if (left_.contains(member)) continue;
    const auto [at, added] = workers_.try_emplace(member);
    // Nobody waits for the first push of a newcomer.
    if (added) at->second.idle = version_ > first_version_;
  }
}

Result<std::vector<TableSpec>> Server::specs_in(const wire::PsOpen& open) {
  if (open.tables.size() > kMostTables) {
    return fail(ErrorKind::kUsage, "{} tables; at most {}", open.tables.size(), kMostTables);
  }
  return specs_of(open.tables, kWidest);
}

void Server::set_rate(double rate) {
  rate_ = static_cast<float>(rate);
  if (store_) store_->set_rate(rate_);
}

void Server::on(const Asker& from, const wire::PsOpen& m, std::vector<ReplyTo>& replies) {
  if (!workers_.contains(from.member)) {
    replies.push_back(
        {from, wire::Refused{wire::RefusalCode::kStale, "this worker is not of the server group"}});
    return;
  }
  auto specs = specs_in(m);
  if (!specs) {
    replies.push_back({from, invalid(specs.error().message)});
  } else if (!store_) {
    open_ = m;
    store_.emplace(std::move(*specs), m.seed);
    store_->set_rate(rate_);
    replies.push_back({from, wire::PsOpened{version_}});
  } else if (store_->tables() != *specs || open_.seed != m.seed) {
    replies.push_back(
        {from, invalid(fmt::format("{} has other tables than the workers before it; are the same "
                                   "program and job on every host?",
                                   from.member.worker))});
  } else {
    replies.push_back({from, wire::PsOpened{version_}});
  }
}

std::optional<Server::Rows> Server::release() {
  if (!store_) return std::nullopt;
  Rows rows{std::move(open_), std::move(*store_)};
  forget_store();
  return rows;
}

void Server::adopt(Rows rows) {
  open_ = std::move(rows.tables);
  store_.emplace(std::move(rows.store));
  store_->set_rate(rate_);
}

Result<std::vector<Server::Part>> Server::parts_of(const std::vector<wire::PsRows>& rows) const {
  std::vector<Part> parts;
  for (const wire::PsRows& r : rows) {
    if (r.table >= store_->tables().size()) {
      return fail(ErrorKind::kCorrupt, "table {} of {}", r.table, store_->tables().size());
    }
    if (!parts.empty() && parts.back().table >= r.table) {
      return fail(ErrorKind::kCorrupt, "the tables do not rise");
    }
    Part part;
    part.table = r.table;
    ANTDT_TRY(part.gradient.keys, keys_from_bytes(r.keys));
    ANTDT_TRY(
        part.gradient.values,
        floats_from_bytes(r.values, part.gradient.keys.size() * store_->tables()[r.table].width));
    parts.push_back(std::move(part));
  }
  return parts;
}

Status Server::begin_means(const std::vector<Part>& parts) {
  for (const Part& part : parts) {
    if (!is_mean(part.table)) continue;
    const TableSpec& table = store_->tables()[part.table];
    const auto [at, first] = means_.try_emplace(part.table, part.gradient.keys, table.width);
    if (first || at->second.keys() == part.gradient.keys) continue;
    return fail(ErrorKind::kCorrupt,
                "a replica with {} rows of table '{}', where that of another worker has {}",
                part.gradient.keys.size(), table.name, at->second.keys().size());
  }
  return {};
}

std::uint64_t Server::replica_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [table, mean] : means_) bytes += mean.bytes();
  return bytes;
}

void Server::on(const Asker& from, const wire::PsPut& m, std::vector<ReplyTo>& replies) {
  if (worker_of(from, replies) == nullptr) return;
  const auto parts = parts_of(m.rows);
  if (!parts) {
    replies.push_back({from, invalid(parts.error().message)});
    return;
  }
  for (const Part& part : *parts) {
    store_->put_new(part.table, part.gradient.keys, part.gradient.values);
  }
  replies.push_back({from, wire::Done{}});
}

// --------------------------------------------------------------------- pulling

std::uint64_t Server::slowest() const {
  std::optional<std::uint64_t> least;
  std::uint64_t most = 0;
  for (const auto& [member, worker] : workers_) {
    most = std::max(most, worker.applied);
    if (!worker.idle) least = std::min(least.value_or(worker.applied), worker.applied);
  }
  return least.value_or(most);
}

std::uint64_t Server::reached() const {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  switch (consistency_) {
    case Consistency::kBarrier:
      return version_;
    case Consistency::kBounded:
      for (const auto& [member, worker] : workers_) {
        if (!worker.idle) least = std::min(least, worker.applied);
      }
      return least;
    case Consistency::kUnbounded:
    case Consistency::kSteps:
      return least;
  }
  return least;
}

ServerReply Server::pulled(const std::vector<wire::PsRows>& wanted) {
  wire::PsPulled reply;
  reply.version = version_;
  reply.clock = slowest();
  for (const wire::PsRows& rows : wanted) {
    if (rows.table >= store_->tables().size()) {
      return invalid(fmt::format("table {} of {}", rows.table, store_->tables().size()));
    }
    const auto keys = keys_from_bytes(rows.keys);
    if (!keys) return invalid(keys.error().message);
    std::string& values = reply.values.emplace_back();
    values.resize(keys->size() * store_->tables()[rows.table].width * sizeof(float));
    store_->read(rows.table, *keys, values.data());
  }
  return reply;
}

void Server::on(const Asker& from, const wire::PsPull& m, std::vector<ReplyTo>& replies) {
  if (worker_of(from, replies) == nullptr) return;
  if (consistency_ == Consistency::kSteps) return replies.push_back({from, invalid(kFollows)});
  if (m.clock <= reached()) {
    replies.push_back({from, pulled(m.rows)});
    return;
  }
  // Only one pull of a worker waits; a repeated one replaces the one before.
  std::erase_if(waiting_, [&](const Waiting& w) { return w.from.member == from.member; });
  waiting_.push_back({from, m});
}

// All workers may wait, and this is called after each decision, so they are looked through once.
void Server::answer_waiting(std::vector<ReplyTo>& replies) {
  const std::uint64_t reached = waiting_.empty() ? 0 : this->reached();
  std::erase_if(waiting_, [&](const Waiting& w) {
    if (w.pull.clock > reached) return false;
    replies.push_back({w.from, pulled(w.pull.rows)});
    return true;
  });
  std::erase_if(waiting_idle_, [&](const WaitingIdle& w) {
    if (version_ < w.version) return false;
    replies.push_back({w.from, wire::PsIdled{version_, w.decided}});
    return true;
  });
}

// --------------------------------------------------------------------- pushing

bool Server::is_closed(const wire::PsPush& m) const {
  return consistency_ == Consistency::kBarrier && m.version < version_;
}

bool Server::has_taken(Member member, const wire::PsPush& m) const {
  const auto found = workers_.find(member);
  if (found == workers_.end() || !store_ || consistency_ == Consistency::kSteps) return false;
  const Worker& worker = found->second;
  return is_closed(m) || m.number <= worker.applied || worker.staged.contains(m.number);
}

void Server::on(const Asker& from, const wire::PsPush& m, std::vector<ReplyTo>& replies) {
  Worker* worker = worker_of(from, replies);
  if (worker == nullptr) return;
  if (consistency_ == Consistency::kSteps) return replies.push_back({from, invalid(kFollows)});
  if (is_closed(m) || m.number <= worker->applied) {
    replies.push_back({from, wire::PsStaged{m.number, is_closed(m) ? wire::PsStaging::kLate
                                                                   : wire::PsStaging::kStaged}});
    return;
  }
  if (worker->staged.contains(m.number)) {
    // What was staged stays: a backup has heard of nothing else (has_taken).
    return answer_staged(from, m.number, *worker, replies);
  }
  auto parts = parts_of(m.rows);
  if (!parts) {
    replies.push_back({from, invalid(parts.error().message)});
    return;
  }
  if (worker->staged.size() > kMostStaged) {
    replies.push_back(
        {from, wire::Refused{wire::RefusalCode::kFull,
                             fmt::format("{} pushes are staged already", worker->staged.size())}});
    return;
  }
  if (const Status fits = begin_means(*parts); !fits) {
    replies.push_back({from, invalid(fits.error().message)});
    return;
  }
  worker->idle = false;
  worker->staged[m.number] = {m.version, std::move(*parts)};
  answer_staged(from, m.number, *worker, replies);
}

void Server::answer_staged(const Asker& from, std::uint64_t number, Worker& worker,
                           std::vector<ReplyTo>& replies) {
  if (worker.staged.size() > kMostStaged) {
    worker.held = from;
    worker.held_number = number;
    return;
  }
  replies.push_back({from, wire::PsStaged{number, wire::PsStaging::kStaged}});
}

void Server::on(const Asker& from, const wire::PsIdle& m, std::vector<ReplyTo>& replies,
                std::uint64_t decided) {
  Worker* worker = worker_of(from, replies);
  if (worker == nullptr) return;
  worker->idle = true;
  // As with pulls, a repeated one replaces the one before.
  std::erase_if(waiting_idle_, [&](const auto& w) { return w.from.member == from.member; });
  waiting_idle_.push_back({from, m.version, decided});
  answer_waiting(replies);
}

// ----------------------------------------------------------------------- steps

void Server::on(const Asker& from, const wire::PsStepPull& m, std::vector<ReplyTo>& replies) {
  if (worker_of(from, replies) == nullptr) return;
  follow_steps(from, steps::RowsWanted{concluded_in(m.concluded)}, m.rows, replies);
}

void Server::on(const Asker& from, const wire::PsStepPush& m, std::vector<ReplyTo>& replies) {
  if (worker_of(from, replies) == nullptr) return;
  auto parts = parts_of(m.rows);
  if (!parts) return replies.push_back({from, invalid(parts.error().message)});
  follow_steps(from, steps::PartArrived{concluded_in(m.concluded), m.rank, std::move(*parts)}, {},
               replies);
}

// The step that a part is of is the one behind what its sender has concluded.
void Server::follow_steps(const Asker& from, const steps::Input& input,
                          const std::vector<wire::PsRows>& wanted, std::vector<ReplyTo>& replies) {
  if (consistency_ != Consistency::kSteps) {
    return replies.push_back({from, invalid("these servers decide about steps themselves")});
  }
  StepServer::Outcome outcome = steps_.take(input, *store_);
  version_ = steps_.steps().after().value;
  if (outcome.cut) due_ = Cut{outcome.cut->number, std::move(outcome.cut->directory)};
  const Overloaded answer{
      [&](const StepServer::Current&) {
        replies.push_back({from, pulled(wanted)});
      },
      [&](const StepServer::Staged&) {
        replies.push_back({from, wire::PsStaged{version_ + 1, wire::PsStaging::kStaged}});
      },
      [&](steps::RefuseStale& e) {
        replies.push_back({from, wire::Refused{wire::RefusalCode::kStale, std::move(e.why)}});
      },
      [&](steps::RefuseUnfit& e) {
        replies.push_back({from, invalid(std::move(e.why))});
      },
  };
  std::visit(answer, outcome.answer);
}

// ------------------------------------------------------------------- decisions

wire::PsApplied Server::apply(std::uint32_t home, const wire::PsDecision& decision,
                              std::vector<ReplyTo>& replies) {
  Home& of = homes_[home];
  const bool sound =
      decision.pushes.empty() || (decision.weight > 0 && std::isfinite(decision.weight));
  if (!sound || decision.number != of.decided + of.next.size() + 1) return {of.decided};
  of.next.push_back(decision);
  if (!due_) go_on(replies);
  return {of.decided};
}

bool Server::waits_for_cut(const Home& home) const {
  return newest_cut_ > cuts_made_ && home.marked == newest_cut_;
}

void Server::go_on(std::vector<ReplyTo>& replies) {
  due_.reset();
  const auto ready = [&](const auto& h) {
    return !h.second.next.empty() && !waits_for_cut(h.second);
  };
  while (!due_) {
    const auto next = std::ranges::find_if(homes_, ready);
    if (next == homes_.end()) return;
    Home& home = next->second;
    const wire::PsDecision decision = std::move(home.next.front());
    home.next.pop_front();
    ++home.decided;
    take(decision, replies);
    mark(home, decision);
  }
}

void Server::take(const wire::PsDecision& decision, std::vector<ReplyTo>& replies) {
  if (!decision.pushes.empty()) update(decision);
  forget_decided(replies);
  for (const wire::PsMember& left : decision.left) {
    const Member member{left.worker, left.attempt};
    workers_.erase(member);
    left_.insert(member);
    for (auto& [table, mean] : means_) mean.leave(member);
    const auto of_it = [&](const auto& waiting) { return waiting.from.member == member; };
    std::erase_if(waiting_, of_it);
    std::erase_if(waiting_idle_, of_it);
  }
  answer_waiting(replies);
}

void Server::mark(Home& home, const wire::PsDecision& marker) {
  if (marker.cut <= home.marked) return;
  home.marked = marker.cut;
  newest_cut_ = std::max(newest_cut_, marker.cut);
  const auto marked =
      std::ranges::count_if(homes_, [&](const auto& h) { return h.second.marked == newest_cut_; });
  if (marked < std::ptrdiff_t{home_count_}) return;
  cuts_made_ = newest_cut_;
  due_ = Cut{marker.cut, marker.directory};
}

void Server::update(const wire::PsDecision& decision) {
  ++version_;
  // By table, in the order of the pushes, so that the sum is the same on every server.
  std::map<std::uint32_t, std::vector<const Gradient*>> gradients;
  std::set<std::uint32_t> exchanged;
  for (const wire::PsPushId& push : decision.pushes) {
    const auto found = workers_.find({push.worker, push.attempt});
    if (found == workers_.end()) continue;
    Worker& worker = found->second;
    worker.applied = std::max(worker.applied, push.number);
    const auto staged = worker.staged.find(push.number);
    if (staged == worker.staged.end()) continue;  // this server has none of its keys
    const std::uint64_t stale = version_ - 1 - std::min(version_ - 1, staged->second.version);
    ++staleness_.pushes;
    staleness_.sum += stale;
    staleness_.most = std::max(staleness_.most, stale);
    for (Part& part : staged->second.parts) {
      if (is_mean(part.table)) {
        means_.at(part.table).exchange(found->first, std::move(part.gradient.values));
        exchanged.insert(part.table);
      } else {
        gradients[part.table].push_back(&part.gradient);
      }
    }
  }
  for (const std::uint32_t table : exchanged) {
    const ReplicaMean& mean = means_.at(table);
    store_->update(table, mean.keys(), mean.mean(), 1);
  }
  const auto scale = static_cast<float>(1 / decision.weight);
  for (const auto& [table, parts] : gradients) {
    if (parts.size() == 1) {
      store_->update(table, parts.front()->keys, parts.front()->values, scale);
    } else {
      const Gradient sum = merge(parts, store_->tables()[table].width);
      store_->update(table, sum.keys, sum.values, scale);
    }
  }
}

// A push that was not chosen for a closed step never will be.
void Server::forget_decided(std::vector<ReplyTo>& replies) {
  for (auto& [member, worker] : workers_) {
    std::erase_if(worker.staged, [&](const auto& s) {
      return s.first <= worker.applied ||
             (consistency_ == Consistency::kBarrier && s.second.version < version_);
    });
    if (!worker.held || worker.staged.size() > kMostStaged) continue;
    replies.push_back({*worker.held, wire::PsStaged{worker.held_number, wire::PsStaging::kStaged}});
    worker.held.reset();
  }
}

}  // namespace antdt::ps
