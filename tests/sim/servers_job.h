// Jobs with parameter servers, played without packets: the real job decides, and the workers are
// numbers.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "sim/fleet/player.h"

namespace antdt::fleet::with_servers {

inline constexpr double kPerSample = 0.01;

// A batch of 100 samples takes a second; worker 0 may be slower.
class OneSlow final : public Speeds {
 public:
  explicit OneSlow(double slowdown) : slowdown_(slowdown) {}
  BatchTime at(std::uint32_t worker, double, std::uint64_t) const override {
    BatchTime time;
    time.per_sample_s = kPerSample;
    if (worker == 0) time.slowdown = slowdown_;
    return time;
  }
  double noise(std::uint32_t, std::uint64_t) const override { return 1; }

 private:
  double slowdown_;
};

inline Setup job(SyncStrategy sync, std::uint64_t steps, const std::string& solution) {
  Setup setup;
  setup.workers = 4;
  setup.servers = 2;
  setup.solution = std::move(*ctl::make_solution(solution));
  setup.machine.job = "simulated";
  setup.machine.spec.sync = sync;
  setup.machine.spec.servers = 2;
  setup.machine.spec.staleness = 2;
  setup.machine.control.rules.global_batch = 400;
  setup.machine.control.rules.adjust = ctl::Adjust::kSize;
  setup.machine.spec.train_records = steps * 400;
  setup.machine.ledger.train = {setup.machine.spec.train_records, 400, shard_server::Shuffle::kFull,
                                7};
  setup.machine.spec.checkpoint_every = std::chrono::minutes(1);
  return setup;
}

inline Played play(Setup setup, double slowdown) {
  const OneSlow speeds(slowdown);
  const std::uint64_t records = setup.machine.spec.train_records;
  const std::uint32_t epochs = setup.machine.spec.epochs;
  auto played = Player(std::move(setup), speeds).play();
  EXPECT_TRUE(played) << played.error().message;
  if (!played) return {};
  EXPECT_TRUE(played->ended);
  EXPECT_EQ(played->report.state, JobState::kDone)
      << (played->report.outcome ? played->report.outcome->first_cause : "");
  EXPECT_EQ(played->report.totals.once, records * epochs);
  EXPECT_EQ(played->report.totals.repeated + played->report.totals.lost, 0U);
  return std::move(*played);
}

// Kills a process after 20 s of the job.
class Killer final : public Onlooker {
 public:
  explicit Killer(WorkerId whom) : whom_(whom) {}
  void begin(Player& player) override {
    player.world().after(std::chrono::seconds(20), [this, &player] {
      player.kill(whom_, {-1, 9, "", "", ""});
    });
  }
  void persist(const ctl::job::PersistRecord&) override {}
  void remember(shard_server::history::Entry) override {}
  void end_turn() override {}

 private:
  WorkerId whom_;
};

}  // namespace antdt::fleet::with_servers
