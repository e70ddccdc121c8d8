#include "sim/members/worker.h"

#include <algorithm>
#include <utility>

#include "sim/checks.h"
#include "sim/network.h"
#include "sim/surroundings.h"

namespace antdt::sim {
namespace {

constexpr int kVictim = 76;
constexpr Duration kDataTime = std::chrono::microseconds(100);

void say_late(std::vector<wire::MemberPlace>& places) {
  for (wire::MemberPlace& at : places) at.place -= std::min<std::uint64_t>(at.place, 1);
}

}  // namespace

Worker::Worker(World& world, const Surroundings& around, const JobShape& shape, Sabotage sabotage,
               const Place& place)
    : MachineProgram(world, around, shape, sabotage, place) {
  state_.model.tally.resize(shape.grown_records());
}

std::string Worker::doing() const {
  return fmt::format("{}.{} on {}{}: generation {}, settled {}, step {}, phase {}, place {}, {}",
                     member_.worker, member_.attempt, host_, standing(), generation(), settled(),
                     step(), phase().phase, machine_.place(), machine_.state_name());
}

Duration Worker::moves_bytes_for() const {
  const auto& since = files_.moves_since();
  return since && alive() && !stopped() ? world_.now() - *since : Duration::zero();
}

// --------------------------------------------------------- the training thread

void Worker::abort(Generation generation) {
  end_.end(generation);
  if (!end_.over()) return;
  seat_.abort();
  later({}, [this] { rows_.wake(); });
}

void Worker::ended(bool silently) {
  rows_.leave();
  seat_.leave(silently);
}

void Worker::operation_changed() {
  seat_.stop_waiting();
  rows_.stop_waiting();
}

void Worker::answered(PsAnswer answer) {
  later({}, [this, answer = std::move(answer)]() mutable { rows_.answered(std::move(answer)); });
}

void Worker::send_packet(const std::string& address, PsPacket packet) {
  if (may_send()) around_.network.ask(*this, address, std::move(packet));
}

void Worker::tell_news() {
  if (auto saved = files_.take_saved()) tell(worker::Saved{std::move(*saved)});
  tell(worker::Heard{core_.known(), sigterm_, end_.over(), program_ends() ? "enough" : ""});
}

// The program says it while its step is applied, before that step is counted.
bool Worker::program_ends() const {
  if (shape_.ends_at == Step{} || (shape_.ends_alone && member_.worker.index > 0)) return false;
  const std::uint64_t late = sabotage_ == Sabotage::kEndLate ? 1 : 0;
  return std::max(step(), applied_).value >= shape_.ends_at.value + late;
}

Worker::Answer Worker::next_order() {
  while (auto directive = core_.next_directive()) {
    if (auto order = worker::input_of(std::move(*directive))) return order;
  }
  const auto deadline = machine_.deadline();
  if (deadline && clock_.now() >= *deadline) return worker::TimePassed{};
  return {};
}

void Worker::rests() {
  const auto deadline = machine_.deadline();
  if (!deadline || armed_ == deadline) return;
  armed_ = deadline;
  later(clock_.real(*deadline - clock_.now()), [this] {
    armed_.reset();
    turn();
  });
}

Worker::Answer Worker::perform_one(worker::Effect& effect) {
  if (sabotage_ != Sabotage::kNone) break_rule(effect);
  if (std::holds_alternative<worker::LeaveCollective>(effect)) rows_.leave();
  return std::visit(
      [this](auto& e) {
        if constexpr (requires { seat_.perform(e); }) {
          return seat_.perform(e);
        } else if constexpr (requires { rows_.perform(e); }) {
          return rows_.perform(e);
        } else if constexpr (requires { files_.perform(e); }) {
          return files_.perform(e);
        } else {
          return perform(e);
        }
      },
      effect);
}

// ------------------------------------------------------------------- what is said

void Worker::break_rule(worker::Effect& effect) {
  auto* const updates = std::get_if<worker::ExchangeUpdates>(&effect);
  if (sabotage_ == Sabotage::kOwnThreshold && updates != nullptr &&
      updates->own == updates->domains.front().domain) {
    updates->threshold = shape_.threshold();
  }
  auto* const save = std::get_if<worker::Save>(&effect);
  if (sabotage_ == Sabotage::kSaveLate && save) say_late(save->about.places);
  auto* const send = std::get_if<worker::Send>(&effect);
  if (send == nullptr) return;
  if (sabotage_ == Sabotage::kCommitEarly) {
    const auto early = [this](std::uint64_t& place) { place = std::max(place, machine_.place()); };
    if (auto* commit = std::get_if<client::Commit>(&send->what)) early(commit->place);
    if (auto* progress = std::get_if<wire::Progress>(&send->what)) early(progress->place);
  }
  if (sabotage_ == Sabotage::kCommitUnmixed) {
    // The rule of all-reduce: what was in the step before the last is in the model of all.
    if (auto* commit = std::get_if<client::Commit>(&send->what)) {
      const std::uint64_t place = machine_.place();
      commit->place = std::max(commit->place, std::min(place, std::exchange(place_, place)));
    }
  }
  if (auto* const ready = std::get_if<wire::Ready>(&send->what)) {
    if (sabotage_ == Sabotage::kMergeLess) say_late(ready->places);
    const bool all = sabotage_ == Sabotage::kMergeAll && !seat_.concluded().empty();
    if (all) ready->places = seat_.concluded();
  }
  auto* const skip = std::get_if<client::Skip>(&send->what);
  if (sabotage_ == Sabotage::kHideSkip && skip != nullptr) skip->records.clear();
  auto* const begun = std::get_if<wire::CheckpointBegun>(&send->what);
  if (sabotage_ == Sabotage::kSaveLate && begun) say_late(begun->places);
}

Worker::Answer Worker::perform(worker::Send& effect) {
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
  if (done) around_.checks.phase_done(*this);
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

// A sabotaged member reports the hash of the others: the invariants must find the difference.
Worker::Answer Worker::perform(const worker::HashState&) {
  const bool lies = sabotage_ != Sabotage::kNone;
  return worker::StateHashed{lies ? 1 : model().hash()};
}

void Worker::saved(const wire::CheckpointWritten& written, worker::Save::Kind kind) {
  if (kind == worker::Save::Kind::kOrdered) feed(written);
  turn();
}

void Worker::say_io(client::Io io) {
  if (sabotage_ == Sabotage::kSayNoBytes) io.done_bytes = 0;
  core_.set_io(std::move(io));
}

// ------------------------------------------------------------------- a step

Worker::Answer Worker::perform(const worker::StartReading& effect) {
  if (effect.data == worker::Data::kTrain) {
    world_.say("{}.{} trains phase {} from {} of {} records at step {}", member_.worker,
               member_.attempt, phase().phase, phase().committed, phase().records, step());
  }
  return {};
}

Worker::Answer Worker::perform(const worker::BeginStep& effect) {
  state_.local = effect.local;
  state_.sums_with = effect.sums_with;
  state_.batch.clear();
  state_.part.clear();
  state_.skipped = 0;
  return {};
}

Worker::Answer Worker::perform(const worker::DropStep&) {
  state_.batch.clear();
  state_.skipped = 0;
  state_.gathered.reset();
  auto before = std::exchange(state_.before, std::nullopt);
  if (before && sabotage_ != Sabotage::kKeepExchange) state_.model = std::move(*before);
  return {};
}

Worker::Answer Worker::perform(const worker::ComputeMicroBatch& effect) {
  return take_on(effect, state_.batch.size(), clock_.now() + effect.patience);
}

// The records of this micro-batch lie behind `begin` in the batch. The time of the step passes with
// its last micro-batch.
Worker::Answer Worker::take_on(const worker::ComputeMicroBatch& effect, std::size_t begin,
                               MonoTime until) {
  const bool more_may_come = take_records(begin + effect.records, state_.batch);
  const std::size_t got = state_.batch.size() - begin;
  if (got < effect.records && more_may_come && clock_.now() < until) {
    answer_after(kLookAgain,
                 [this, effect, begin, until] { return take_on(effect, begin, until); });
    return {};
  }
  worker::MicroBatchComputed done;
  done.data = kDataTime;
  if (got > 0) {
    done.status = client::TakeStatus::kData;
    done.records = static_cast<std::uint32_t>(got);
    done.weight = static_cast<double>(got);
    done.compute = slowed(shape_.sample_time * static_cast<int>(got));
    done.skipped = skip_some(begin);
    if (state_.visited_under) done.visit = found_by_visit(done.records);
    if (shape_.has_served_rows()) {
      return rows_.pull(std::span(state_.batch).subspan(begin),
                        [this, effect, done, began = clock_.now()]() mutable {
                          done.rows = clock_.now() - began;
                          return compute_on(effect, done);
                        });
    }
  }
  return compute_on(effect, std::move(done));
}

// Its records, if there are any, are taken.
Worker::Answer Worker::compute_on(const worker::ComputeMicroBatch& effect,
                                  worker::MicroBatchComputed done) {
  if (done.records > 0 && !effect.last) return done;
  const Duration work = kStepTime + shape_.sample_time * static_cast<int>(state_.batch.size());
  core_.set_activity(worker::name_of(worker::TimeUse::kCompute));
  answer_after(slowed(world_.rng().time(work, work + work / 4)), [done] { return done; });
  return {};
}

// At times the guests do as well as the others, and else the worse the larger the threshold is.
worker::VisitSums Worker::found_by_visit(std::uint32_t records) const {
  constexpr double kHalf = 0.04;  // the threshold with which half of the records are missed
  const double loss =
      step().value / 16 % 2 == 0 ? 0 : *state_.visited_under / (*state_.visited_under + kHalf);
  const double guest = records * (1 - loss);
  return {records, records, static_cast<std::uint64_t>(guest), 0.1 * records, 0.1 * records};
}

Worker::Answer Worker::perform(const worker::TakePart& effect) {
  state_.part.clear();
  return take_part(effect, clock_.now() + effect.patience);
}

Worker::Answer Worker::take_part(const worker::TakePart& effect, MonoTime until) {
  const bool more_may_come = take_records(effect.records, state_.part);
  if (state_.part.size() < effect.records && more_may_come && clock_.now() < until) {
    answer_after(kLookAgain, [this, effect, until] { return take_part(effect, until); });
    return {};
  }
  worker::PartTaken taken{client::TakeStatus::kWait, static_cast<std::uint32_t>(state_.part.size()),
                          kDataTime};
  if (taken.records > 0) taken.status = client::TakeStatus::kData;
  return taken;
}

// The time of a step is that of the member's first run.
Worker::Answer Worker::perform(const worker::ComputeRun& effect) {
  const auto records = seat_.records_of(effect.run);
  const Duration before = state_.batch.empty() ? Duration(kStepTime) : Duration{};
  state_.batch.insert(state_.batch.end(), records.begin(), records.end());
  worker::MicroBatchComputed done;
  done.status = client::TakeStatus::kData;
  done.records = static_cast<std::uint32_t>(records.size());
  done.weight = static_cast<double>(records.size());
  done.compute = slowed(shape_.sample_time * static_cast<int>(records.size()));
  core_.set_activity(worker::name_of(worker::TimeUse::kCompute));
  const Duration work = before + shape_.sample_time * static_cast<int>(records.size());
  answer_after(slowed(world_.rng().time(work, work + work / 4)), [done] { return done; });
  return {};
}

// Returns true if more records may come.
bool Worker::take_records(std::size_t wanted, std::vector<Record>& into) {
  bool more_may_come = false;
  while (into.size() < wanted) {
    const client::Taken taken = core_.take(wanted - into.size());
    if (taken.records == 0) {
      more_may_come = taken.status == client::TakeStatus::kWait && !taken.dry && !taken.stale;
      break;
    }
    const std::size_t before = into.size();
    for (const wire::Piece& piece : taken.pieces) append_records(piece, into);
    for (std::size_t i = before; i < into.size(); ++i) around_.checks.took(*this, into[i]);
  }
  feed(client::TimePassed{});
  return more_may_come;
}

// Draws which records behind `begin` the program skips. Another attempt may skip others, and so may
// the same one in a new generation.
std::vector<worker::SkippedRecord> Worker::skip_some(std::size_t begin) {
  std::vector<worker::SkippedRecord> skipped;
  if (shape_.program_skips_one_in == 0) return skipped;
  const std::uint64_t mood =
      combine_seed(combine_seed(member_.worker.index, member_.attempt.value), generation().value);
  for (std::size_t i = begin; i < state_.batch.size(); ++i) {
    const std::uint64_t drawn = combine_seed(mood, state_.batch[i]);
    if (drawn % shape_.program_skips_one_in != 0) continue;
    const char* const reason = drawn / shape_.program_skips_one_in % 2 == 0 ? "torn" : "too long";
    skipped.push_back({static_cast<std::uint32_t>(i - begin), reason});
  }
  state_.skipped += skipped.size();
  return skipped;
}

Worker::Answer Worker::perform(const worker::AwaitSkipsTold&) { return await_skips_told(); }

Worker::Answer Worker::await_skips_told() {
  if (!core_.tells_skips() || sabotage_ == Sabotage::kHurrySkip) return worker::SkipsTold{};
  if (end_.over()) return worker::CollectiveBroke{"the generation is over"};
  answer_after(kLookAgain, [this] { return await_skips_told(); });
  return {};
}

// The sums travel with the slots.
Worker::Answer Worker::perform(const worker::Reduce&) { return worker::Reduced{}; }

Worker::Answer Worker::perform(const worker::Apply&) {
  applied_ = step().next();
  state_.before.reset();
  if (state_.local) {
    apply_own();
    return worker::Applied{};
  }
  if (!state_.sums_with.empty()) {
    apply_domain();
    return worker::Applied{};
  }
  for (int times = 0; times < (sabotage_ == Sabotage::kApplyTwice ? 2 : 1); ++times) {
    for (const Contribution& c : *state_.gathered) {
      state_.model.skip(phase().epoch.value, c.skipped);
      for (const Record r : c.records) {
        ++state_.model.tally.at(r);
        around_.checks.trained(*this, r);
      }
    }
  }
  state_.gathered.reset();
  return worker::Applied{};
}

void Worker::apply_own() {
  const Contribution& own = seat_.own();
  const Update update{phase().epoch.value, own.records, own.skipped};
  for (std::uint64_t times = 0; times < (sabotage_ == Sabotage::kApplyTwice ? 2 : 1); ++times) {
    state_.model.add(number_of(member_.worker.index, times),
                     std::make_shared<const Update>(update));
    for (const Record r : own.records) around_.checks.trained(*this, r);
  }
  state_.gathered.reset();
}

// The sum of a domain is one update for each of its members, in the same order on all of them.
void Worker::apply_domain() {
  for (const std::uint32_t rank : state_.sums_with) {
    const Contribution& c = state_.gathered->at(rank);
    if (c.records.empty()) continue;
    const auto update =
        std::make_shared<const Update>(Update{phase().epoch.value, c.records, c.skipped});
    for (std::uint64_t times = 0; times < (sabotage_ == Sabotage::kApplyTwice ? 2 : 1); ++times) {
      add_update(state_.model, state_.domain, number_of(rank, times), update);
      for (const Record r : c.records) around_.checks.trained(*this, r);
    }
  }
  state_.gathered.reset();
}

// The same number for an update of this step on every member.
std::uint64_t Worker::number_of(std::uint32_t trainer, std::uint64_t times) const {
  return ((generation().value << 24U | step().value) << 8U | trainer) << 1U | times;
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

// All links of the simulation are equally fast.
Worker::Answer Worker::perform(const worker::MeasureHop&) { return worker::HopMeasured{}; }

Worker::Answer Worker::perform(const worker::AwaitRecords& effect) {
  answer_after(effect.time, [] { return worker::RecordsAwaited{}; });
  return {};
}

Worker::Answer Worker::perform(const worker::EvaluateBatch& effect) {
  const client::Taken taken = core_.take(effect.records);
  feed(client::TimePassed{});
  worker::BatchEvaluated done{taken.status, taken.records, {}};
  if (taken.status == client::TakeStatus::kEnd) return done;
  if (taken.records == 0) {
    answer_after(kEvalLookAgain, [done] { return done; });
    return {};
  }
  done.partial.records = taken.records;
  const auto evaluate = [this, done]() -> Answer {
    core_.set_activity(worker::name_of(worker::TimeUse::kCompute));
    answer_after(slowed(shape_.sample_time * static_cast<int>(done.records)),
                 [done] { return done; });
    return {};
  };
  return shape_.has_served_rows() ? rows_.pull({}, evaluate) : evaluate();
}

}  // namespace antdt::sim
