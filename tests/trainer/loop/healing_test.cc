// The bytes of a training state on their way, and the state that is left when the transfer breaks.
#include "trainer/loop/state/healing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/device_member.h"
#include "tests/trainer/loop/testing.h"
#include "trainer/loop/state/state_hash.h"

namespace antdt::trainer {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr std::size_t kCounters = 100;
constexpr std::size_t kBallast = 2'500'000;  // several chunks

// The first parts of a tally's state, as if they lay in a device's memory.
class TallyOnDevice final : public DeviceState {
 public:
  explicit TallyOnDevice(Tally& tally) : tally_(tally) {}
  [[nodiscard]] std::vector<DeviceBytes> arrays() override {
    const auto parts = tally_.state_parts();
    return {{parts[0].data(), parts[0].size()}, {parts[1].data(), parts[1].size()}};
  }
  [[nodiscard]] std::vector<std::span<std::byte>> rest() override {
    return {tally_.state_parts()[2]};
  }
  [[nodiscard]] DeviceStream stream() override { return nullptr; }
  [[nodiscard]] Result<std::vector<std::uint64_t>> digests() override {
    std::vector<std::uint64_t> all;
    for (const DeviceBytes& array : arrays()) {
      std::uint64_t sum = 0;
      for (std::size_t i = 0; i < array.size; ++i) sum = 31 * sum + at(array, i);
      all.push_back(sum);
    }
    return all;
  }
  void keep() override {
    for (const DeviceBytes& array : arrays()) {
      const auto* const bytes = static_cast<const std::byte*>(array.data);
      kept_.emplace_back(bytes, bytes + array.size);
    }
  }
  void give_back() override {
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      std::memcpy(arrays()[i].data, kept_[i].data(), kept_[i].size());
    }
  }
  void replaced() override { tally_.state_replaced(); }

 private:
  static std::uint64_t at(const DeviceBytes& array, std::size_t i) {
    return static_cast<const std::uint8_t*>(array.data)[i];
  }
  Tally& tally_;
  std::vector<std::vector<std::byte>> kept_;
};

struct Patient {
  Tally engine{kCounters, {}, kBallast};
  TallyOnDevice on_device{engine};
  Step step;
  bool has_state = false;
  std::string meta;  // of its own state, then of the received one
  Status status;
  std::size_t between_devices = 0;  // bytes that it sent or received there

  void put_on_device() { engine.device_ = &on_device; }
  void train(std::uint64_t steps) {
    for (std::uint64_t i = 0; i < steps; ++i) {
      for (float& count : engine.counts_) count += 1;
      EXPECT_TRUE(engine.apply(1));
    }
    has_state = true;
    step = Step{steps};
    meta = "after step " + std::to_string(steps);
  }
};

// Heals as the member's machine does.
Status heal(Collective& collective, Patient& p) {
  ANTDT_TRY(const auto slots, compare_states(collective, p.engine, {p.has_state, p.step, p.meta}));
  ANTDT_TRY(const auto plan, worker::heal_plan(slots, collective.rank()));
  ANTDT_TRY(p.meta, pass_state(collective, p.engine, {plan, p.meta, 0, p.has_state}));
  return {};
}

void heal_all(std::vector<Patient>& patients, const LocalGroup::Script& script_of_0 = {}) {
  LocalGroup group(static_cast<std::uint32_t>(patients.size()));
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < patients.size(); ++rank) {
    threads.emplace_back([&, rank] {
      const auto collective = group.member(rank, rank == 0 ? script_of_0 : LocalGroup::Script{});
      Patient& p = patients[rank];
      DeviceMember devices(*collective);
      const bool has_devices = p.engine.device_ != nullptr;
      try {
        p.status = heal(has_devices ? static_cast<Collective&>(devices) : *collective, p);
        p.between_devices = devices.sent + devices.received;
        EXPECT_TRUE(!p.status || devices.unfinished == 0) << "what is enqueued is waited for";
      } catch (const Killed&) {
        p.status = fail(ErrorKind::kAborted, "killed");
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST(Healing, AChainOfNewcomersAndOneThatIsBehindGetTheFurthestState) {
  std::vector<Patient> patients(4);
  patients[0].train(8);
  patients[3].train(7);
  heal_all(patients);
  for (Patient& p : patients) {
    ASSERT_TRUE(p.status) << p.status.error().message;
    EXPECT_EQ(state_hash(p.engine, Step{8}), state_hash(patients[0].engine, Step{8}));
    EXPECT_EQ(p.meta, "after step 8");
  }
  EXPECT_EQ(patients[0].engine.replaced_, 0U);
  EXPECT_EQ(patients[3].engine.replaced_, 1U);
}

TEST(Healing, WhenTheSourceDiesAMemberThatIsBehindKeepsItsState) {
  for (const std::uint64_t chunk : {0U, 1U, 2U, 4U}) {
    std::vector<Patient> patients(3);
    patients[0].train(8);
    patients[1].train(7);
    const std::uint64_t before = state_hash(patients[1].engine, Step{7});
    heal_all(patients, [&](OperationKind kind, std::uint64_t number) {
      return kind == OperationKind::kSend && number == chunk ? Fate::kDies : Fate::kGoesOn;
    });
    Patient& behind = patients[1];
    EXPECT_FALSE(behind.status);
    EXPECT_EQ(state_hash(behind.engine, Step{7}), before);
    EXPECT_THAT(behind.engine.counts_, Each(7.0F));
    EXPECT_EQ(behind.engine.replaced_, 0U);
    EXPECT_FALSE(patients[2].status);
  }
}

TEST(Healing, AStateInDevicesMemoryPassesFromDeviceToDevice) {
  std::vector<Patient> patients(4);
  for (Patient& p : patients) p.put_on_device();
  patients[0].train(8);
  patients[3].train(7);
  heal_all(patients);
  const worker::HashState of{Step{8}, false, true};
  const std::uint64_t expected = hash_of_state(patients[0].engine, of).value();
  const std::size_t arrays = kBallast + kCounters * sizeof(float) / 3;
  for (Patient& p : patients) {
    ASSERT_TRUE(p.status) << p.status.error().message;
    EXPECT_EQ(hash_of_state(p.engine, of).value(), expected);
    EXPECT_EQ(state_hash(p.engine, Step{8}), state_hash(patients[0].engine, Step{8}));
    EXPECT_EQ(p.meta, "after step 8");
  }
  EXPECT_NE(hash_of_state(patients[0].engine, {Step{9}, false, true}).value(), expected);
  std::vector<std::size_t> passed;
  for (const Patient& p : patients) passed.push_back(p.between_devices / arrays);
  EXPECT_EQ(passed, (std::vector<std::size_t>{1, 2, 2, 1})) << "the chain is 0, 1, 2, 3";
  EXPECT_EQ(patients[0].engine.replaced_, 0U);
  EXPECT_EQ(patients[3].engine.replaced_, 1U);
}

TEST(Healing, WhereOneMemberHasNoDeviceAllPassTheStateThroughTheHost) {
  std::vector<Patient> patients(3);
  patients[0].put_on_device();
  patients[2].put_on_device();
  patients[0].train(8);
  heal_all(patients);
  for (Patient& p : patients) {
    ASSERT_TRUE(p.status) << p.status.error().message;
    EXPECT_EQ(p.between_devices, 0U);
    EXPECT_EQ(state_hash(p.engine, Step{8}), state_hash(patients[0].engine, Step{8}));
  }
}

// The chunks from the source: what comes before the parts, two arrays, and the part in the host's
// memory.
TEST(Healing, WhenTheSourceDiesAMemberThatIsBehindHasItsStateOnTheDeviceAgain) {
  for (const std::uint64_t chunk : {0U, 1U, 2U, 3U}) {
    std::vector<Patient> patients(3);
    for (Patient& p : patients) p.put_on_device();
    patients[0].train(8);
    patients[1].train(7);
    const std::uint64_t before = state_hash(patients[1].engine, Step{7});
    heal_all(patients, [&](OperationKind kind, std::uint64_t number) {
      return kind == OperationKind::kSend && number == chunk ? Fate::kIsGone : Fate::kGoesOn;
    });
    EXPECT_FALSE(patients[1].status) << chunk;
    EXPECT_EQ(state_hash(patients[1].engine, Step{7}), before) << chunk;
    EXPECT_EQ(patients[1].engine.replaced_, 0U);
  }
}

// What devices of different classes do to replicas: the same steps, and other last bits.
TEST(Healing, ReplicasThatDifferInBitsGoOnWithTheStateOfTheFirst) {
  std::vector<Patient> members(5);
  for (Patient& p : members) p.train(3);
  for (const std::size_t rank : {1U, 2U, 4U}) {
    float& count = members[rank].engine.counts_[rank];
    count = std::nextafter(count, 0.0F);
  }
  const std::uint64_t first = state_hash(members[0].engine, Step{3});
  std::vector<Result<SettledHash>> settled(members.size());
  LocalGroup(5).run([&](Collective& collective) {
    Engine& engine = members[collective.rank()].engine;
    settled[collective.rank()] =
        settle_differences(collective, engine, {Step{3}}, state_hash(engine, Step{3}));
  });
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    ASSERT_TRUE(settled[rank]) << settled[rank].error().message;
    const bool differed = rank == 1 || rank == 2 || rank == 4;
    EXPECT_EQ(settled[rank]->replaced, differed) << rank;
    EXPECT_EQ(settled[rank]->hash, first) << rank;
    EXPECT_EQ(members[rank].engine.replaced_, differed ? 1U : 0U) << rank;
    EXPECT_THAT(members[rank].engine.counts_, Each(3.0F)) << rank;
  }
}

TEST(Healing, ReplicasOnDevicesThatDifferGoOnWithTheStateOfTheFirst) {
  std::vector<Patient> members(3);
  for (Patient& p : members) {
    p.put_on_device();
    p.train(3);
  }
  members[1].engine.counts_[7] = 2.5F;
  const worker::HashState of{Step{3}, true, true};
  LocalGroup(3).run([&](Collective& host) {
    DeviceMember collective(host);
    const std::uint32_t rank = host.rank();
    Engine& engine = members[rank].engine;
    const auto settled =
        settle_differences(collective, engine, of, hash_of_state(engine, of).value());
    ASSERT_TRUE(settled) << settled.error().message;
    EXPECT_EQ(settled->replaced, rank == 1);
    EXPECT_EQ(settled->hash, hash_of_state(members[0].engine, of).value());
    EXPECT_EQ(collective.received > 0, rank == 1);
  });
  EXPECT_THAT(members[1].engine.counts_, Each(3.0F));
}

TEST(Healing, ReplicasThatAreAlikePassNothing) {
  std::vector<Patient> members(3);
  for (Patient& p : members) p.train(3);
  LocalGroup group(3);
  group.run([&](Collective& collective) {
    Engine& engine = members[collective.rank()].engine;
    const auto settled =
        settle_differences(collective, engine, {Step{3}}, state_hash(engine, Step{3}));
    ASSERT_TRUE(settled);
    EXPECT_FALSE(settled->replaced);
  });
  for (const Patient& p : members) EXPECT_EQ(p.engine.replaced_, 0U);
}

TEST(Healing, AModelOfAnotherSizeIsAnErrorOnBothSidesAndChangesNothing) {
  Patient mine;
  mine.train(8);
  LocalGroup group(2);
  Tally other(kCounters + 1, {}, kBallast);
  Status theirs;
  std::thread thread([&] {
    const auto collective = group.member(1);
    const auto slots = compare_states(*collective, other, {false, Step{}, ""});
    ASSERT_TRUE(slots);
    const auto plan = worker::heal_plan(*slots, 1);
    if (!plan) theirs = tl::unexpected(plan.error());
  });
  const auto collective = group.member(0);
  const Status ours = heal(*collective, mine);
  thread.join();
  ASSERT_FALSE(ours);
  ASSERT_FALSE(theirs);
  EXPECT_THAT(theirs.error().message, HasSubstr("their models or optimizers differ"));
}

}  // namespace
}  // namespace antdt::trainer
