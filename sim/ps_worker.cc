#include "sim/ps_worker.h"

#include <algorithm>

#include "sim/ps_server_loop.h"
#include "trainer/ps/placement.h"
#include "trainer/ps/store.h"

namespace antdt::sim {
namespace {

using std::chrono::seconds;

constexpr Duration kLeaveGrace = seconds(2);

}  // namespace

std::string PsWorker::doing() const {
  return fmt::format("{}.{} on {}{}: generation {}, version {}, phase {}, place {}, {}",
                     member_.worker, member_.attempt, host_, standing(), generation_, version_,
                     phase_.phase, place_,
                     doing_ == Doing::kBooting    ? "booting"
                     : doing_ == Doing::kIdle     ? "idle"
                     : doing_ == Doing::kAsking   ? "asking servers"
                     : doing_ == Doing::kTraining ? "training"
                                                  : "evaluating");
}

void PsWorker::welcomed() {
  doing_ = Doing::kIdle;
  join();
  later(kTurn, [this] { turn(); });
}

void PsWorker::turn() {
  if (alive() && wants_to_leave()) watch_leaving();
  if (!alive() || turning_ || doing_ != Doing::kIdle) return;
  turning_ = true;
  while (alive() && doing_ == Doing::kIdle) {
    if (wants_to_leave()) {
      exit(leave_code());
      break;
    }
    const auto directive = core_.next_directive();
    if (!directive) break;
    obey(*directive);
  }
  turning_ = false;
}

// Who is to leave does not wait for servers for ever.
void PsWorker::watch_leaving() {
  if (std::exchange(leaves_, true)) return;
  later(clock_.real(kLeaveGrace), [this] { abort(generation_); });
}

void PsWorker::abort(Generation generation) {
  ended_ = std::max(ended_, generation);
  if (generation >= generation_ && link_) link_->abort();
}

void PsWorker::obey(const client::Directive& directive) {
  if (std::holds_alternative<wire::PsRoster>(directive.order)) {
    if (directive.generation != generation_) pushes_said_ = 0;
    generation_ = directive.generation;
  } else if (directive.generation != generation_ &&
             !std::holds_alternative<wire::Leave>(directive.order)) {
    if (directive.generation > generation_) dissolve();
    return;
  }
  std::visit([this](const auto& order) { on(order); }, directive.order);
}

void PsWorker::join(std::string problem) {
  wire::Join join;
  join.pid = pid_;
  join.data = shape_.data();
  join.problem = std::move(problem);
  join.step = Step{version_};
  join.said = said_;
  if (sabotage_ == Sabotage::kSayLess) join.said.place = 0;
  world_.say("{}.{} joins{}", member_.worker, member_.attempt,
             join.problem.empty() ? "" : ": " + join.problem);
  feed(join);
}

void PsWorker::dissolve(std::string problem) {
  core_.set_activity("reconfigure");
  if (link_ && problem.empty() && said_.generation != generation_) said_ = {generation_, 0, 0};
  link_.reset();
  join(std::move(problem));
}

// ------------------------------------------------------------ a group of servers

void PsWorker::on(const wire::PsRoster& roster) {
  consistency_ = ps::parse_consistency(roster.sync).value();
  staleness_ = roster.staleness;
  link_ = std::make_unique<PsLink>(
      PsLink::Outside{[this](Duration delay, World::Action action) {
                        later(clock_.real(delay), std::move(action));
                      },
                      [this](const std::string& endpoint, PsPacket packet) {
                        if (may_send()) around_.ask(*this, endpoint, std::move(packet));
                      },
                      [this] { return around_.new_socket(*this); },
                      [this](std::uint64_t than) { return core_.servers(generation_, than); }},
      member_, generation_, roster.servers, roster.others, roster.number);
  if (over()) link_->abort();
  ask_all("reconfigure", tally_tables(), [this](const std::vector<PsReply>& replies) {
    version_ = 0;
    for (const PsReply& reply : replies) {
      version_ = std::max(version_, std::get<wire::PsOpened>(reply).version);
    }
    ask_all("reconfigure", wire::PsPut{}, [this](const std::vector<PsReply>&) {
      doing_ = Doing::kIdle;
      turn();
    });
  });
}

void PsWorker::on(const wire::Abort&) {
  if (link_) dissolve();
}

void PsWorker::on(const wire::Regroup&) {
  if (link_) dissolve();
}

void PsWorker::on(const wire::PhaseStart& start) {
  if (!link_ || start.what == "finish") return;
  phase_ = start;
  place_ = 0;
  feed(client::BeginPhase{start.phase});
  if (start.what == "train") return train();
  // The model after all updates: nobody pushes while one evaluates.
  idle_everywhere(0, [this](std::uint64_t decided) {
    idle_everywhere(decided, [this, decided](std::uint64_t) {
      version_ = std::max(version_, decided);
      feed(client::SetHold{32});
      evaluate();
    });
  });
}

// Answered by servers that are at `version`.
void PsWorker::idle_everywhere(std::uint64_t version, std::function<void(std::uint64_t)> next) {
  ask_all("collective_wait", wire::PsIdle{version},
          [next = std::move(next)](const std::vector<PsReply>& replies) {
            std::uint64_t decided = 0;
            for (const PsReply& reply : replies) {
              decided += std::get<wire::PsIdled>(reply).decided;
            }
            next(decided);
          });
}

// ---------------------------------------------------------------------- servers

void PsWorker::answered(const PsAnswer& answer) {
  later({}, [this, answer] {
    if (link_) link_->answered(answer);
  });
}

void PsWorker::ask(const char* activity, std::vector<std::optional<PsAsk>> asks,
                   std::function<void(const std::vector<PsReply>&)> next) {
  doing_ = Doing::kAsking;
  core_.set_activity(activity);
  link_->ask(std::move(asks), [this, next = std::move(next)](const PsLink::Answers& answers) {
    if (!answers) return no_answers();
    next(*answers);
  });
}

void PsWorker::ask_all(const char* activity, const PsAsk& ask,
                       std::function<void(const std::vector<PsReply>&)> next) {
  this->ask(activity, std::vector<std::optional<PsAsk>>(link_->servers(), ask), std::move(next));
}

// A server that refuses otherwise than as one of another group is a fault of ours.
void PsWorker::no_answers() {
  const std::string refusal = link_->refusal();
  if (!refusal.empty() && !over()) {
    world_.violate("a worker of the group is not refused", refusal + "; " + doing());
  }
  phase_over();
}

std::vector<std::vector<std::uint64_t>> PsWorker::keys_by_server(std::vector<Record> rising) const {
  std::vector<std::vector<std::uint64_t>> keys(link_->servers());
  std::ranges::sort(rising);
  for (const Record record : rising) {
    for (std::uint64_t i = 0; i < kRowsOfRecord; ++i) {
      const std::uint64_t key = record * kRowsOfRecord + i;
      keys[ps::server_of_slice(ps::slice_of(key), keys.size())].push_back(key);
    }
  }
  return keys;
}

}  // namespace antdt::sim
