// A server gets a backup while a worker pushes to it, over real sockets, with the state from a
// child.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <mutex>
#include <numeric>
#include <thread>

#include "tests/trainer/may_fork.h"
#include "tests/trainer/ps_link/testing.h"

namespace antdt::ps {
namespace {

std::vector<std::uint64_t> some_keys() {
  std::vector<std::uint64_t> keys(30'000);
  std::iota(keys.begin(), keys.end(), 1);
  return keys;
}

// Server 0 of one: `first` is it, `other` joins it.
class PsLinkJoiningTest : public PsLinkTest {
 protected:
  PsLinkJoiningTest() : first(directory / "first"), other(directory / "other") {
    group.sockets = {first};
    group.workers.clear();
    group.view = 1;
  }
  void SetUp() override {
    if (!kMayFork) GTEST_SKIP() << "a child makes the state";
  }

  wire::PsServe serve(std::uint64_t number, std::uint64_t view, wire::ReplicaRole replica,
                      const std::string& server) {
    wire::PsServe message;
    message.number = number;
    message.servers = {server};
    message.workers = {{w(0).worker, w(0).attempt}};
    message.view = view;
    message.replica = replica;
    if (replica == wire::ReplicaRole::kPrimary) message.other = other;
    return message;
  }
  static wire::PsServing answer(ServerThread& server, const wire::PsServe& message) {
    const auto said = std::make_shared<std::promise<wire::PsServing>>();
    server.post([said, message](ServerLoop& loop) {
      loop.serve(message, [said](const wire::PsServing& serving) { said->set_value(serving); });
    });
    auto answered = said->get_future();
    EXPECT_EQ(answered.wait_for(kGiveUp), std::future_status::ready);
    return answered.get();
  }
  // Asks until the server has a backup; every answer has this view.
  void await_backed(ServerThread& server, std::uint64_t number, std::uint64_t view) {
    const MonoTime until = SteadyClock().now() + kGiveUp;
    while (SteadyClock().now() < until) {
      const std::uint64_t backed =
          answer(server, serve(number++, view, wire::ReplicaRole::kPrimary, first)).backed;
      if (backed == view) return;
      ASSERT_EQ(backed, 0U);
    }
    FAIL() << "it is not backed";
  }
  Result<Link> link_that_looks(Duration again = std::chrono::milliseconds(100)) {
    Peers peers{group.generation, group.sockets, group.consistency, kGiveUp, again};
    peers.newer = [this](std::uint64_t than) {
      const std::lock_guard lock(mutex);
      return roster && roster->number > than ? roster : std::nullopt;
    };
    ANTDT_TRY(auto made, WorkerLink::connect(context, peers, w(0)));
    ANTDT_RETURN_IF_ERROR(made->open({1, {{"count", 2, "sum", 0, 0, 0, "zero", 0}}}));
    return made;
  }
  void now_at(const std::string& server, const std::string& backup = "") {
    const std::lock_guard lock(mutex);
    roster = wire::PsRoster{{server}, SyncStrategy::kPsAsp, 0, {}, {backup}, {""}, 9};
  }
  // A backup that joins the primary and has its whole state.
  std::unique_ptr<ServerThread> backup_of(ServerThread& primary) {
    Group joins = group;
    joins.role = replica::Role::kJoining;
    joins.view = 2;
    auto backup = std::make_unique<ServerThread>(joins, 0, other);
    backup->post(
        [&](ServerLoop& loop) { loop.serve(serve(2, 2, wire::ReplicaRole::kJoining, first)); });
    await_backed(primary, 2, 2);
    EXPECT_EQ(backup->ask([](ServerLoop& loop) { return loop.role(); }), replica::Role::kBackup);
    return backup;
  }
  void promote(ServerThread& backup) {
    backup.ask([&](ServerLoop& loop) {
      loop.serve(serve(100'000, 3, wire::ReplicaRole::kAlone, other));
      return true;
    });
  }

  const std::string first, other;
  const std::vector<std::uint64_t> keys = some_keys();
  std::mutex mutex;
  std::optional<wire::PsRoster> roster;
};

TEST_P(PsLinkJoiningTest, ABackupThatJoinedDuringTrainingHasEveryPushWhenTheOtherIsLost) {
  auto primary = std::make_unique<ServerThread>(group, 0);
  answer(*primary, serve(1, 1, wire::ReplicaRole::kAlone, first));
  std::atomic<std::uint64_t> pushed = 0;
  std::atomic<bool> replaced = false;
  std::atomic<std::uint64_t> wanted = 0;  // once it is replaced
  std::vector<float> rows;
  std::thread training([&] {
    auto own = link_that_looks();
    ASSERT_TRUE(own) << own.error().message;
    std::uint64_t step = 0;
    while (!replaced || pushed < wanted) {
      const bool barrier = group.consistency == Consistency::kBarrier;
      const auto decided = push(**own, keys, pushed + 1, step, barrier ? step : 0);
      ASSERT_TRUE(decided) << decided.error().message;
      ASSERT_EQ(decided->status, wire::PsFate::kApplied);
      step = decided->version;
      ++pushed;
    }
    const auto pulled = (*own)->pull({{0, keys}}, 0);
    ASSERT_TRUE(pulled) << pulled.error().message;
    rows = pulled->values.at(0);
  });
  const MonoTime until = SteadyClock().now() + kGiveUp;
  while (pushed < 3 && SteadyClock().now() < until) std::this_thread::yield();
  const auto backup = backup_of(*primary);
  primary.reset();
  promote(*backup);
  now_at(other);
  wanted = pushed + 5;
  replaced = true;
  training.join();
  ASSERT_EQ(rows.size(), keys.size() * 2);
  EXPECT_THAT(rows, testing::Each(static_cast<float>(pushed)));
}

// If the server were still one process, messages would be repeated only after an hour.
TEST_P(PsLinkJoiningTest, ABackupThatJoinedIsKnownBeforeItIsNeeded) {
  auto primary = std::make_unique<ServerThread>(group, 0);
  answer(*primary, serve(1, 1, wire::ReplicaRole::kAlone, first));
  auto own = link_that_looks(std::chrono::hours(1));
  ASSERT_TRUE(own) << own.error().message;
  const bool barrier = group.consistency == Consistency::kBarrier;
  const auto trains = [&](std::uint64_t step) {
    const auto decided = push(**own, keys, step + 1, step, barrier ? step : 0);
    ASSERT_TRUE(decided) << decided.error().message;
    EXPECT_EQ(decided->status, wire::PsFate::kApplied);
  };
  trains(0);
  const auto backup = backup_of(*primary);
  now_at(first, other);
  trains(1);
  primary.reset();
  promote(*backup);
  trains(2);
}

INSTANTIATE_TEST_SUITE_P(Consistencies, PsLinkJoiningTest,
                         testing::Values(Consistency::kBarrier, Consistency::kUnbounded));

}  // namespace
}  // namespace antdt::ps
