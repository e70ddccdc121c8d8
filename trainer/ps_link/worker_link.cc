#include "trainer/ps_link/worker_link.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "core/check.h"
#include "trainer/ps/placement.h"
#include "trainer/ps/rows/rows.h"

namespace antdt::ps {

Result<std::unique_ptr<WorkerLink>> WorkerLink::connect(transport::Context& context, Peers peers,
                                                        Member self) {
  ANTDT_TRY(auto requests, Requests::connect(context, peers, self));
  return std::unique_ptr<WorkerLink>(new WorkerLink(peers, self, std::move(requests)));
}

WorkerLink::WorkerLink(const Peers& peers, Member self, std::unique_ptr<Requests> requests)
    : consistency_(peers.consistency),
      home_(home_of(peers.consistency, self.worker, peers.servers.size())),
      requests_(std::move(requests)) {}

WorkerLink::~WorkerLink() = default;

// -------------------------------------------------------------------- requests

bool WorkerLink::all_answered(const std::vector<Requests::Id>& asked) const {
  return std::ranges::all_of(asked, [&](Requests::Id id) { return requests_->answered(id); });
}

template <class Ask>
std::vector<Requests::Id> WorkerLink::say_all(const std::vector<Ask>& messages) {
  std::vector<Requests::Id> asked;
  for (std::uint32_t s = 0; s < messages.size(); ++s) {
    asked.push_back(requests_->say(s, messages[s]));
  }
  return asked;
}

template <class Reply>
Result<std::vector<Reply>> WorkerLink::take_all(const std::vector<Requests::Id>& asked) {
  std::vector<Reply> replies;
  for (const Requests::Id id : asked) {
    ANTDT_TRY(replies.emplace_back(), requests_->take<Reply>(id));
  }
  return replies;
}

template <class Reply, class Ask>
Result<std::vector<Reply>> WorkerLink::ask_all(const std::vector<Ask>& messages) {
  ANTDT_RETURN_IF_ERROR(requests_->check_open());
  const auto asked = say_all(messages);
  while (!all_answered(asked)) ANTDT_RETURN_IF_ERROR(wait());
  return take_all<Reply>(asked);
}

Status WorkerLink::advance() {
  ANTDT_RETURN_IF_ERROR(requests_->check_open());
  requests_->receive();
  return advance_pushes();
}

Status WorkerLink::wait() {
  ANTDT_RETURN_IF_ERROR(requests_->wait());
  return advance_pushes();
}

Result<std::uint64_t> WorkerLink::open(const wire::PsOpen& tables) {
  widths_.clear();
  for (const wire::PsTable& table : tables.tables) widths_.push_back(table.width);
  ANTDT_TRY(const auto opened, ask_all<wire::PsOpened>(std::vector(requests_->servers(), tables)));
  return std::ranges::max(opened, {}, &wire::PsOpened::version).version;
}

Result<std::uint64_t> WorkerLink::idle() {
  ANTDT_CHECK(order_.empty(), "idle with {} pushes under way", order_.size());
  ANTDT_TRY(const auto idled,
            ask_all<wire::PsIdled>(std::vector(requests_->servers(), wire::PsIdle{})));
  std::uint64_t decided = 0;
  for (const wire::PsIdled& one : idled) decided += one.decided;
  return decided;
}

Result<std::uint64_t> WorkerLink::settle() {
  ANTDT_TRY(const std::uint64_t decided, idle());
  ANTDT_RETURN_IF_ERROR(
      ask_all<wire::PsIdled>(std::vector(requests_->servers(), wire::PsIdle{decided})));
  return decided;
}

// ------------------------------------------------------------------------ rows

WorkerLink::Split WorkerLink::split(const std::vector<std::uint64_t>& keys) const {
  Split parts(requests_->servers());
  for (auto& part : parts) part.reserve(keys.size() / requests_->servers() + 16);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    parts[server_of_slice(slice_of(keys[i]), requests_->servers())].push_back(i);
  }
  return parts;
}

Result<std::uint32_t> WorkerLink::width_of(std::uint32_t table) const {
  if (table < widths_.size()) return widths_[table];
  return fail(ErrorKind::kUsage, "table {} of {} that are open", table, widths_.size());
}

Result<std::vector<std::vector<wire::PsRows>>> WorkerLink::shares_of(
    const std::vector<TableGradient>& tables) const {
  std::vector<std::vector<wire::PsRows>> shares(requests_->servers());
  for (const auto& [table, gradient] : tables) {
    ANTDT_TRY(const std::uint32_t width, width_of(table));
    if (gradient.values.size() != gradient.keys.size() * width) {
      return fail(ErrorKind::kUsage, "{} floats for {} rows of table {}, of {} floats each",
                  gradient.values.size(), gradient.keys.size(), table, width);
    }
    const Split parts = split(gradient.keys);
    for (std::size_t s = 0; s < parts.size(); ++s) {
      std::vector<std::uint64_t> keys;
      std::vector<float> values;
      keys.reserve(parts[s].size());
      values.reserve(parts[s].size() * width);
      for (const std::size_t i : parts[s]) {
        keys.push_back(gradient.keys[i]);
        const auto row = gradient.values.begin() + static_cast<std::ptrdiff_t>(i * width);
        values.insert(values.end(), row, row + width);
      }
      shares[s].push_back({table, to_bytes(keys), to_bytes(values)});
    }
  }
  return shares;
}

Status WorkerLink::put(const std::vector<TableGradient>& values) {
  ANTDT_TRY(auto shares, shares_of(values));
  std::vector<wire::PsPut> puts;
  for (auto& rows : shares) puts.push_back({std::move(rows)});
  ANTDT_RETURN_IF_ERROR(ask_all<wire::Done>(puts));
  return {};
}

Status WorkerLink::join(const PulledTable& table, std::size_t at,
                        const std::vector<wire::PsPulled>& replies,
                        std::vector<float>& values) const {
  ANTDT_TRY(const std::uint32_t width, width_of(table.table));
  const std::size_t row = width * sizeof(float);
  values.resize(table.rows * width);
  auto* out = reinterpret_cast<char*>(values.data());
  for (std::size_t s = 0; s < table.parts.size(); ++s) {
    const std::vector<std::size_t>& part = table.parts[s];
    const bool there = at < replies[s].values.size();
    if (!there || replies[s].values[at].size() != part.size() * row) {
      return fail(ErrorKind::kCorrupt,
                  "parameter server s{} sent {} bytes for {} rows of table {}, of {} floats each",
                  s, there ? replies[s].values[at].size() : 0, part.size(), table.table, width);
    }
    const char* in = replies[s].values[at].data();
    for (std::size_t i = 0; i < part.size(); ++i) {
      std::memcpy(out + part[i] * row, in + i * row, row);
    }
  }
  return {};
}

// ----------------------------------------------------------------------- pulls

Result<WorkerLink::Ticket> WorkerLink::say_pull(const std::vector<TableKeys>& keys,
                                                std::uint64_t clock) {
  ANTDT_RETURN_IF_ERROR(requests_->check_open());
  std::vector<wire::PsPull> pulls(requests_->servers(), wire::PsPull{clock, {}});
  Pull pull;
  for (const TableKeys& table : keys) {
    const Split& parts =
        pull.tables.emplace_back(PulledTable{table.table, table.keys.size(), split(table.keys)})
            .parts;
    for (std::size_t s = 0; s < parts.size(); ++s) {
      std::vector<std::uint64_t> own(parts[s].size());
      std::ranges::transform(parts[s], own.begin(), [&](std::size_t i) { return table.keys[i]; });
      pulls[s].rows.push_back({table.table, to_bytes(own), {}});
    }
  }
  pull.asked = say_all(pulls);
  pulls_.emplace(++last_ticket_, std::move(pull));
  return last_ticket_;
}

bool WorkerLink::is_here(Ticket pull) const { return all_answered(pulls_.at(pull).asked); }

Result<WorkerLink::Pulled> WorkerLink::take(Ticket ticket) {
  while (!is_here(ticket)) ANTDT_RETURN_IF_ERROR(wait());
  const Pull pull = std::move(pulls_.extract(ticket).mapped());
  ANTDT_TRY(const auto replies, take_all<wire::PsPulled>(pull.asked));
  Pulled pulled;
  pulled.values.resize(pull.tables.size());
  for (std::size_t t = 0; t < pull.tables.size(); ++t) {
    ANTDT_RETURN_IF_ERROR(join(pull.tables[t], t, replies, pulled.values[t]));
  }
  for (const wire::PsPulled& reply : replies) pulled.versions.push_back(reply.version);
  pulled.clock = std::ranges::min(replies, {}, &wire::PsPulled::clock).clock;
  return pulled;
}

void WorkerLink::forget(Ticket pull) {
  const auto found = pulls_.find(pull);
  if (found == pulls_.end()) return;
  for (const Requests::Id id : found->second.asked) requests_->forget(id);
  pulls_.erase(found);
}

Result<WorkerLink::Pulled> WorkerLink::pull(const std::vector<TableKeys>& keys,
                                            std::uint64_t clock) {
  ANTDT_TRY(const Ticket ticket, say_pull(keys, clock));
  return take(ticket);
}

// ---------------------------------------------------------------------- pushes

Status WorkerLink::say_push(const std::vector<TableGradient>& gradients, const Pulled& pulled,
                            wire::PsCommit commit) {
  ANTDT_RETURN_IF_ERROR(requests_->check_open());
  const bool barrier = consistency_ == Consistency::kBarrier;
  if (!barrier && pulled.versions.size() != requests_->servers()) {
    return fail(ErrorKind::kUsage, "a push of what was not pulled from here");
  }
  ANTDT_TRY(auto shares, shares_of(gradients));
  std::vector<wire::PsPush> parts;
  for (std::size_t s = 0; s < shares.size(); ++s) {
    const std::uint64_t version = barrier ? commit.version : pulled.versions[s];
    parts.push_back({commit.number, version, std::move(shares[s])});
  }
  if (!barrier) commit.version = pulled.versions[home_];
  order_.add(commit);
  pushes_[commit.number].parts = std::move(parts);
  return advance_pushes();
}

Status WorkerLink::advance_pushes() {
  for (auto push = pushes_.begin(); push != pushes_.end();) {
    ANTDT_TRY(const bool decided, take_in(push->first, push->second));
    push = decided ? pushes_.erase(push) : std::next(push);
  }
  while (const auto now = order_.next()) std::visit([this](const auto& what) { say(what); }, *now);
  return {};
}

Result<bool> WorkerLink::take_in(std::uint64_t number, Push& push) {
  if (!push.staging.empty() && all_answered(push.staging)) {
    // One that is late at a server is late at the home as well.
    ANTDT_RETURN_IF_ERROR(take_all<wire::PsStaged>(std::exchange(push.staging, {})));
    order_.staged(number);
  }
  if (!push.committing || !requests_->answered(*push.committing)) return false;
  ANTDT_TRY(const auto decided, requests_->take<wire::PsDecided>(*push.committing));
  order_.decided(number, decided);
  return true;
}

void WorkerLink::say(const PushOrder::Stage& stage) {
  Push& push = pushes_.at(stage.number);
  push.staging = say_all(std::exchange(push.parts, {}));
}

void WorkerLink::say(const wire::PsCommit& commit) {
  pushes_.at(commit.number).committing = requests_->say(home_, commit);
}

Result<wire::PsDecided> WorkerLink::push(const std::vector<TableGradient>& gradients,
                                         const Pulled& pulled, const wire::PsCommit& commit) {
  ANTDT_CHECK(order_.empty(), "{} pushes are under way", order_.size());
  ANTDT_RETURN_IF_ERROR(say_push(gradients, pulled, commit));
  while (true) {
    ANTDT_RETURN_IF_ERROR(wait());
    if (const auto decided = take_decision()) return *decided;
  }
}

}  // namespace antdt::ps
