// The effects of a simulated worker of parameter servers.
#include <utility>

#include "sim/checks.h"
#include "sim/network.h"
#include "sim/servers/ps_worker.h"
#include "sim/servers/tally.h"
#include "sim/surroundings.h"

namespace antdt::sim {

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
  if (done) around_.checks.phase_done(*this);
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
  exit(worker::kResumable);
  return {};
}

// ---------------------------------------------------------------------- servers

PsWorker::Answer PsWorker::perform(const ps_worker::LeaveServers&) {
  group_.leave();
  batch_.clear();
  next_.clear();
  commit_told_ = {};
  return {};
}

PsGroup::Outside PsWorker::outside_of_group() {
  return {{[this] { return clock_.now(); },
           [this](Duration delay, World::Action action) {
             later(clock_.real(delay), std::move(action));
           },
           [this](const std::string& address, PsPacket packet) {
             if (may_send()) around_.network.ask(*this, address, std::move(packet));
           },
           [this] { return around_.network.new_socket(member_); },
           [this](std::uint64_t than) { return core_.orders().servers(generation(), than); },
           {}},
          [this](Generation begins) { end_.begin(begins); },
          [this] { return end_.over(); },
          [this] { std::ignore = begin_operation(); },
          [this](ps_worker::Input input) { answered(operation(), std::move(input)); },
          [this](const std::string& why) { around_.checks.refused(*this, why); }};
}

void PsWorker::answered(PsAnswer answer) {
  later({}, [this, answer = std::move(answer)]() mutable { group_.answered(std::move(answer)); });
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

PsWorker::Answer PsWorker::perform(const ps_worker::TakeBatch& effect) {
  return take_on(effect, clock_.now() + effect.patience);
}

// Waits a while for a complete batch if more records may come.
PsWorker::Answer PsWorker::take_on(const ps_worker::TakeBatch& effect, MonoTime until) {
  const bool waits = effect.wait != ps_worker::TakeBatch::Wait::kNot;
  const bool at_hand = take_records(effect.records);
  if (at_hand || (waits && !taking_.empty() && (!more_may_come_ || clock_.now() >= until))) {
    next_ = std::exchange(taking_, {});
    return ps_worker::BatchTaken{client::TakeStatus::kData, next_.size(), {}};
  }
  if (!waits) return ps_worker::BatchTaken{};
  if (taken_ == client::TakeStatus::kEnd) return ps_worker::BatchTaken{taken_, 0, {}};
  if (more_may_come_ && clock_.now() < until) {
    answer_after(clock_.real(kLookAgain), [this, effect, until] { return take_on(effect, until); });
  } else {
    answer_after(clock_.real(kLookAgain), [] { return ps_worker::BatchTaken{}; });
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

PsWorker::Answer PsWorker::perform(const ps_worker::AwaitGivenBack&) {
  if (!group_.advance()) return group_.lost();
  const auto all = [this] {
    return ps_worker::GivenBack{!core_.gives_back() || sabotage_ == Sabotage::kPushTooSoon};
  };
  if (all().all) return all();
  answer_after(clock_.real(kLookAgain), all);
  return {};
}

// ------------------------------------------------------------------------- rows

PsWorker::Answer PsWorker::perform(const ps_worker::SayPull& effect) {
  group_.say_pull(keys_of(next_), effect.clock);
  return {};
}

// ---------------------------------------------------------------------- a batch

PsWorker::Answer PsWorker::perform(const ps_worker::BeginBatch&) {
  batch_ = std::exchange(next_, {});
  return {};
}

PsWorker::Answer PsWorker::perform(const ps_worker::ComputeBatch&) {
  if (!group_.advance()) return group_.lost();
  const Duration work = kStepTime + shape_.sample_time * static_cast<int>(batch_.size());
  const Duration took = slowed(world_.rng().time(work, work + work / 4));
  answer_after(took, [this, took]() -> Answer {
    if (!group_.advance()) return group_.lost();
    return ps_worker::BatchComputed{static_cast<double>(batch_.size()), 0, took};
  });
  return {};
}

// A number that no other replica of these days has.
float PsWorker::replica(std::uint64_t push) const {
  return static_cast<float>(push) + static_cast<float>(member_.worker.index) / 64;
}

PsWorker::Answer PsWorker::perform(const ps_worker::SayPush& effect) {
  const std::vector<Record> records = effect.records ? batch_ : std::vector<Record>{};
  PsGroup::Exchange exchange;
  if (effect.exchange) exchange.value = has_mean(shape_.sync) ? replica(effect.commit.number) : 1;
  exchange.alone = !effect.records;
  around_.checks.pushed(*this, effect.commit.number, records, exchange.value);
  if (sabotage_ == Sabotage::kCommitEarly) feed(client::Commit{effect.commit.to, {}});
  const float value = sabotage_ == Sabotage::kApplyTwice ? 2.0F : 1.0F;
  if (effect.exchange && sabotage_ == Sabotage::kExchangeTwice) *exchange.value *= 2;
  if (!effect.records && sabotage_ == Sabotage::kDropLastExchange) exchange.value.reset();
  return group_.say_push(keys_of(records), value, exchange, effect.commit);
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
  group_.say_pull({}, 0);
  return group_.await_pull([this, done]() -> Answer {
    core_.set_activity(worker::name_of(worker::TimeUse::kCompute));
    const Duration work = shape_.sample_time * static_cast<int>(done.records);
    answer_after(slowed(work), [done] { return done; });
    return {};
  });
}

}  // namespace antdt::sim
