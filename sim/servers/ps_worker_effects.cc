// What a simulated worker of parameter servers does for its machine.
#include <algorithm>
#include <utility>

#include "sim/servers/ps_server_loop.h"
#include "sim/servers/ps_worker.h"
#include "trainer/ps/placement.h"
#include "trainer/ps/rows/rows.h"
#include "trainer/ps/rows/store.h"

namespace antdt::sim {
namespace {

using std::chrono::microseconds;

}  // namespace

// ------------------------------------------------------------------- what is said

PsWorker::Answer PsWorker::perform(worker::Send& effect) {
  if (auto* const join = std::get_if<wire::Join>(&effect.what)) {
    if (sabotage_ == Sabotage::kSayLess) join->said.place = 0;
    world_.say("{}.{} joins{}", member_.worker, member_.attempt,
               join->problem.empty() ? "" : ": " + join->problem);
  }
  const auto* const progress = std::get_if<wire::Progress>(&effect.what);
  const bool done = progress != nullptr && progress->done;
  std::visit([this](auto& what) { feed(std::move(what)); }, effect.what);
  if (done) around_.phase_done(*this);
  return {};
}

PsWorker::Answer PsWorker::perform(const worker::SpendTime& effect) {
  core_.set_activity(worker::name_of(effect.use));
  return {};
}

PsWorker::Answer PsWorker::perform(const worker::Exit& effect) {
  exit(effect.code);
  return {};
}

PsWorker::Answer PsWorker::perform(const worker::GiveUp& effect) {
  world_.violate("a worker of servers has no reason to give up",
                 fmt::format("{}; {}", effect.error.message, doing()));
  exit(kResumable);
  return {};
}

// ---------------------------------------------------------------------- servers

PsWorker::Answer PsWorker::perform(const worker::LeaveServers&) {
  link_.reset();
  batch_.clear();
  next_.clear();
  pull_.reset();
  pushes_ = {};
  parts_.clear();
  commit_told_ = {};
  no_answers_ = false;
  return {};
}

PsWorker::Answer PsWorker::perform(const worker::OpenServers& effect) {
  const wire::PsRoster& roster = effect.roster;
  end_.begin(effect.generation);
  consistency_ = ps::consistency_of(roster.sync).value();
  link_ = std::make_unique<PsLink>(
      PsLink::Outside{[this](Duration delay, World::Action action) {
                        later(clock_.real(delay), std::move(action));
                      },
                      [this](const std::string& endpoint, PsPacket packet) {
                        if (may_send()) around_.ask(*this, endpoint, std::move(packet));
                      },
                      [this] { return around_.new_socket(*this); },
                      [this](std::uint64_t than) { return core_.orders().servers(generation(), than); }},
      member_, effect.generation, roster.servers, roster.others, roster.number);
  if (end_.over()) link_->abort();
  ask_all(tally_tables(), [this](const std::vector<PsReply>& replies) -> Answer {
    worker::ServersOpened opened;
    for (const PsReply& reply : replies) {
      opened.version = std::max(opened.version, std::get<wire::PsOpened>(reply).version);
    }
    ask_all(wire::PsPut{}, [opened](const std::vector<PsReply>&) { return opened; });
    return {};
  });
  return {};
}

void PsWorker::answered(const PsAnswer& answer) {
  later({}, [this, answer] {
    if (link_) link_->answered(answer);
  });
}

void PsWorker::ask_all(const PsAsk& ask, Next next) {
  const auto done = [this, operation = begin_operation(),
                     next = std::move(next)](const PsLink::Answers& answers) {
    if (!is_under_way(operation)) return;
    if (!answers) return answered(operation, lost());
    if (auto input = next(*answers)) answered(operation, std::move(*input));
  };
  link_->ask(std::vector<std::optional<PsAsk>>(link_->servers(), ask), done);
}

// A server that refuses otherwise than as one of another group is a fault of ours.
worker::PsInput PsWorker::lost() {
  const std::string refusal = link_->refusal();
  if (!refusal.empty() && !end_.over()) {
    world_.violate("a worker of the group is not refused", refusal + "; " + doing());
  }
  return worker::ServersLost{"no server answers any more"};
}

void PsWorker::ask_idle(std::uint64_t version, std::function<Answer(std::uint64_t decided)> next) {
  ask_all(wire::PsIdle{version}, [next = std::move(next)](const std::vector<PsReply>& replies) {
    std::uint64_t decided = 0;
    for (const PsReply& reply : replies) decided += std::get<wire::PsIdled>(reply).decided;
    return next(decided);
  });
}

PsWorker::Answer PsWorker::perform(const worker::SayIdle&) {
  ask_idle(0, [](std::uint64_t decided) { return worker::SaidIdle{decided}; });
  return {};
}

PsWorker::Answer PsWorker::perform(const worker::SettleServers&) {
  ask_idle(0, [this](std::uint64_t decided) -> Answer {
    ask_idle(decided, [decided](std::uint64_t) { return worker::ServersSettled{decided}; });
    return {};
  });
  return {};
}

PsWorker::Answer PsWorker::perform(const worker::AwaitServers&) {
  if (!advance()) return lost();
  if (pushes_.has_decision()) return worker::ServersAnswered{};
  awaits_ = Awaits::kAnything;
  std::ignore = begin_operation();
  return {};
}

// ---------------------------------------------------------------------- records

PsWorker::Answer PsWorker::perform(const worker::StartReading& effect) {
  if (effect.data == worker::Data::kTrain) {
    world_.say("{}.{} trains phase {} at version {}", member_.worker, member_.attempt,
               phase().phase, machine_.version());
  }
  return {};
}

PsWorker::Answer PsWorker::perform(const worker::StopReading&) {
  next_.clear();
  taking_.clear();
  return {};
}

PsWorker::Answer PsWorker::perform(const worker::TakeBatch& effect) {
  return take_on(effect, clock_.now() + effect.patience);
}

// Waits a while for as much as it is to be, if there may be more.
PsWorker::Answer PsWorker::take_on(const worker::TakeBatch& effect, MonoTime until) {
  const bool waits = effect.wait != worker::TakeBatch::Wait::kNot;
  const bool at_hand = take_records(effect.records);
  if (at_hand || (waits && !taking_.empty() && (!more_may_come_ || clock_.now() >= until))) {
    next_ = std::exchange(taking_, {});
    return worker::BatchTaken{client::TakeStatus::kData, next_.size(), {}};
  }
  if (!waits) return worker::BatchTaken{};
  if (taken_ == client::TakeStatus::kEnd) return worker::BatchTaken{taken_, 0, {}};
  if (more_may_come_ && clock_.now() < until) {
    answer_after(clock_.real(kLookAgain), [this, effect, until] { return take_on(effect, until); });
  } else {
    answer_after(clock_.real(kLookAgain), [] { return worker::BatchTaken{}; });
  }
  return {};
}

bool PsWorker::take_records(std::uint64_t wanted) {
  more_may_come_ = false;
  while (taking_.size() < wanted) {
    const client::Taken taken = core_.take(wanted - taking_.size());
    taken_ = taken.status;
    if (taken.records == 0) {
      more_may_come_ = taken.status == client::TakeStatus::kWait && !taken.dry && !taken.stale;
      break;
    }
    for (const wire::Piece& piece : taken.pieces) append_records(piece, taking_);
  }
  feed(client::TimePassed{});
  return !taking_.empty() && !more_may_come_;
}

PsWorker::Answer PsWorker::perform(const worker::AwaitRecords& effect) {
  answer_after(clock_.real(effect.time), [] { return worker::RecordsAwaited{}; });
  return {};
}

PsWorker::Answer PsWorker::perform(const worker::AwaitGivenBack&) {
  if (!advance()) return lost();
  const auto all = [this] {
    return worker::GivenBack{!core_.gives_back() || sabotage_ == Sabotage::kPushTooSoon};
  };
  if (all().all) return all();
  answer_after(clock_.real(kLookAgain), all);
  return {};
}

// ------------------------------------------------------------------------- rows

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

PsWorker::Answer PsWorker::perform(const worker::SayPull& effect) {
  std::vector<std::optional<PsAsk>> asks;
  for (const auto& keys : keys_by_server(next_)) {
    asks.emplace_back(wire::PsPull{effect.clock, {{0, ps::to_bytes(keys), {}}}});
  }
  const std::uint64_t number = ++pulls_said_;
  const auto done = [this, number](const PsLink::Answers& answers) {
    if (!answers) no_answers_ = true;
    if (answers && pull_ && pull_->number == number) pull_->replies = *answers;
    came();
  };
  pull_ = Pull{number, link_->ask(std::move(asks), done), {}};
  return {};
}

PsWorker::Answer PsWorker::perform(const worker::ForgetPull&) {
  link_->forget(pull_->call);
  pull_.reset();
  return {};
}

PsWorker::Answer PsWorker::perform(const worker::AwaitRows&) {
  if (!advance()) return lost();
  if (auto rows = rows_pulled()) return rows;
  awaits_ = Awaits::kRows;
  std::ignore = begin_operation();
  return {};
}

PsWorker::Answer PsWorker::rows_pulled() {
  if (!pull_ || pull_->replies.empty()) return {};
  versions_.clear();
  std::optional<std::uint64_t> slowest;
  for (const PsReply& reply : pull_->replies) {
    const auto& one = std::get<wire::PsPulled>(reply);
    versions_.push_back(one.version);
    slowest = std::min(slowest.value_or(one.clock), one.clock);
  }
  pull_.reset();
  const auto [oldest, newest] = std::ranges::minmax(versions_);
  return worker::RowsPulled{oldest, newest, *slowest};
}

// ---------------------------------------------------------------------- a batch

PsWorker::Answer PsWorker::perform(const worker::BeginBatch&) {
  batch_ = std::exchange(next_, {});
  return {};
}

PsWorker::Answer PsWorker::perform(const worker::ComputeBatch&) {
  if (!advance()) return lost();
  const Duration work = kStepTime + shape_.sample_time * static_cast<int>(batch_.size());
  const Duration took = slowed(world_.rng().time(work, work + work / 4));
  answer_after(took, [this, took]() -> Answer {
    if (!advance()) return lost();
    return worker::BatchComputed{static_cast<double>(batch_.size()), 0, took};
  });
  return {};
}

PsWorker::Answer PsWorker::perform(const worker::SayPush& effect) {
  wire::PsCommit commit = effect.commit;
  Parts& parts = parts_[commit.number];
  for (const auto& keys : keys_by_server(batch_)) {
    const std::vector<float> ones(keys.size(), sabotage_ == Sabotage::kApplyTwice ? 2.0F : 1.0F);
    parts.emplace_back(
        wire::PsPush{commit.number, commit.version, {{0, ps::to_bytes(keys), ps::to_bytes(ones)}}});
  }
  around_.pushed(*this, commit.number, batch_);
  if (consistency_ != ps::Consistency::kBarrier) {
    commit.version = versions_[ps::home_of(consistency_, member_.worker, link_->servers())];
  }
  if (sabotage_ == Sabotage::kCommitEarly) feed(client::Commit{commit.to, {}});
  pushes_.add(commit);
  say_pushes();
  return worker::PushSaid{};
}

PsWorker::Answer PsWorker::perform(const worker::EvaluateBatch& effect) {
  const client::Taken taken = core_.take(effect.records);
  feed(client::TimePassed{});
  worker::BatchEvaluated done{taken.status, taken.records, {}};
  if (taken.status == client::TakeStatus::kEnd) return done;
  if (taken.records == 0) {
    answer_after(kEvalLookAgain, [done] { return done; });
    return {};
  }
  done.partial.records = taken.records;
  ask_all(wire::PsPull{}, [this, done](const std::vector<PsReply>&) -> Answer {
    core_.set_activity(worker::name_of(worker::TimeUse::kCompute));
    const Duration work = shape_.sample_time * static_cast<int>(done.records);
    answer_after(slowed(work), [done] { return done; });
    return {};
  });
  return {};
}

}  // namespace antdt::sim
