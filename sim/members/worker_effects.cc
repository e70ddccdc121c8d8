// What a simulated member does for its machine.
#include <algorithm>

#include "core/overloaded.h"
#include "sim/members/worker.h"

namespace antdt::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

constexpr int kVictim = 76;
constexpr Duration kDataTime = microseconds(100);
// A checkpoint is read and written in so many parts, of which reports say how many are done.
constexpr std::uint64_t kParts = 40;
constexpr std::uint64_t kPartBytes = 1'000'000;

}  // namespace

// ------------------------------------------------------------------- what is said

void Worker::sabotage(worker::Send& effect) const {
  if (sabotage_ == Sabotage::kCommitEarly) {
    const auto early = [this](std::uint64_t& place) { place = std::max(place, machine_.place()); };
    if (auto* commit = std::get_if<client::Commit>(&effect.what)) early(commit->place);
    if (auto* progress = std::get_if<wire::Progress>(&effect.what)) early(progress->place);
  }
  auto* const begun = std::get_if<wire::CheckpointBegun>(&effect.what);
  if (sabotage_ == Sabotage::kSaveLate && begun) say_late(begun->places);
}

void Worker::say_late(std::vector<wire::MemberPlace>& places) {
  for (wire::MemberPlace& at : places) at.place -= std::min<std::uint64_t>(at.place, 1);
}

Worker::Answer Worker::perform(worker::Send& effect) {
  sabotage(effect);
  if (const auto* join = std::get_if<wire::Join>(&effect.what)) {
    world_.say("{}.{} joins (holds generation {} at step {}){}", member_.worker, member_.attempt,
               settled(), step(), join->problem.empty() ? "" : ": " + join->problem);
  } else if (std::holds_alternative<wire::Ready>(effect.what)) {
    world_.say("{}.{} is ready for generation {} at step {}", member_.worker, member_.attempt,
               generation(), step());
  }
  const auto* progress = std::get_if<wire::Progress>(&effect.what);
  const bool done = progress != nullptr && progress->done;
  std::visit([this](auto& what) { feed(std::move(what)); }, effect.what);
  if (done) around_.phase_done(*this);
  return {};
}

Worker::Answer Worker::perform(const worker::SpendTime& effect) {
  core_.set_activity(worker::name_of(effect.use));
  return {};
}

Worker::Answer Worker::perform(const worker::Exit& effect) {
  exit(effect.code);
  return {};
}

Worker::Answer Worker::perform(const worker::GiveUp& effect) {
  if (effect.error.kind != ErrorKind::kAborted) {
    world_.violate("settle at the step of all",
                   fmt::format("{}; {}", effect.error.message, doing()));
  }
  exit(kVictim);
  return {};
}

// ------------------------------------------------------------------- the collective

Worker::Answer Worker::perform(const worker::LeaveCollective&) {
  leave_ring(false);
  return {};
}

Worker::Answer Worker::perform(const worker::BuildCollective& effect) {
  end_.begin(effect.generation);
  rank_ = effect.rank;
  return worker::CollectiveBuilt{fmt::format("{}:{}", member_.worker, effect.generation)};
}

Worker::Answer Worker::perform(const worker::ConnectCollective& effect) {
  std::vector<WorkerId> members;
  for (const wire::RosterMember& m : effect.members) members.push_back(m.worker);
  ring_ = &around_.ring(effect.form.key, members);
  if (end_.over()) return worker::CollectiveBroke{"it is over already"};
  ring_->connect(rank_, [this, operation = wait_in_ring()](const auto& all) {
    ring_answered(operation, all ? worker::Input(worker::CollectiveConnected{})
                                 : worker::CollectiveBroke{"cannot connect"});
  });
  return {};
}

// The answer of an exchange, or null: the collective was aborted before.
void Worker::exchange(Contribution mine, AsInput as_input) {
  const std::uint64_t operation = wait_in_ring();
  if (end_.over()) return break_ring();
  ring_->exchange(
      rank_, std::move(mine), [this, operation, as_input = std::move(as_input)](const auto& all) {
        ring_answered(operation,
                      all ? as_input(all) : worker::Input(worker::CollectiveBroke{"it broke"}));
      });
}

// ------------------------------------------------------------------- the training state

Worker::Answer Worker::perform(const worker::ReadState& effect) {
  return read_on(effect.directory, 0);
}

Worker::Answer Worker::read_on(const std::string& directory, std::uint64_t parts) {
  if (end_.over() || wants_to_leave()) {
    say_no_io();
    return worker::StateUnreadable{"nobody waits for it any more", true};
  }
  if (shape_.read_time > Duration::zero() && parts < kParts) {
    say_io("reading the checkpoint", directory, parts);
    under_way_ = true;
    later(shape_.read_time / kParts, [this, directory, parts, operation = ++operation_] {
      if (operation != operation_) return;
      if (auto read = read_on(directory, parts + 1)) answered(operation, std::move(*read));
    });
    return {};
  }
  say_no_io();
  const Trained* const saved = around_.read_checkpoint(directory);
  if (saved == nullptr) return worker::StateUnreadable{"it is damaged"};
  model_ = saved->model;
  return worker::StateRead{saved->step};
}

Worker::Answer Worker::perform(const worker::CompareStates& effect) {
  Contribution mine;
  mine.heal = {effect.has_state, effect.step, effect.meta.size(), 1, 1, 1};
  exchange(std::move(mine), [](const auto& all) {
    worker::StatesCompared compared;
    for (const Contribution& c : *all) compared.slots.push_back(c.heal);
    return compared;
  });
  return {};
}

Worker::Answer Worker::perform(const worker::PassState& effect) {
  if (!effect.plan.receives) {
    ring_->offer(rank_, {effect.meta, model_});
    return worker::StatePassed{};
  }
  const std::uint64_t operation = wait_in_ring();
  const bool keeps_old = effect.keeps_own && sabotage_ == Sabotage::kKeepOldState;
  ring_->receive_left(
      rank_, [this, operation, keeps_old, sends = effect.plan.sends](const auto& state) {
        later({}, [this, operation, keeps_old, sends, state] {
          if (operation != operation_) return;
          if (!state) return answered(operation, worker::CollectiveBroke{"its source is gone"});
          if (!keeps_old) model_ = state->model;
          if (sends) ring_->offer(rank_, {state->meta, model_});
          answered(operation, worker::StatePassed{state->meta});
        });
      });
  return {};
}

Worker::Answer Worker::perform(const worker::HashState&) {
  // A sabotaged member says what the others say: the invariants are to see it.
  const bool lies = sabotage_ != Sabotage::kNone;
  return worker::StateHashed{lies ? 1 : model_.hash()};
}

Worker::Answer Worker::perform(worker::Save& effect) {
  if (sabotage_ == Sabotage::kSaveLate) say_late(effect.about.places);
  effect.about.directory = fmt::format(".tmp-{}-g{}-{}.{}", effect.about.step, generation(),
                                       member_.worker, member_.attempt);
  writing_ = Writing{++writings_, std::move(effect), {model_, step()}};
  write_on(writings_, 0);
  return {};
}

void Worker::write_on(std::uint64_t number, std::uint64_t parts) {
  if (!writing_ || writing_->number != number) return;
  if (shape_.write_time > Duration::zero() && parts < kParts) {
    say_io("writing the checkpoint", writing_->save.about.directory, parts);
    return later(shape_.write_time / kParts,
                 [this, number, parts] { write_on(number, parts + 1); });
  }
  written(around_.write_checkpoint(writing_->save.about.directory, writing_->state));
}

void Worker::written(std::string error) {
  say_no_io();
  const worker::Save save = std::move(std::exchange(writing_, std::nullopt)->save);
  saved_ = save.about;
  saved_->error = std::move(error);
  if (save.kind == worker::Save::Kind::kOrdered) feed(*saved_);
  turn();
}

Worker::Answer Worker::perform(const worker::GiveUpSaving& effect) {
  if (writing_) written(effect.reason);
  return {};
}

void Worker::say_io(const char* what, const std::string& path, std::uint64_t parts) {
  constexpr Duration kMoment = seconds(2);
  if (!moves_since_ || world_.now() - moved_ > kMoment) moves_since_ = world_.now();
  moved_ = world_.now();
  if (sabotage_ == Sabotage::kSayNoBytes) return;
  core_.set_io({what, path, parts * kPartBytes, kParts * kPartBytes});
}

void Worker::say_no_io() {
  moves_since_.reset();
  core_.set_io({});
}

Duration Worker::moves_bytes_for() const {
  return moves_since_ && alive() && !stopped() ? world_.now() - *moves_since_ : Duration::zero();
}

// ------------------------------------------------------------------- a step

Worker::Answer Worker::perform(const worker::StartReading& effect) {
  if (effect.data == worker::Data::kTrain) {
    world_.say("{}.{} trains phase {} from {} of {} records at step {}", member_.worker,
               member_.attempt, phase().phase, phase().committed, phase().records, step());
  }
  return {};
}

Worker::Answer Worker::perform(const worker::BeginStep&) {
  batch_.clear();
  return {};
}

Worker::Answer Worker::perform(const worker::DropStep&) {
  batch_.clear();
  gathered_.reset();
  return {};
}

Worker::Answer Worker::perform(const worker::AbandonStep&) {
  leave_ring(false);
  return {};
}

Worker::Answer Worker::perform(const worker::ComputeMicroBatch& effect) {
  return take_on(effect, batch_.size(), clock_.now() + effect.patience);
}

// What was taken of it lies behind `begin` in the batch. The time of a step passes with its last
// micro-batch.
Worker::Answer Worker::take_on(const worker::ComputeMicroBatch& effect, std::size_t begin,
                               MonoTime until) {
  const bool more_may_come = take_records(begin + effect.records);
  const std::size_t got = batch_.size() - begin;
  if (got < effect.records && more_may_come && clock_.now() < until) {
    under_way_ = true;
    later(kLookAgain, [this, effect, begin, until, operation = ++operation_] {
      if (operation != operation_) return;
      if (auto taken = take_on(effect, begin, until)) answered(operation, std::move(*taken));
    });
    return {};
  }
  worker::MicroBatchComputed done;
  done.data = kDataTime;
  if (got > 0) {
    done.status = client::TakeStatus::kData;
    done.records = static_cast<std::uint32_t>(got);
    done.weight = static_cast<double>(got);
    done.compute = slowed(shape_.sample_time * static_cast<int>(got));
    if (!effect.last) return done;
  }
  const Duration work = kStepTime + shape_.sample_time * static_cast<int>(batch_.size());
  core_.set_activity(worker::name_of(worker::TimeUse::kCompute));
  answer_after(slowed(world_.rng().time(work, work + work / 4)), done);
  return {};
}

// True: more may come if it waits.
bool Worker::take_records(std::size_t wanted) {
  bool more_may_come = false;
  while (batch_.size() < wanted) {
    const client::Taken taken = core_.take(wanted - batch_.size());
    if (taken.records == 0) {
      more_may_come = taken.status == client::TakeStatus::kWait && !taken.dry && !taken.stale;
      break;
    }
    const std::size_t before = batch_.size();
    for (const wire::Piece& piece : taken.pieces) append_records(piece, batch_);
    for (std::size_t i = before; i < batch_.size(); ++i) around_.took(*this, batch_[i]);
  }
  feed(client::TimePassed{});
  return more_may_come;
}

// The sums go with the slots.
Worker::Answer Worker::perform(const worker::Reduce&) { return worker::Reduced{}; }

Worker::Answer Worker::perform(const worker::GatherSlots& effect) {
  Contribution mine;
  mine.slot = effect.mine;
  mine.records = std::exchange(batch_, {});
  exchange(std::move(mine), [this](const auto& all) {
    gathered_ = all;
    worker::SlotsGathered slots;
    for (const Contribution& c : *all) slots.slots.push_back(c.slot);
    return slots;
  });
  return {};
}

Worker::Answer Worker::perform(const worker::Apply&) {
  for (int times = 0; times < (sabotage_ == Sabotage::kApplyTwice ? 2 : 1); ++times) {
    for (const Contribution& c : *gathered_) {
      for (const Record r : c.records) {
        ++model_.tally.at(r);
        around_.trained(*this, r);
      }
    }
  }
  gathered_.reset();
  return worker::Applied{};
}

Worker::Answer Worker::perform(const worker::TakePlan& effect) {
  auto plan = core_.orders().plan(effect.version);
  if (!plan) {
    world_.violate("a plan is held by who says so", doing());
    exit(kVictim);
    return {};
  }
  return worker::PlanTaken{std::move(*plan)};
}

// No link here is slower than another.
Worker::Answer Worker::perform(const worker::MeasureHop&) { return worker::HopMeasured{}; }

Worker::Answer Worker::perform(const worker::AwaitRecords& effect) {
  answer_after(effect.time, worker::RecordsAwaited{});
  return {};
}

Worker::Answer Worker::perform(const worker::EvaluateBatch& effect) {
  const client::Taken taken = core_.take(effect.records);
  feed(client::TimePassed{});
  worker::BatchEvaluated done{taken.status, taken.records, {}};
  if (taken.status == client::TakeStatus::kEnd) return done;
  if (taken.records == 0) {
    answer_after(kEvalLookAgain, std::move(done));
    return {};
  }
  core_.set_activity(worker::name_of(worker::TimeUse::kCompute));
  done.partial.records = taken.records;
  answer_after(slowed(shape_.sample_time * static_cast<int>(taken.records)), std::move(done));
  return {};
}

}  // namespace antdt::sim
