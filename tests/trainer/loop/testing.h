// Members of a FakeJob, each as a thread: a model that counts how often each record entered it, a
// ring without a network, and scripts that kill or break them.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "core/os/fs.h"
#include "tests/trainer/fake_job.h"
#include "tests/trainer/local_group.h"
#include "tests/trainer/saved_state.h"
#include "trainer/loop/member_driver.h"

namespace antdt::trainer {

// Record i is its own number.
class Numbers final : public data::RecordReader {
 public:
  explicit Numbers(std::uint64_t records) : records_(records) { shape_.id_width = 1; }
  [[nodiscard]] const data::DataShape& shape() const override { return shape_; }
  [[nodiscard]] std::uint64_t records() const override { return records_; }
  [[nodiscard]] Status read(std::span<const std::uint64_t> numbers, data::Examples& out) override {
    out.clear();
    out.count = numbers.size();
    for (const std::uint64_t number : numbers) {
      out.ids.push_back(static_cast<std::int64_t>(number));
      out.labels.push_back(1);
    }
    return {};
  }

 private:
  std::uint64_t records_;
  data::DataShape shape_;
};

// The points outside its collective at which a member may be killed, by an exception.
enum class Point { kCompute, kReduce, kApply, kApplied, kEvaluate, kSave, kReplaced };
using PointScript =
    std::function<void(Point, Step)>;  // the last step that was applied or discarded

// One counter a record.
class Tally final : public Engine {
 public:
  Tally(std::uint64_t records, PointScript script, std::size_t ballast_bytes)
      : counts_(records), step_(records), ballast_(ballast_bytes), script_(std::move(script)) {}

  void begin_step(Collective& collective) override {
    for (const float value : step_) EXPECT_EQ(value, 0) << "left over from a step that broke";
    collective_ = &collective;
  }
  [[nodiscard]] Result<BatchSums> compute(const data::Examples& batch, bool) override {
    reach(Point::kCompute);
    for (const std::int64_t id : batch.ids) ++step_[static_cast<std::size_t>(id)];
    return BatchSums{static_cast<double>(batch.count), 2.0 * static_cast<double>(batch.count)};
  }
  [[nodiscard]] Status finish_reduction() override {
    reach(Point::kReduce);
    return collective_->allreduce_sum(step_);
  }
  [[nodiscard]] Status apply(double weight) override {
    reach(Point::kApply);
    if (weights_.size() == fails_after_) return fail(ErrorKind::kInternal, "the optimizer jams");
    weights_.push_back(weight);
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += step_[i];
    for (std::size_t i = weights_.size(); i < ballast_.size(); i += 5003) {
      ballast_[i] = static_cast<std::byte>(i + weights_.size());
    }
    discard();
    reach(Point::kApplied);
    return {};
  }
  void set_rate(double factor) override { rate_ = factor; }
  void discard() override { std::fill(step_.begin(), step_.end(), 0.0F); }
  [[nodiscard]] Result<wire::EvalPartial> evaluate(const data::Examples& batch) override {
    reach(Point::kEvaluate);
    wire::EvalPartial partial;
    partial.records = batch.count;
    return partial;
  }
  [[nodiscard]] std::vector<StateFile> state_files(Step step) const override {
    reach(Point::kSave);
    return {{"tally", {}, {std::as_bytes(std::span(counts_)), std::span(ballast_)}},
            {"step", std::to_string(step.value)}};
  }
  [[nodiscard]] Result<Step> load(CheckpointReader& files) override {
    if (cannot_load_) return fail(ErrorKind::kIo, "cannot read {}", files.directory());
    ANTDT_TRY(const std::string step, files.text("step"));
    const std::vector<std::span<std::byte>> parts{std::as_writable_bytes(std::span(counts_)),
                                                  std::span(ballast_)};
    ANTDT_RETURN_IF_ERROR(files.into("tally", parts));
    return Step{std::stoull(step)};
  }
  // Several parts, so that their order matters.
  [[nodiscard]] std::vector<std::span<std::byte>> state_parts() override {
    const auto counts = std::as_writable_bytes(std::span(counts_));
    const std::size_t cut = counts.size() / 3;
    return {counts.first(cut), std::span(ballast_), counts.subspan(cut)};
  }
  void state_replaced() override {
    ++replaced_;
    reach(Point::kReplaced);
  }
  [[nodiscard]] DeviceState* device_state() override { return device_; }

  DeviceState* device_ = nullptr;
  std::vector<float> counts_;
  std::vector<double> weights_;  // of each step that was applied here
  double rate_ = 1;
  std::uint32_t replaced_ = 0;
  bool cannot_load_ = false;
  std::optional<std::size_t> fails_after_;  // so many steps: the next one cannot be applied

 private:
  void reach(Point point) const {
    if (script_) script_(point, Step{weights_.size()});
  }
  std::vector<float> step_;
  std::vector<std::byte> ballast_;
  PointScript script_;
  Collective* collective_ = nullptr;
};

// The faults of the members; by default there are none.
struct Faults {
  // The faults in a member's collective, by generation.
  std::function<Fate(std::uint64_t generation, std::uint32_t index, OperationKind, std::uint64_t)>
      in_collective;
  std::function<void(std::uint32_t index, Point, Step)> at_point;
  std::atomic<int> refused_connections = 0;  // of the first member's
  // A member of the first generation waits when it comes to such a point for the n-th time (from
  // 0), until it is told to regroup.
  std::optional<std::pair<Point, std::uint32_t>> waits_for_regroup;
};

// One group a generation, as the key says.
class LocalNetwork {
 public:
  explicit LocalNetwork(Faults& faults) : faults_(faults) {}
  [[nodiscard]] Result<std::unique_ptr<Collective>> connect(std::uint64_t generation,
                                                            std::uint32_t rank, std::uint32_t size,
                                                            std::uint32_t index) {
    if (index == 0 && faults_.refused_connections-- > 0) {
      return fail(ErrorKind::kIo, "connection refused");
    }
    const std::lock_guard lock(mutex_);
    const auto group = groups_.try_emplace(generation, size).first;
    LocalGroup::Script script;
    if (faults_.in_collective) {
      script = [this, generation, index](OperationKind kind, std::uint64_t number) {
        return faults_.in_collective(generation, index, kind, number);
      };
    }
    return group->second.member(rank, std::move(script));
  }

 private:
  Faults& faults_;
  std::mutex mutex_;
  std::map<std::uint64_t, LocalGroup> groups_;
};

class LocalBuilder final : public CollectiveBuilder {
 public:
  LocalBuilder(LocalNetwork& network, std::uint32_t rank, std::uint32_t size, std::uint32_t index)
      : network_(network), rank_(rank), size_(size), index_(index) {}
  [[nodiscard]] MemberAddress address() const override { return {fmt::format("of {}", rank_), {}}; }
  [[nodiscard]] Result<std::unique_ptr<Collective>> connect(
      std::span<const MemberAddress> addresses, const GroupKey& key) override {
    EXPECT_EQ(addresses.size(), size_);
    for (std::uint32_t r = 0; r < addresses.size(); ++r) {
      EXPECT_EQ(addresses[r].at, fmt::format("of {}", r));
    }
    return network_.connect(key.generation.value, rank_, size_, index_);
  }
  void abort() override {}

 private:
  LocalNetwork& network_;
  const std::uint32_t rank_, size_, index_;
};

struct Outcome {
  std::uint32_t index = 0;
  bool killed = false;
  Result<int> code = 0;
  std::vector<float> counts;
  std::vector<double> weights;
  double rate = 0;             // that it ended with
  std::uint32_t replaced = 0;  // times that the state came from another member
  Duration wall{};
  wire::TimeAccount account;
};

struct Drill {
  FakeJob& job;
  std::uint32_t members = 1;  // newcomers included: all processes there ever are
  std::uint64_t records = 0;
  std::vector<drill::Rule> rules_of_w0 = {};
  std::size_t ballast_bytes = 0;  // of the training state, beside the counters
  std::uint32_t eval_batch = 256;
  std::uint32_t first_members = 0;  // those that Faults::waits_for_regroup is about
  std::optional<std::uint32_t> unreadable_for = {};  // this member can read no checkpoint
  std::optional<std::size_t> fails_after = {};       // so many steps, on each member
};

inline void await_regroup(const client::Client& client, const FakeJob& job) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!client.regroup_requested() && job.settled() < 2) {
    if (std::chrono::steady_clock::now() > deadline) return ADD_FAILURE() << "no regroup came";
    std::this_thread::yield();
  }
}

// One member's life, in this thread.
inline void live(const Drill& drill, Faults& faults, LocalNetwork& network, Outcome& outcome) {
  const std::uint32_t index = outcome.index;
  const SteadyClock clock;
  const MonoTime began = clock.now();
  TimeAccount account(clock, began);
  // A killed member's threads use these until their end, so they are destroyed last.
  GenerationGuard guard;
  Numbers train(drill.records);
  Numbers eval(drill.records);
  auto client = client::Client::connect(drill.job.environment(index), std::chrono::seconds(60));
  ASSERT_TRUE(client) << client.error().message;
  data::Prefetcher prefetcher(
      [&](std::uint64_t most, Duration timeout) { return (*client)->take(most, timeout); });
  std::uint32_t reached = 0;
  Tally engine(
      drill.records,
      [&](Point point, Step step) {
        if (faults.at_point) faults.at_point(index, point, step);
        const auto& waits = faults.waits_for_regroup;
        const bool is_first = index < drill.first_members;
        if (waits && waits->first == point && is_first && reached++ == waits->second) {
          await_regroup(**client, drill.job);
        }
      },
      drill.ballast_bytes);
  engine.cannot_load_ = drill.unreadable_for == index;
  engine.fails_after_ = drill.fails_after;
  Injected injected(
      clock, {index == 0 ? drill.rules_of_w0 : std::vector<drill::Rule>{}, {{'w', index}, "a"}, 1});
  const std::atomic<bool> stop = false;
  const auto make = [&](const Seat& seat) {
    return Result<std::unique_ptr<CollectiveBuilder>>(
        std::make_unique<LocalBuilder>(network, seat.rank, seat.size, index));
  };
  try {
    MemberDriver member({clock, **client, engine, prefetcher, account, injected, guard, stop},
                        {&train, &eval, {}, make, drill.eval_batch});
    outcome.code = member.run();
  } catch (const Killed&) {
    outcome.killed = true;
  }
  outcome.counts = engine.counts_;
  outcome.weights = engine.weights_;
  outcome.rate = engine.rate_;
  outcome.replaced = engine.replaced_;
  outcome.account = account.seconds();
  outcome.wall = clock.now() - began;
}

// Records of an epoch in which a member is lost and found.
inline constexpr std::uint64_t kEpochRecords = 600;
inline std::vector<FakeJob::Phase> two_epochs() {
  return {{wire::PhaseKind::kTrain, kEpochRecords},
          {wire::PhaseKind::kEval, kEpochRecords},
          {wire::PhaseKind::kTrain, kEpochRecords}};
}

// Runs them until all have ended.
inline std::vector<Outcome> run_drill(const Drill& drill, Faults& faults) {
  LocalNetwork network(faults);
  std::vector<Outcome> outcomes(drill.members);
  std::vector<std::thread> threads;
  for (std::uint32_t index = 0; index < drill.members; ++index) {
    threads.emplace_back([&, index] {
      outcomes[index].index = index;
      live(drill, faults, network, outcomes[index]);
      if (outcomes[index].killed) drill.job.lose({'w', index});
    });
  }
  for (auto& thread : threads) thread.join();
  for (const Outcome& outcome : outcomes) {
    if (!outcome.killed && outcome.code) drill.job.await_bye({'w', outcome.index});
  }
  return outcomes;
}

inline std::vector<wire::PlanEntry> even_plan(std::uint32_t size, std::uint32_t micro_batch,
                                              std::uint32_t accumulation = 1) {
  std::vector<wire::PlanEntry> plan;
  for (std::uint32_t i = 0; i < size; ++i) plan.push_back({{'w', i}, micro_batch, accumulation});
  return plan;
}

inline double sum_of(const wire::TimeAccount& a) {
  return a.compute + a.data + a.collective_wait + a.shard_wait + a.reconfigure + a.checkpoint +
         a.startup + a.other;
}

}  // namespace antdt::trainer
