#include "trainer/ps/calls/worker_calls.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/check.h"
#include "core/overloaded.h"
#include "trainer/ps/placement.h"
#include "trainer/ps/rows/rows.h"

namespace antdt::ps {

WorkerCalls::WorkerCalls(Member self, Consistency consistency, requests::Start start)
    : consistency_(consistency),
      home_(home_of(consistency, self.worker, start.roster.servers.size())),
      requests_(std::move(start)) {}

const std::optional<Error>& WorkerCalls::failure() const {
  return failure_ ? failure_ : requests_.failure();
}

void WorkerCalls::step(requests::Input input, MonoTime now, requests::Effects& out) {
  requests_.step(std::move(input), now, out);
  if (failure()) return;
  if (const Status advanced = advance(now, out); !advanced) failure_ = advanced.error();
}

Status WorkerCalls::advance(MonoTime now, requests::Effects& out) {
  for (auto push = pushes_.begin(); push != pushes_.end();) {
    ANTDT_TRY(const bool decided, take_in(push->first, push->second));
    push = decided ? pushes_.erase(push) : std::next(push);
  }
  say_next(now, out);
  advance_call(now, out);
  return {};
}

// -------------------------------------------------------------------- requests

bool WorkerCalls::all_answered(const std::vector<Requests::Id>& asked) const {
  return std::ranges::all_of(asked, [&](Requests::Id id) { return requests_.answered(id); });
}

template <class Ask>
std::vector<Requests::Id> WorkerCalls::say_all(std::vector<Ask> messages, MonoTime now,
                                               requests::Effects& out) {
  std::vector<Requests::Id> asked;
  for (std::uint32_t s = 0; s < messages.size(); ++s) {
    asked.push_back(requests_.say(s, std::move(messages[s]), now, out));
  }
  return asked;
}

template <class Reply>
Result<std::vector<Reply>> WorkerCalls::take_all(const std::vector<Requests::Id>& asked) {
  std::vector<Reply> replies;
  for (const Requests::Id id : asked) {
    ANTDT_TRY(replies.emplace_back(), requests_.take<Reply>(id));
  }
  return replies;
}

// --------------------------------------------------------------- to all servers

template <class Ask>
void WorkerCalls::call(Doing doing, const Ask& ask, MonoTime now, requests::Effects& out) {
  call_ = Call{doing, say_all(std::vector<Ask>(requests_.servers(), ask), now, out)};
}

void WorkerCalls::open(const wire::PsOpen& tables, MonoTime now, requests::Effects& out) {
  widths_.clear();
  for (const wire::PsTable& table : tables.tables) widths_.push_back(table.width);
  call(Opening{}, tables, now, out);
}

Status WorkerCalls::put(const std::vector<TableGradient>& values, MonoTime now,
                        requests::Effects& out) {
  auto shares = shares_of(values, widths_, requests_.servers());
  if (!shares) {
    Error error = std::move(shares.error());
    if (error.kind == ErrorKind::kTooLarge && version_ == 0) error.kind = ErrorKind::kUsage;
    return tl::unexpected<Error>(std::move(error));
  }
  std::vector<wire::PsPut> puts;
  for (auto& rows : *shares) puts.push_back({std::move(rows)});
  call_ = Call{Putting{}, say_all(std::move(puts), now, out)};
  return {};
}

Status WorkerCalls::stage(const std::vector<TableGradient>& gradients,
                          const wire::PsConcluded& concluded, std::uint32_t rank, MonoTime now,
                          requests::Effects& out) {
  ANTDT_TRY(auto shares, shares_of(gradients, widths_, requests_.servers()));
  std::vector<wire::PsStepPush> parts;
  for (auto& rows : shares) parts.push_back({concluded, rank, std::move(rows)});
  call_ = Call{Staging{}, say_all(std::move(parts), now, out)};
  return {};
}

void WorkerCalls::idle(MonoTime now, requests::Effects& out) {
  ANTDT_CHECK(order_.empty(), "idle with {} pushes under way", order_.size());
  call(Idling{}, wire::PsIdle{}, now, out);
}

void WorkerCalls::settle(MonoTime now, requests::Effects& out) {
  ANTDT_CHECK(order_.empty(), "settles with {} pushes under way", order_.size());
  call(Counting{}, wire::PsIdle{}, now, out);
}

std::optional<Result<std::uint64_t>> WorkerCalls::take_answer() {
  return std::exchange(answer_, std::nullopt);
}

Result<std::uint64_t> WorkerCalls::take_decided(const std::vector<Requests::Id>& asked) {
  ANTDT_TRY(const auto idled, take_all<wire::PsIdled>(asked));
  std::uint64_t decided = 0;
  for (const wire::PsIdled& one : idled) decided += one.decided;
  return decided;
}

// From: any, when every server has answered. To: done. From: counting. To: settling.
void WorkerCalls::advance_call(MonoTime now, requests::Effects& out) {
  if (!call_ || !all_answered(call_->asked)) return;
  const Call done = *std::exchange(call_, std::nullopt);
  auto answer = std::visit([&](const auto& doing) { return answer_of(doing, done); }, done.doing);
  if (answer && std::holds_alternative<Counting>(done.doing)) {
    return call(Settling{*answer}, wire::PsIdle{*answer}, now, out);
  }
  answer_ = std::move(answer);
}

Result<std::uint64_t> WorkerCalls::answer_of(const Opening&, const Call& call) {
  ANTDT_TRY(const auto opened, take_all<wire::PsOpened>(call.asked));
  version_ = std::ranges::max(opened, {}, &wire::PsOpened::version).version;
  return version_;
}

Result<std::uint64_t> WorkerCalls::answer_of(const Putting&, const Call& call) {
  ANTDT_RETURN_IF_ERROR(take_all<wire::Done>(call.asked));
  return 0;
}

Result<std::uint64_t> WorkerCalls::answer_of(const Staging&, const Call& call) {
  ANTDT_RETURN_IF_ERROR(take_all<wire::PsStaged>(call.asked));
  return 0;
}

Result<std::uint64_t> WorkerCalls::answer_of(const Settling& doing, const Call& call) {
  ANTDT_RETURN_IF_ERROR(take_all<wire::PsIdled>(call.asked));
  return doing.decided;
}

// ----------------------------------------------------------------------- pulls

WorkerCalls::Asked WorkerCalls::split(const std::vector<TableKeys>& keys) const {
  const std::size_t servers = requests_.servers();
  Asked asked;
  asked.rows.resize(servers);
  for (const TableKeys& table : keys) {
    asked.tables.push_back({table.table, table.keys.size(), split_keys(table.keys, servers)});
    const Split& parts = asked.tables.back().parts;
    for (std::size_t s = 0; s < servers; ++s) {
      std::vector<std::uint64_t> own(parts[s].size());
      std::ranges::transform(parts[s], own.begin(), [&](std::size_t i) { return table.keys[i]; });
      asked.rows[s].push_back({table.table, to_bytes(own), {}});
    }
  }
  return asked;
}

Result<WorkerCalls::Ticket> WorkerCalls::say_pull(const std::vector<TableKeys>& keys,
                                                  std::uint64_t clock, MonoTime now,
                                                  requests::Effects& out) {
  Asked asked = split(keys);
  ANTDT_RETURN_IF_ERROR(check_answers(asked.rows, widths_));
  std::vector<wire::PsPull> pulls;
  for (auto& rows : asked.rows) pulls.push_back({clock, std::move(rows)});
  pulls_.emplace(++last_ticket_,
                 Pull{std::move(asked.tables), say_all(std::move(pulls), now, out)});
  return last_ticket_;
}

Result<WorkerCalls::Ticket> WorkerCalls::say_step_pull(const std::vector<TableKeys>& keys,
                                                       const wire::PsConcluded& concluded,
                                                       MonoTime now, requests::Effects& out) {
  Asked asked = split(keys);
  ANTDT_RETURN_IF_ERROR(check_answers(asked.rows, widths_));
  std::vector<wire::PsStepPull> pulls;
  for (auto& rows : asked.rows) pulls.push_back({concluded, std::move(rows)});
  pulls_.emplace(++last_ticket_,
                 Pull{std::move(asked.tables), say_all(std::move(pulls), now, out)});
  return last_ticket_;
}

bool WorkerCalls::is_here(Ticket pull) const { return all_answered(pulls_.at(pull).asked); }

Result<WorkerCalls::Pulled> WorkerCalls::take(Ticket ticket) {
  const Pull pull = std::move(pulls_.extract(ticket).mapped());
  ANTDT_TRY(const auto replies, take_all<wire::PsPulled>(pull.asked));
  Pulled pulled;
  pulled.values.resize(pull.tables.size());
  for (std::size_t t = 0; t < pull.tables.size(); ++t) {
    ANTDT_RETURN_IF_ERROR(join_rows(pull.tables[t], t, replies, widths_, pulled.values[t]));
  }
  for (const wire::PsPulled& reply : replies) pulled.versions.push_back(reply.version);
  pulled.clock = std::ranges::min(replies, {}, &wire::PsPulled::clock).clock;
  return pulled;
}

void WorkerCalls::forget(Ticket pull) {
  const auto found = pulls_.find(pull);
  if (found == pulls_.end()) return;
  for (const Requests::Id id : found->second.asked) requests_.forget(id);
  pulls_.erase(found);
}

// ---------------------------------------------------------------------- pushes

Status WorkerCalls::say_push(const std::vector<TableGradient>& gradients,
                             const std::vector<std::uint64_t>& versions, wire::PsCommit commit,
                             MonoTime now, requests::Effects& out) {
  const bool barrier = consistency_ == Consistency::kBarrier;
  if (!barrier && versions.size() != requests_.servers()) {
    return fail(ErrorKind::kUsage, "a push of what was not pulled from here");
  }
  ANTDT_TRY(auto shares, shares_of(gradients, widths_, requests_.servers()));
  std::vector<wire::PsPush> parts;
  for (std::size_t s = 0; s < shares.size(); ++s) {
    const std::uint64_t version = barrier ? commit.version : versions[s];
    parts.push_back({commit.number, version, std::move(shares[s])});
  }
  if (!barrier) commit.version = versions[home_];
  order_.add(commit);
  pushes_[commit.number].parts = std::move(parts);
  return advance(now, out);
}

void WorkerCalls::say_next(MonoTime now, requests::Effects& out) {
  const auto say = Overloaded{
      [&](const PushOrder::Stage& stage) {
        Push& push = pushes_.at(stage.number);
        push.staging = say_all(std::exchange(push.parts, {}), now, out);
      },
      [&](const wire::PsCommit& commit) {
        pushes_.at(commit.number).committing = requests_.say(home_, commit, now, out);
      },
  };
  while (const auto next = order_.next()) std::visit(say, *next);
}

Result<bool> WorkerCalls::take_in(std::uint64_t number, Push& push) {
  if (!push.staging.empty() && all_answered(push.staging)) {
    // A push that is late at a server is late at the home as well.
    ANTDT_RETURN_IF_ERROR(take_all<wire::PsStaged>(std::exchange(push.staging, {})));
    order_.staged(number);
  }
  if (!push.committing || !requests_.answered(*push.committing)) return false;
  ANTDT_TRY(const auto decided, requests_.take<wire::PsDecided>(*push.committing));
  order_.decided(number, decided);
  return true;
}

}  // namespace antdt::ps
