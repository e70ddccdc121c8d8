// What an agent hears of a program that opens its data.
#include "trainer/c_api/data_progress.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/os/fs.h"
#include "core/transport/socket.h"
#include "core/wire/packet.h"
#include "core/wire/worker_messages.h"

namespace antdt::capi {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const client::Io kBegun{"indexing the data", "/d/a", 1 << 20, 4 << 20};
const client::Io kHalf{"indexing the data", "/d/a", 2 << 20, 4 << 20};

// It welcomes whoever greets it, and keeps what it hears.
class DataProgressTest : public testing::Test {
 protected:
  struct Heard {
    std::string kind;
    wire::Report report;
  };

  DataProgressTest() {
    auto socket = transport::Socket::bind_ipc(context_, self().socket);
    EXPECT_TRUE(socket) << socket.error().message;
    thread_ = std::thread([this, s = std::move(*socket)]() mutable { serve(s); });
  }
  ~DataProgressTest() override {
    quit_ = true;
    thread_.join();
  }
  [[nodiscard]] client::Environment self() const {
    return {directory_ / "s", "job-1", {{'w', 3}, Attempt{2}}, "antdt"};
  }
  // Tells again and again, as a pass does, until the agent has heard `kHalf`.
  bool tells_until_heard(DataProgress& progress) {
    return comes([&](const Heard& heard) { return heard.report.io_done_bytes == kHalf.done_bytes; },
                 [&] {
                   clock.advance(seconds(1));
                   progress.tell(kHalf);
                 });
  }
  template <class Is, class Meanwhile>
  bool comes(Is is, Meanwhile meanwhile) {
    const auto deadline = std::chrono::steady_clock::now() + seconds(20);
    std::unique_lock lock(mutex_);
    while (std::chrono::steady_clock::now() < deadline) {
      if (std::ranges::any_of(heard_, is)) return true;
      lock.unlock();
      meanwhile();
      lock.lock();
      changed_.wait_for(lock, milliseconds(5));
    }
    return false;
  }
  std::vector<Heard> heard() {
    const std::lock_guard lock(mutex_);
    return heard_;
  }

  ManualClock clock;
  TellPace pace{clock};

 private:
  void serve(transport::Socket& socket) {
    while (!quit_) {
      if (!socket.wait_readable(milliseconds(5))) continue;
      while (auto packet = socket.receive()) {
        const auto envelope = wire::open_envelope(*packet);
        ASSERT_TRUE(envelope);
        EXPECT_EQ(envelope->job, "job-1");
        EXPECT_EQ(envelope->worker, self().self.worker);
        EXPECT_EQ(envelope->attempt, Attempt{2});
        Heard heard{envelope->kind, {}};
        if (envelope->kind == wire::Hello::kKind) {
          auto welcome = wire::make_packet(*envelope, wire::WorkerWelcome{1, "a", "/runs/1", "{}"});
          welcome.peer = packet->peer;
          EXPECT_EQ(socket.send(welcome), transport::SendOutcome::kSent);
        } else if (envelope->kind == wire::Report::kKind) {
          const auto report = wire::decode<wire::Report>(packet->body);
          ASSERT_TRUE(report) << report.error().message;
          heard.report = *report;
        }
        const std::lock_guard lock(mutex_);
        heard_.push_back(std::move(heard));
        changed_.notify_all();
      }
    }
  }

  TempDir directory_;
  transport::Context context_;
  std::atomic<bool> quit_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Heard> heard_;
  std::thread thread_;
};

TEST_F(DataProgressTest, BeforeThereIsAClientTheAgentIsToldHowFarItIsAndThatItIsOver) {
  {
    DataProgress progress(self(), pace);
    EXPECT_TRUE(tells_until_heard(progress));
  }
  const auto is_over = [](const Heard& h) { return h.kind == "report" && h.report.io.empty(); };
  ASSERT_TRUE(comes(is_over, [] {}));
  const wire::Report first = heard().front().report;
  EXPECT_EQ(first.io, kHalf.what);
  EXPECT_EQ(first.io_path, kHalf.path);
  EXPECT_EQ(first.io_total_bytes, kHalf.total_bytes);
  EXPECT_EQ(first.activity, "startup");
  for (const Heard& one : heard()) EXPECT_EQ(one.kind, "report") << "it is no worker yet";
}

TEST_F(DataProgressTest, NothingIsSaidOfWhatTakesNoSecond) {
  {
    DataProgress soon(self(), pace);
    soon.tell(kBegun);
    clock.advance(TellPace::kTellEvery / 2);
    soon.tell(kBegun);
  }
  DataProgress progress(self(), pace);
  ASSERT_TRUE(tells_until_heard(progress));
  EXPECT_EQ(heard().front().report.io_done_bytes, kHalf.done_bytes);
}

TEST_F(DataProgressTest, HundredsOfDataSetsThatAreSoonOpenAreToldOf) {
  EXPECT_TRUE(comes([](const Heard& h) { return h.report.io_done_bytes == kHalf.done_bytes; },
                    [&] {
                      clock.advance(TellPace::kTellEvery / 2);
                      DataProgress one(self(), pace);
                      one.tell(kHalf);
                    }));
}

TEST_F(DataProgressTest, AProcessThatIsNoWorkerTellsNobody) {
  {
    DataProgress nobody({}, pace);
    clock.advance(TellPace::kTellEvery);
    nobody.tell(kBegun);
  }
  DataProgress progress(self(), pace);
  ASSERT_TRUE(tells_until_heard(progress));
  EXPECT_EQ(heard().front().report.io_done_bytes, kHalf.done_bytes);
}

TEST_F(DataProgressTest, WhatAProgramSaysItselfIsToldUntilItIsOverButNotByItsChildren) {
  ProgramProgress program(self(), pace);
  ASSERT_TRUE(comes([](const Heard& h) { return h.report.io_done_bytes == kHalf.done_bytes; },
                    [&] {
                      clock.advance(seconds(1));
                      program.tell(kHalf);
                    }));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    clock.advance(seconds(1));
    program.tell(kBegun);
    program.ends();
    _exit(0);
  }
  int ended = 0;
  ASSERT_EQ(waitpid(child, &ended, 0), child);
  EXPECT_EQ(ended, 0);
  const auto is_over = [](const Heard& h) { return h.kind == "report" && h.report.io.empty(); };
  EXPECT_FALSE(std::ranges::any_of(heard(), is_over));
  program.ends();
  ASSERT_TRUE(comes(is_over, [] {}));
  for (const Heard& one : heard()) EXPECT_NE(one.report.io_done_bytes, kBegun.done_bytes);
}

TEST_F(DataProgressTest, TheClientOfAnOpenJobTellsInPlaceOfALinkOfItsOwn) {
  auto client = client::Client::connect(self(), seconds(20));
  ASSERT_TRUE(client) << client.error().message;
  OpenClient open(client->get());
  {
    DataProgress progress(self(), pace);
    // The client reports once a second.
    EXPECT_TRUE(tells_until_heard(progress));
  }
  const std::size_t said = heard().size();
  open.joins();
  {
    DataProgress progress(self(), pace);
    clock.advance(TellPace::kTellEvery);
    progress.tell(kBegun);  // what it reads while it trains holds up nobody
  }
  EXPECT_TRUE(OpenClient::tell({}));
  const auto later = heard();
  for (std::size_t i = said; i < later.size(); ++i) {
    EXPECT_NE(later[i].report.io_done_bytes, kBegun.done_bytes);
  }
}

TEST_F(DataProgressTest, OnceAJobIsClosedNoClientIsTold) {
  EXPECT_FALSE(OpenClient::tell(kBegun));
  {
    const OpenClient joined(nullptr);
    EXPECT_TRUE(OpenClient::tell(kBegun));
    EXPECT_FALSE(OpenClient::all_closed());
  }
  EXPECT_FALSE(OpenClient::tell(kBegun));
  EXPECT_TRUE(OpenClient::all_closed()) << "and no link is made: the worker would seem to begin";
}

}  // namespace
}  // namespace antdt::capi
