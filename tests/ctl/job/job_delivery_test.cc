// A job that promises less than exactly once: from where the ledger and the servers go on when a
// server is lost.
#include <gmock/gmock.h>

#include "tests/ctl/job/job_servers_fixture.h"

namespace antdt::ctl {
namespace {

using ::testing::HasSubstr;

class JobDeliveryTest : public JobServersTest {
 protected:
  static JobMachineConfig promising(Delivery delivery) {
    JobMachineConfig c = with_servers();
    c.spec.sync = SyncStrategy::kPsAsp;
    c.spec.delivery = delivery;
    return c;
  }
  // A checkpoint has 16 and 8 records. When s1 is lost, w0 is at 24 and w1 at 8, and each may have
  // requested 8 more. Returns how many records each has then.
  void lose_one_after_a_checkpoint(Delivery delivery, const wire::PsSaid& of_w1) {
    start(promising(delivery));
    fetch(w(0), 0, 40);
    fetch(w(1), 0, 40);
    fetch(w(0), 16, 0);
    fetch(w(1), 8, 0);
    const std::uint64_t cut = sent<wire::PsCut>(order_checkpoint()).at(0).second.number;
    says(s(1), wire::PsSaved{cut, 3, 0, {}, {places(w(1), 1, 8)}, ""});
    const auto stored = all<job::StoreCheckpoint>(
        says(s(0), wire::PsSaved{cut, 3, 0, {}, {places(w(0), 1, 16)}, ""}));
    ASSERT_EQ(stored.size(), 1U);
    feed(job::CheckpointStored{cut, Step{3}, "s3", ""});
    fetch(w(0), 24, 0);
    ASSERT_EQ(machine->ledger().committed(), 32U);
    const Generation generation = machine->generation();
    exits(s(1), SIGKILL);
    started_again(s(1, 2));
    joins(w(0), {generation, 1, 32});
    ASSERT_EQ(all<job::FindCheckpoint>(joins(w(1), of_w1)).size(), 1U);
    number.clear();
    begun = feed(job::CheckpointFound{"/run/checkpoints/s3", Step{3}, stored[0].ledger_image,
                                      stored[0].accounts_image});
  }
  void train_on() {
    serve({s(0), s(1, 2)});
    ASSERT_TRUE(machine->server_group().serving());
    trained = train_the_rest();
  }
  [[nodiscard]] shard_server::EpochAccount account() const {
    return machine->accounts().epochs().at(0);
  }
  job::Effects begun;
  std::uint64_t trained = 0;
};

TEST_F(JobDeliveryTest, AtLeastOnceRewindsTheLedgerAndNotTheOtherServer) {
  lose_one_after_a_checkpoint(Delivery::kAtLeastOnce, {Generation{1}, 1, 8});
  const auto told = sent<wire::PsServe>(begun);
  ASSERT_EQ(told.size(), 2U);
  EXPECT_TRUE(told[0].second.keep);
  EXPECT_FALSE(told[1].second.keep);
  EXPECT_EQ(told[1].second.restore, "/run/checkpoints/s3");
  EXPECT_EQ(machine->ledger().committed(), 24U) << "16 and 8";
  train_on();
  EXPECT_EQ(trained, 76U);
  EXPECT_EQ(account().once, 84U);
  EXPECT_EQ(account().repeated, 16U) << "8 of w0 for certain, 8 that it had asked for";
  EXPECT_EQ(account().lost, 0U);
}

TEST_F(JobDeliveryTest, AtMostOnceKeepsTheLedgerAndTrainsNothingThatMayBeApplied) {
  lose_one_after_a_checkpoint(Delivery::kAtMostOnce, {Generation{1}, 1, 16});
  EXPECT_EQ(machine->ledger().committed(), 48U) << "32 of w0, 16 of w1";
  train_on();
  EXPECT_EQ(trained, 52U);
  EXPECT_EQ(account().once, 76U);
  EXPECT_EQ(account().lost, 24U);
  EXPECT_EQ(account().repeated, 0U);
}

TEST_F(JobDeliveryTest, EveryRecordOfASilentWorkerIsInDoubt) {
  lose_one_after_a_checkpoint(Delivery::kAtMostOnce, {});
  EXPECT_EQ(machine->ledger().committed(), 72U) << "32 of w0, 40 of w1";
  train_on();
  EXPECT_EQ(account().once + account().lost, 100U);
  EXPECT_EQ(account().lost, 48U);
}

TEST_F(JobDeliveryTest, AMessageOfAnEarlierPhaseDoesNotCountInThisOne) {
  lose_one_after_a_checkpoint(Delivery::kAtMostOnce, {Generation{1}, 0, 90});
  EXPECT_EQ(machine->ledger().committed(), 40U) << "32 of w0, 8 of w1";
}

TEST_F(JobDeliveryTest, WhereNobodyIsLeftNothingIsRepeatedOrLost) {
  for (const Delivery delivery : {Delivery::kAtLeastOnce, Delivery::kAtMostOnce}) {
    start(promising(delivery));
    fetch(w(0), 0, 40);
    fetch(w(0), 24, 0);
    exits(s(0), SIGKILL);
    exits(s(1), SIGKILL);
    started_again(s(0, 2));
    feed(lifecycle::WorkerStarted{s(1, 2), 2});
    joins(s(1, 2));
    joins(w(0), {Generation{1}, 1, 32});
    ASSERT_EQ(all<job::FindCheckpoint>(joins(w(1))).size(), 1U);
    number.clear();
    for (const auto& [to, serve] : sent<wire::PsServe>(feed(job::CheckpointFound{}))) {
      EXPECT_FALSE(serve.keep);
    }
    EXPECT_EQ(machine->ledger().committed(), 0U);
    EXPECT_EQ(machine->report().totals.repeated + machine->report().totals.lost, 0U);
    journal = {};
    seq.clear();
    phase.clear();
  }
}

TEST_F(JobDeliveryTest, TheNextIncarnationHasTheSameAccounts) {
  lose_one_after_a_checkpoint(Delivery::kAtMostOnce, {Generation{1}, 1, 16});
  const std::string accounts = machine->accounts().image();
  const std::string ledger = machine->ledger().image();
  open(promising(Delivery::kExactlyOnce));  // too late for another promise
  EXPECT_EQ(machine->accounts().image(), accounts);
  EXPECT_EQ(machine->ledger().image(), ledger);
  EXPECT_EQ(machine->report().delivery, Delivery::kAtMostOnce);
  EXPECT_THAT(summary_json(machine->report()), HasSubstr("\"samples_lost\": 24"));
}

}  // namespace
}  // namespace antdt::ctl
