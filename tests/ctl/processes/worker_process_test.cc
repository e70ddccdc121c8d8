// Tests that a process is read from the journal as it was written, with the same meaning.
#include "ctl/processes/worker_process.h"

#include <gtest/gtest.h>

#include "core/wire/packet.h"

namespace antdt::ctl {
namespace {

// The image of earlier job daemons, which kept the state in flags.
struct FlagsImage {
  PlacedWorker place{{'s', 2}, "host:7700", 3};
  Attempt attempt{4};
  std::uint8_t state = 2;
  std::uint32_t pid = 77;
  bool said_bye = true;
  bool asked_to_stop = false, leaving = false, stays_away = false, comes_back = false;
  bool hung = false, moves_in = false, apart = false;
  double leaves_until_s = 0, killed_from_s = 0;
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("place", m.place);
    v("attempt", m.attempt);
    v("state", m.state);
    v("pid", m.pid);
    v("said_bye", m.said_bye);
    v("asked_to_stop", m.asked_to_stop);
    v("leaving", m.leaving);
    v("leaves_until_s", m.leaves_until_s);
    v("stays_away", m.stays_away);
    v("comes_back", m.comes_back);
    v("hung", m.hung);
    v("moves_in", m.moves_in);
    v("apart", m.apart);
    v("killed_from_s", m.killed_from_s);
  }
};

WorkerProcess read(const FlagsImage& written) {
  auto image = wire::decode<WorkerProcessImage>(wire::encode(written));
  EXPECT_TRUE(image) << image.error().message;
  return WorkerProcess(std::move(*image));
}

TEST(WorkerProcessImageTest, TheStateIsReadFromFlags) {
  const WorkerProcess runs = read({});
  EXPECT_EQ(runs.state, WorkerProcess::kJoined);
  EXPECT_EQ(runs.pid, 77U);
  EXPECT_FALSE(runs.leaving() || runs.asked_to_stop() || runs.hung());
  EXPECT_EQ(runs.after, WorkerProcess::After::kElsewhere);
  EXPECT_EQ(runs.standing, WorkerProcess::Standing::kOfGroup);

  FlagsImage flags;
  flags.leaving = flags.asked_to_stop = flags.hung = true;
  flags.leaves_until_s = 5;
  flags.killed_from_s = 7;
  flags.comes_back = flags.moves_in = true;
  const WorkerProcess goes = read(flags);
  EXPECT_EQ(goes.leaves_until_s, 5);
  EXPECT_TRUE(goes.hung());
  EXPECT_FALSE(goes.is_to_be_killed(6));
  EXPECT_TRUE(goes.is_to_be_killed(7));
  EXPECT_TRUE(goes.comes_back());
  EXPECT_TRUE(goes.moves_in());
}

TEST(WorkerProcessImageTest, TheWrittenImageHasTheFlagsThatWereRead) {
  for (unsigned bits = 0; bits < 16; ++bits) {
    FlagsImage flags;
    flags.leaving = (bits & 1) != 0;
    flags.asked_to_stop = (bits & 2) != 0;
    flags.stays_away = (bits & 4) != 0;
    flags.apart = (bits & 8) != 0;
    flags.hung = flags.asked_to_stop && flags.apart;
    const WorkerProcessImage image = read(flags).image();
    EXPECT_EQ(image.leaving, flags.leaving);
    EXPECT_EQ(image.asked_to_stop, flags.asked_to_stop);
    EXPECT_EQ(image.stays_away, flags.stays_away);
    EXPECT_EQ(image.apart, flags.apart);
    EXPECT_EQ(image.hung, flags.hung);
  }
}

TEST(WorkerProcessTest, OneMayJoinBeforeItsAgentSaysThatItRuns) {
  WorkerProcess worker = WorkerProcess::planned({{'w', 0}, "host", 0}, 1);
  EXPECT_TRUE(worker.join());
  EXPECT_TRUE(worker.start(77, 2));
  EXPECT_EQ(worker.state, WorkerProcess::kJoined);
  EXPECT_EQ(worker.started_at_s, 2);
  EXPECT_FALSE(worker.start(78, 3)) << "once";
}

TEST(WorkerProcessTest, OneThatHungStaysSoWhenItIsAskedToStopAgain) {
  WorkerProcess worker = WorkerProcess::planned({{'w', 0}, "host", 0}, 1);
  worker.found_hung("no step for 120 s", 5);
  worker.ask_to_stop(9);
  EXPECT_TRUE(worker.hung());
  EXPECT_FALSE(worker.is_to_be_killed(8));
  worker.exit({-1, 9, "what its agent says", "", ""}, 10);
  EXPECT_EQ(worker.error, "no step for 120 s");
}

TEST(WorkerProcessTest, ANewAttemptWasAskedForNothing) {
  WorkerProcess server =
      WorkerProcess::wait({{'s', 2}, "", 0}, Attempt{3}, WorkerProcess::Standing::kMovesIn);
  server.plan_on("host", 1, 5);
  server.ask_to_leave(6);
  server.ask_to_stop(7);
  server.after = WorkerProcess::After::kComesBack;
  server.lose("its host is lost", 8);
  server.begin_again(8);
  EXPECT_EQ(server.attempt, Attempt{4});
  EXPECT_EQ(server.state, WorkerProcess::kWaiting);
  EXPECT_FALSE(server.leaving() || server.asked_to_stop() || server.comes_back());
  EXPECT_EQ(server.standing, WorkerProcess::Standing::kOfGroup);
  EXPECT_EQ(server.quick_failures, 1U);
  EXPECT_TRUE(server.broken_invariant().empty());
}

}  // namespace
}  // namespace antdt::ctl
