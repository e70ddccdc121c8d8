// The hard cases of losing and regaining members, each played exactly: messages are held until the
// decisive moment.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "sim/cluster.h"
#include "tests/sanitized.h"

namespace antdt::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

WorkerId w(std::uint32_t index) { return {'w', index}; }

class HardCaseTest : public testing::Test {
 protected:
  static constexpr std::uint32_t kWorkers = 4;

  explicit HardCaseTest(Sync sync = Sync::kAllReduce, std::uint32_t workers = kWorkers)
      : cluster(world, options(sync, workers)) {
    cluster.begin();
  }

  static Options options(Sync sync = Sync::kAllReduce, std::uint32_t workers = kWorkers) {
    Options o;
    o.seed = 3;
    o.sync = sync;
    o.trace = true;
    o.workers = workers;
    o.evaluate = false;
    o.epochs = all_or_some(12U, 5U);  // long enough for what is to happen
    o.faults_stop = seconds(1000);
    return o;
  }
  // Plays until `condition` holds. Returns false, with a failure, if it never does.
  template <class Condition>
  bool until(const char* what, Condition condition, Duration limit = seconds(120)) {
    const MonoTime end = world.now() + limit;
    while (!condition()) {
      if (world.violation() || world.now() > end || !world.run_one()) {
        ADD_FAILURE() << "not until: " << what << "\n"
                      << (world.violation() ? world.violation()->detail : cluster.describe())
                      << last_lines();
        return false;
      }
    }
    return true;
  }
  [[nodiscard]] std::string last_lines() const {
    constexpr std::size_t kShown = 5000;
    const std::string& all = world.transcript();
    return "\n" + all.substr(all.size() - std::min(all.size(), kShown));
  }
  void for_a_while(Duration time) {
    const MonoTime end = world.now() + time;
    until("time passes", [&] { return world.now() >= end; });
  }
  bool settled(std::uint64_t generation) {
    const ctl::JobMachine* m = cluster.machine();
    return m != nullptr && m->membership().settled() &&
           m->membership().generation() == Generation{generation};
  }
  // A generation after the first has settled, though its members may be called
  // together again already.
  bool regrouped() {
    const ctl::JobMachine* m = cluster.machine();
    return m != nullptr && m->membership().base() > Generation{1};
  }
  bool is_member(WorkerId id) {
    const auto at = cluster.worker(id);
    return at && cluster.machine() != nullptr && cluster.machine()->membership().settled() &&
           cluster.machine()->membership().contains(at->member());
  }
  std::uint64_t step_of(std::uint32_t index) {
    const auto at = cluster.worker(w(index));
    return at ? at->step().value : 0;
  }
  bool train_to(std::uint64_t step) {
    return until("all train", [&] {
      for (std::uint32_t i = 0; i < kWorkers; ++i) {
        if (step_of(i) < step) return false;
      }
      return settled(1);
    });
  }
  void kill(std::uint32_t index) {
    const auto at = cluster.worker(w(index));
    ASSERT_TRUE(at) << "w" << index << " does not run";
    at->kill(SIGKILL);
  }
  // Only w1 gets the sums of the step after its present one.
  bool only_w1_applies_a_step() {
    cluster.script.withholds_step = [](const Worker& at) {
      return at.member().worker != w(1) && at.generation() == Generation{1};
    };
    return until("w1 is ahead", [&] {
      return step_of(1) == step_of(0) + 1 && step_of(2) == step_of(0) && step_of(3) == step_of(0);
    });
  }
  // The states that members are sent in the second generation and later stay on
  // their way; true once one is.
  bool hold_healing() {
    cluster.script.withholds_state = [this](const Worker& to, WorkerId from) {
      receiver = to.member();
      source = from;
      return true;
    };
    return until("somebody is sent the state", [&] { return source.has_value(); });
  }
  // The job ends with every record once in the model, which sim/checks.h checks.
  void it_ends_well() {
    until(
        "the job ends", [&] { return cluster.ended(); }, seconds(400));
    ASSERT_TRUE(cluster.outcome());
    EXPECT_EQ(cluster.outcome()->state, JobEnd::kDone);
    EXPECT_FALSE(world.violation());
  }

  World world{options().seed, true};
  Cluster cluster;
  std::optional<Member> receiver;
  std::optional<WorkerId> source;
};

TEST_F(HardCaseTest, AStepThatOnlyOneAppliedWhoThenDiedIsTrainedAgain) {
  ASSERT_TRUE(train_to(3) && only_w1_applies_a_step());
  const std::uint64_t step = step_of(0);
  kill(1);
  ASSERT_TRUE(until("the survivors settle", [&] { return regrouped(); }));
  for (const std::uint32_t i : {0U, 2U, 3U}) EXPECT_EQ(step_of(i), step) << i;
  it_ends_well();
}

TEST_F(HardCaseTest, AStepThatOneSurvivorAppliedIsTakenOverByTheOthers) {
  ASSERT_TRUE(train_to(3) && only_w1_applies_a_step());
  const std::uint64_t step = step_of(1);
  kill(2);
  ASSERT_TRUE(until("the survivors settle", [&] { return regrouped(); }));
  for (const std::uint32_t i : {0U, 1U, 3U}) EXPECT_EQ(step_of(i), step) << i;
  EXPECT_EQ(cluster.worker(w(0))->model().tally, cluster.worker(w(1))->model().tally);
  it_ends_well();
}

TEST_F(HardCaseTest, WhenTheOnlyHolderOfTheFurthestStepDiesWhileItHealsTheStepBeforeGoesOn) {
  ASSERT_TRUE(train_to(3) && only_w1_applies_a_step());
  const std::uint64_t step = step_of(0);
  kill(2);
  ASSERT_TRUE(hold_healing());
  kill(1);
  cluster.script.withholds_state = nullptr;
  ASSERT_TRUE(until("the survivors settle", [&] { return is_member(w(0)) && !settled(1); }));
  EXPECT_EQ(step_of(0), step);
  EXPECT_EQ(step_of(3), step);
  EXPECT_EQ(cluster.machine()->membership().lineage(), Lineage{1}) << "nobody rolls back";
  it_ends_well();
}

TEST_F(HardCaseTest, ANewcomerWhoseSourceDiesTakesTheStateFromAnother) {
  ASSERT_TRUE(train_to(3));
  kill(2);
  ASSERT_TRUE(hold_healing());
  EXPECT_EQ(receiver, (Member{w(2), Attempt{2}}));
  const std::uint32_t dies = source->index;
  kill(dies);
  source.reset();
  ASSERT_TRUE(until("it is sent the state again", [&] { return source.has_value(); }));
  EXPECT_NE(*source, w(dies)) << "the successor has nothing to send";
  cluster.script.withholds_state = nullptr;
  ASSERT_TRUE(until("it is a member", [&] { return is_member(w(2)); }));
  EXPECT_EQ(cluster.machine()->membership().lineage(), Lineage{1});
  it_ends_well();
}

TEST_F(HardCaseTest, TheMembershipChangesWhileItHeals) {
  ASSERT_TRUE(train_to(3));
  kill(2);
  ASSERT_TRUE(hold_healing());
  // A member that neither sends nor receives dies, one is evicted, and one is to come.
  std::uint32_t third = 0;
  while (w(third) == *source || w(third) == w(2)) ++third;
  std::uint32_t fourth = third + 1;
  while (w(fourth) == *source || w(fourth) == w(2)) ++fourth;
  kill(third);
  cluster.daemon()->feed_soon(
      ctl::lifecycle::EvictionRequested{to_string(w(fourth)), "a test", seconds(2)});
  cluster.daemon()->feed_soon(ctl::lifecycle::WorkerCountRequested{kWorkers + 1, "a test"});
  for_a_while(milliseconds(200));
  cluster.script.withholds_state = nullptr;
  ASSERT_TRUE(until("the newest is a member", [&] { return is_member(w(2)); }));
  EXPECT_EQ(cluster.machine()->membership().lineage(), Lineage{1});
  it_ends_well();
}

TEST_F(HardCaseTest, ASettleThatIsDurableAndWasNotSentIsSentByTheNextIncarnation) {
  ASSERT_TRUE(train_to(3));
  bool died = false;
  cluster.script.daemon_dies = [&](const ctl::JobMachine& machine) {
    const bool now = !died && machine.membership().settled() &&
                     machine.membership().generation() == Generation{2};
    died = died || now;
    return now;
  };
  kill(1);
  ASSERT_TRUE(until("the daemon dies", [&] { return died; }));
  for (const std::uint32_t i : {0U, 2U, 3U}) {
    EXPECT_EQ(cluster.worker(w(i))->settled(), Generation{1}) << "nobody was told";
  }
  ASSERT_TRUE(until("all hear it", [&] {
    for (const std::uint32_t i : {0U, 2U, 3U}) {
      if (cluster.worker(w(i))->settled() != Generation{2}) return false;
    }
    return true;
  }));
  EXPECT_EQ(cluster.daemon()->incarnation(), Incarnation{2});
  it_ends_well();
}

TEST_F(HardCaseTest, TheOlderOfTwoIncarnationsDecidesNothingMore) {
  ASSERT_TRUE(train_to(3));
  Daemon* const first = cluster.daemon();
  first->freeze(false);
  cluster.daemons().make();
  ASSERT_NE(cluster.daemon(), first);
  kill(1);
  ASSERT_TRUE(until("the second one goes on", [&] { return settled(2) && step_of(0) > 5; }));
  ASSERT_TRUE(first->runs());
  EXPECT_EQ(first->machine()->membership().generation(), Generation{1}) << "it knows of nothing";
  first->thaw();
  ASSERT_TRUE(until("the first one ends", [&] { return !first->runs(); }));
  EXPECT_THAT(world.transcript(), HasSubstr("incarnation 1 was taken over"));
  EXPECT_EQ(cluster.daemon()->incarnation(), Incarnation{2});
  it_ends_well();
}

TEST_F(HardCaseTest, TheModelIsKeptThoughTheEndWasDurableAndTheDaemonDied) {
  bool died = false;
  cluster.script.daemon_dies = [&](const ctl::JobMachine& machine) {
    const bool now = !died && machine.ended();
    died = died || now;
    return now;
  };
  it_ends_well();
  EXPECT_TRUE(died);
  EXPECT_EQ(cluster.disk().newest(), Incarnation{2}) << "the next one says it";
}

// --------------------------------------------------------------- checkpoints

class CheckpointCaseTest : public HardCaseTest {
 protected:
  // A member has written a checkpoint that the daemon does not know yet.
  bool hold_a_checkpoint(bool its_beginning_too = false) {
    cluster.script.holds_back = [this, its_beginning_too](const ToDaemon& message) {
      const auto* said = std::get_if<ctl::job::WorkerSaid>(&message.body);
      if (said != nullptr && std::holds_alternative<wire::CheckpointBegun>(said->body)) {
        return its_beginning_too && !writer;
      }
      const bool is_one =
          said != nullptr && std::holds_alternative<wire::CheckpointWritten>(said->body) && !writer;
      if (is_one) writer = said->member;
      return is_one;
    };
    return until("a checkpoint is written", [&] { return writer.has_value(); });
  }
  bool writer_trained_on() {
    const auto at = cluster.worker(writer->worker);
    return regrouped() && at && at->settled() > Generation{1} && !at->training().places.empty() &&
           at->training().places.front().place > 20;
  }
  bool is_kept(Member by) {
    const std::string end = fmt::format("-{}.{}", by.worker, by.attempt);
    return std::ranges::any_of(cluster.files().checkpoints,
                               [&](const auto& c) { return c.first.ends_with(end); });
  }
  std::optional<Member> writer;
};

TEST_F(CheckpointCaseTest, FilesOfAReplacedMemberAreNoCheckpoint) {
  ASSERT_TRUE(train_to(3) && hold_a_checkpoint());
  const std::size_t kept = cluster.files().checkpoints.size();
  kill(writer->worker.index);
  ASSERT_TRUE(until("the others go on", [&] { return regrouped(); }));
  ASSERT_EQ(cluster.files().checkpoints.size(), kept);
  cluster.daemons().release_messages();
  for_a_while(milliseconds(1));
  EXPECT_EQ(cluster.files().checkpoints.size(), kept);
  EXPECT_FALSE(is_kept(*writer));
  it_ends_well();
}

// The invariant "saved" compares it with the ledger that is stored with it.
TEST_F(CheckpointCaseTest, ACheckpointBegunInAnEarlierGenerationHoldsWhatWasTrainedThen) {
  ASSERT_TRUE(train_to(3) && hold_a_checkpoint());
  const std::size_t kept = cluster.files().checkpoints.size();
  kill(writer->worker.index == 1 ? 2 : 1);
  ASSERT_TRUE(until("the others have trained on", [&] { return writer_trained_on(); }));
  ASSERT_EQ(cluster.files().checkpoints.size(), kept);
  cluster.daemons().release_messages();
  for_a_while(milliseconds(1));
  EXPECT_EQ(cluster.files().checkpoints.size(), kept + 1);
  it_ends_well();
}

TEST_F(CheckpointCaseTest, ACheckpointWhoseBeginningWasNotReportedDoesNotCountInALaterGeneration) {
  ASSERT_TRUE(train_to(3) && hold_a_checkpoint(true));
  const std::size_t kept = cluster.files().checkpoints.size();
  kill(writer->worker.index == 1 ? 2 : 1);
  ASSERT_TRUE(until("the others have trained on", [&] { return writer_trained_on(); }));
  ASSERT_EQ(cluster.files().checkpoints.size(), kept);
  cluster.daemons().release_messages();
  for_a_while(milliseconds(1));
  EXPECT_EQ(cluster.files().checkpoints.size(), kept) << "its places are of another generation";
  it_ends_well();
}

TEST_F(CheckpointCaseTest, WhenAllDieDuringACheckpointTheOneBeforeIsRestored) {
  ASSERT_TRUE(until("there is one", [&] { return !cluster.files().checkpoints.empty(); }));
  ASSERT_TRUE(hold_a_checkpoint());
  const std::string newest = cluster.files().checkpoints.rbegin()->first;
  for (const auto& worker : cluster.living()) worker->kill(SIGKILL);
  ASSERT_TRUE(until("training begins again", [&] { return is_member(w(0)); }));
  EXPECT_EQ(cluster.machine()->membership().lineage(), Lineage{2});
  EXPECT_THAT(world.transcript(), HasSubstr("lineage 2 begins from " + newest));
  it_ends_well();
}

TEST_F(CheckpointCaseTest, WhenAllDieAndTheDaemonTooACheckpointThatIsInPlaceIsUsed) {
  bool stored = false;
  cluster.script.stored = [&] { stored = true; };
  ASSERT_TRUE(until("one is in place", [&] { return stored; }));
  cluster.daemon()->crash();  // before the journal knows of it, or just then
  for (const auto& worker : cluster.living()) worker->kill(SIGKILL);
  cluster.daemons().start_after(milliseconds(500));
  const std::string newest = cluster.files().checkpoints.rbegin()->first;
  ASSERT_TRUE(until("training begins again", [&] { return is_member(w(0)) && !settled(1); }));
  EXPECT_THAT(world.transcript(), HasSubstr("lineage 2 begins from " + newest));
  it_ends_well();
}

TEST_F(CheckpointCaseTest, ADamagedCheckpointIsPassedOver) {
  ASSERT_TRUE(until("there are two", [&] { return cluster.files().checkpoints.size() == 2; }));
  const std::string good = cluster.files().checkpoints.begin()->first;
  cluster.files().checkpoints.rbegin()->second.damaged = true;
  for (const auto& worker : cluster.living()) worker->kill(SIGKILL);
  ASSERT_TRUE(until("training begins again", [&] { return is_member(w(0)) && !settled(1); }));
  EXPECT_THAT(world.transcript(), HasSubstr("lineage 2 begins from " + good));
  it_ends_well();
}

// ---------------------------------------------------------------- full disks

TEST_F(HardCaseTest, AFullDiskUnderTheJournalIsWaitedForAndNobodyIsCalledHung) {
  ASSERT_TRUE(train_to(3));
  cluster.disk().set_full(true);
  ASSERT_TRUE(until("it pauses", [&] { return cluster.daemon() && cluster.daemon()->paused(); }));
  kill(1);  // the members that are left form another generation
  for_a_while(seconds(60));
  EXPECT_FALSE(cluster.ended());
  EXPECT_THAT(world.transcript(), Not(HasSubstr("note hang")));
  cluster.disk().set_full(false);
  ASSERT_TRUE(until("it goes on", [&] { return cluster.daemon() && !cluster.daemon()->paused(); }));
  it_ends_well();
}

TEST_F(HardCaseTest, AModelForWhichThereIsNoRoomIsKeptWhenThereIs) {
  ASSERT_TRUE(train_to(3));
  cluster.files().full = true;
  ASSERT_TRUE(until("all is trained", [&] {
    return cluster.machine()->lifecycle().state() == ctl::JobState::kFinishing;
  }));
  for_a_while(seconds(60));
  EXPECT_FALSE(cluster.ended());
  cluster.files().full = false;
  it_ends_well();
}

class LoneMemberTest : public HardCaseTest {
 protected:
  LoneMemberTest() : HardCaseTest(Sync::kAllReduce, 1) {}
};

// Nobody else could write it, and what the job daemon cannot store it removes.
TEST_F(LoneMemberTest, AModelThatWasWrittenAndCouldNotBeStoredIsWrittenOnceMore) {
  const auto finishes = [&] {
    const ctl::JobMachine* m = cluster.machine();
    return m != nullptr && m->lifecycle().state() == ctl::JobState::kFinishing;
  };
  ASSERT_TRUE(until("all is trained", finishes, seconds(1000)));  // alone it takes longer
  SharedFiles& files = cluster.files();
  const std::string note = "the model cannot be kept: no room for its manifest";
  bool was_there = false, removed = false;
  ASSERT_TRUE(until("the model cannot be stored", [&] {
    files.full = !files.written.empty();  // there was room for what is written
    removed = removed || (was_there && !files.full);
    was_there = files.full;
    return removed && world.transcript().find(note) != std::string::npos;
  }));
  files.full = false;
  it_ends_well();
}

// --------------------------------------------------------------- replicas that differ

class MixedCaseTest : public HardCaseTest {
 protected:
  MixedCaseTest() : HardCaseTest(Sync::kDsSync) {}

  const worker::TrainingState& state_of(std::uint32_t index) {
    return cluster.worker(w(index))->training();
  }
  bool consolidated_anew(std::uint32_t index) {
    return cluster.worker(w(index)) && state_of(index).consolidated > Generation{1};
  }
  // w3 dies when replicas differ. Of the survivors, only w1 completes the consolidation.
  bool only_w1_consolidates() {
    const bool differ = until("replicas differ", [&] {
      return settled(1) && step_of(3) >= 3 && state_of(3).consolidated == Generation{} &&
             step_of(1) >= 3 && state_of(1).consolidated == Generation{};
    });
    if (!differ) return false;
    cluster.script.withholds_step = [](const Worker& at) {
      return at.member().worker != w(1) && at.doing().ends_with(", consolidating");
    };
    kill(3);
    return until("w1 is ahead", [&] { return consolidated_anew(1); }) && !consolidated_anew(0) &&
           !consolidated_anew(2);
  }
};

TEST_F(MixedCaseTest, AConsolidationThatOnlyOneSurvivorCompletedIsTakenOverByTheOthers) {
  ASSERT_TRUE(only_w1_consolidates());
  const Model model = cluster.worker(w(1))->model();
  const Generation consolidated = state_of(1).consolidated;
  kill(0);
  ASSERT_TRUE(until("the survivors settle", [&] { return regrouped(); }));
  EXPECT_GT(cluster.machine()->membership().base(), consolidated);
  EXPECT_EQ(cluster.worker(w(1))->model().tally, model.tally);
  EXPECT_EQ(cluster.worker(w(2))->model().tally, model.tally);
  it_ends_well();
}

TEST_F(MixedCaseTest, AConsolidationThatOnlyTheDeadCompletedIsDoneAgainByThoseThatAreLeft) {
  ASSERT_TRUE(only_w1_consolidates());
  const Generation before = state_of(1).consolidated;
  kill(1);
  cluster.script.withholds_step = nullptr;
  ASSERT_TRUE(until("the survivors consolidate", [&] {
    return consolidated_anew(0) && consolidated_anew(2) && state_of(0).consolidated > before;
  }));
  EXPECT_EQ(cluster.worker(w(0))->model().tally, cluster.worker(w(2))->model().tally);
  it_ends_well();
}

}  // namespace
}  // namespace antdt::sim
