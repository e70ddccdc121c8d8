// Tests which link speaks for a job to an agent, and which processes the agent hears.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <filesystem>

#include "antdtd/agent/agent.h"
#include "antdtd/agent/job_links.h"
#include "antdtd/agent/outbox.h"
#include "antdtd/agent/worker_gate.h"
#include "core/os/fs.h"
#include "core/transport/ipc_dealer.h"
#include "core/wire/packet.h"

namespace antdt::antdtd {
namespace {

using ::testing::HasSubstr;

// A machine, with each input as a call.
struct Links {
  JobLinks machine;

  // The reason why the link is refused; "": it is not.
  std::string attach(std::uint64_t incarnation, const std::string& peer,
                     const std::string& user = "") {
    links::Effects out;
    machine.step(links::AttachAsked{"j", Incarnation{incarnation}, peer, user}, out);
    EXPECT_EQ(out.size(), 1U);
    const auto* const admitted = std::get_if<links::AdmitLink>(&out.front());
    is_new = admitted != nullptr && admitted->is_new;
    return admitted ? "" : std::get<links::RefuseLink>(out.front()).reason;
  }
  void hear(const links::Input& input) {
    links::Effects out;
    machine.step(input, out);
    EXPECT_TRUE(out.empty());
  }
  bool is_new = false;  // for the link that was admitted last
};

TEST(JobLinks, AHigherIncarnationTakesOverAndALowerIsRefused) {
  Links links;
  EXPECT_EQ(links.attach(1, "peer-1"), "");
  EXPECT_EQ(links.attach(2, "peer-2"), "");
  EXPECT_TRUE(links.is_new);
  EXPECT_FALSE(links.machine.speaks_for("peer-1", "j"));
  EXPECT_TRUE(links.machine.speaks_for("peer-2", "j"));
  EXPECT_THAT(links.attach(1, "peer-1"), HasSubstr("incarnation 2"));
  EXPECT_TRUE(links.machine.speaks_for("peer-2", "j"));
}

TEST(JobLinks, TheSameIncarnationMayConnectAgainAndIsNothingNew) {
  Links links;
  EXPECT_EQ(links.attach(1, "peer-1"), "");
  EXPECT_EQ(links.attach(1, "peer-9"), "");
  EXPECT_FALSE(links.is_new);
  EXPECT_TRUE(links.machine.speaks_for("peer-9", "j"));
}

TEST(JobLinks, AnotherUsersKeyCannotTakeAJobOver) {
  Links links;
  EXPECT_EQ(links.attach(1, "peer-1", "anna"), "");
  EXPECT_THAT(links.attach(2, "peer-2", "otto"), HasSubstr("'anna'"));
  EXPECT_TRUE(links.machine.speaks_for("peer-1", "j"));
}

TEST(JobLinks, WhatAnEarlierAgentSawStillFences) {
  Links links;
  links.hear(links::JobFound{"j", Incarnation{4}, ""});
  EXPECT_FALSE(links.machine.attached("j"));
  EXPECT_NE(links.attach(3, "peer"), "");
  EXPECT_EQ(links.attach(4, "peer"), "");
}

TEST(JobLinks, ALostLinkSpeaksForNothingAndFencesOnUntilTheJobIsForgotten) {
  Links links;
  EXPECT_EQ(links.attach(2, "peer-2"), "");
  links.hear(links::LinkLost{"j"});
  EXPECT_FALSE(links.machine.speaks_for("peer-2", "j"));
  EXPECT_NE(links.attach(1, "peer-1"), "");
  links.hear(links::JobForgotten{"j"});
  EXPECT_EQ(links.attach(1, "peer-1"), "");
}

TEST(JobLinks, AnAttachmentThatFailedIsNewTheNextTimeAndChangesNothingBefore) {
  Links links;
  EXPECT_EQ(links.attach(1, "peer-1"), "");
  links.hear(links::AttachFailed{"j", {}});
  EXPECT_EQ(links.machine.find("j"), nullptr);
  EXPECT_EQ(links.attach(1, "peer-1"), "");
  EXPECT_TRUE(links.is_new);

  const auto before = *links.machine.find("j");
  EXPECT_EQ(links.attach(2, "peer-2"), "");
  links.hear(links::AttachFailed{"j", before});
  EXPECT_TRUE(links.machine.speaks_for("peer-1", "j"));
  EXPECT_EQ(links.attach(1, "peer-1"), "") << "incarnation 2 never attached";
  EXPECT_EQ(links.attach(2, "peer-2"), "");
  EXPECT_TRUE(links.is_new);
}

// ------------------------------------------------- an agent that cannot store who attached

class RefusedAttach : public testing::Test {
 protected:
  // Always readable, so a turn of the loop never waits.
  RefusedAttach() : pump_(eventfd(1, EFD_CLOEXEC)) {
    loop_.watch_fd(pump_, [this] { loop_.stop(); });
  }
  ~RefusedAttach() override { close(pump_); }

  transport::Socket daemon() {
    return transport::Socket::connect_ipc(context_, directory_ / "agent.sock").value();
  }
  template <class T>
  static void say(transport::Socket& daemon, const T& message) {
    wire::Envelope envelope;
    envelope.job = kJob;
    ASSERT_EQ(daemon.send(wire::make_packet(envelope, message)), transport::SendOutcome::kSent);
  }
  // The next message of T's kind; while it does not come, the agent goes on.
  template <class T>
  T hear(transport::Socket& daemon) {
    const SteadyClock clock;
    const MonoTime deadline = clock.now() + std::chrono::seconds(30);
    while (clock.now() < deadline) {
      loop_.run();
      const auto packet = daemon.receive();
      if (!packet || wire::open_envelope(*packet)->kind != T::kKind) continue;
      return wire::decode<T>(packet->body).value();
    }
    ADD_FAILURE() << "no '" << T::kKind << "' came";
    return {};
  }
  // The record of the job, in place of which is something else while nothing can be stored.
  [[nodiscard]] std::string record() const { return directory_ / "state/jobs/test"; }
  void fill_the_disk() {
    std::filesystem::rename(record(), directory_ / "aside");
    ASSERT_TRUE(write_file_atomic(record(), ""));
  }
  void make_room() {
    std::filesystem::remove(record());
    std::filesystem::rename(directory_ / "aside", record());
  }
  [[nodiscard]] Incarnation stored() const {
    return wire::decode<JobRecord>(read_file(record() + "/job").value()).value().incarnation;
  }
  static AgentOptions options(const std::string& claims) {
    AgentOptions options;
    options.host = "here";
    options.device_claims = claims;
    return options;
  }

  static constexpr const char* kJob = "test";
  TempDir directory_;
  SteadyClock clock_;
  EventLoop loop_{clock_};
  transport::Context context_;
  Accelerators accelerators_{"no such library"};
  Agent agent_{
      loop_,
      AgentParts{ProcessStore::open(directory_ / "state").value(),
                 transport::Socket::bind_ipc(context_, directory_ / "agent.sock").value(),
                 transport::Socket::bind_ipc(context_, directory_ / "workers.sock").value(),
                 {}},
      options(directory_ / "claims"), accelerators_};

 private:
  int pump_;
};

TEST_F(RefusedAttach, IsRefusedAgainUntilItCanBeStoredAndTheFormerDaemonGoesOn) {
  transport::Socket former = daemon();
  say(former, wire::Hello{});
  say(former, wire::Attach{Incarnation{1}});
  hear<wire::AgentWelcome>(former);

  fill_the_disk();
  transport::Socket later = daemon();
  say(later, wire::Hello{});
  for (int attempt = 0; attempt < 2; ++attempt) {
    say(later, wire::Attach{Incarnation{2}});
    EXPECT_EQ(hear<wire::Refused>(later).code, wire::RefusalCode::kBusy) << attempt;
  }
  say(later, wire::Heartbeat{});
  EXPECT_EQ(hear<wire::Refused>(later).code, wire::RefusalCode::kUnknown);
  say(former, wire::StopProcess{});
  hear<wire::ProcessExited>(former);  // of a process that there is not

  make_room();
  EXPECT_EQ(stored(), Incarnation{1});
  say(later, wire::Attach{Incarnation{2}});
  hear<wire::AgentWelcome>(later);
  EXPECT_EQ(stored(), Incarnation{2});
}

// ------------------------------------------------------------------ a peer that reads slowly

// A dealer reads only when it is asked to.
class SlowPeer : public testing::Test {
 protected:
  SlowPeer() {
    wire::Envelope envelope;
    envelope.job = "j";
    EXPECT_EQ(peer_.send(wire::make_packet(envelope, wire::Hello{})),
              transport::SendOutcome::kSent);
    const auto said_hello = [this]() -> std::optional<wire::Packet> {
      for (int tries = 0; tries < 3000; ++tries) {
        EXPECT_FALSE(peer_.wait_readable(std::chrono::milliseconds(10)));
        if (auto packet = agent_.receive()) return packet;
      }
      return std::nullopt;
    }();
    EXPECT_TRUE(said_hello);
    if (said_hello) outbox_.set_peer(agent_, said_hello->peer);
  }
  static wire::Packet numbered(std::uint64_t number, std::size_t bytes) {
    wire::Envelope envelope;
    envelope.seq = number;
    return {"", "", wire::encode(envelope), std::string(bytes, 'x')};
  }
  // The number of the next message.
  std::uint64_t read() {
    if (!peer_.wait_readable(std::chrono::seconds(30))) return 0;
    const auto packet = peer_.receive();
    return packet ? wire::open_envelope(*packet)->seq : 0;
  }

  TempDir directory_;
  transport::Context context_;
  transport::Socket agent_ = transport::Socket::bind_ipc(context_, directory_ / "s").value();
  transport::IpcDealer peer_ = transport::IpcDealer::connect(directory_ / "s").value();
  Outbox outbox_;
};

TEST_F(SlowPeer, IsKeptABoundedNumberOfBytesAndGetsTheNewestOnceItReads) {
  constexpr std::uint64_t kSent = 200;
  for (std::uint64_t n = 1; n <= kSent; ++n) outbox_.send(agent_, numbered(n, 1024 * 1024));
  // 16 MiB wait for the connection, 16 are kept, and the connection itself takes little.
  EXPECT_GE(outbox_.dropped(), kSent - 40);
  outbox_.send_or_drop(agent_, numbered(kSent + 1, 10));
  std::vector<std::uint64_t> numbers;
  for (const MonoTime stop = SteadyClock().now() + std::chrono::seconds(30);
       SteadyClock().now() < stop && (numbers.empty() || numbers.back() != kSent);) {
    numbers.push_back(read());
    outbox_.flush(agent_);
  }
  EXPECT_EQ(numbers.front(), 1U);
  EXPECT_THAT(numbers, testing::Contains(kSent + 1))
      << "small messages of the agent keep some room";
  EXPECT_EQ(numbers.size(), kSent - outbox_.dropped() + 1);
}

TEST_F(SlowPeer, IsKeptOneMessageHoweverLarge) {
  Outbox away;
  away.send(agent_, numbered(1, 1));
  away.send(agent_, numbered(2, Outbox::kMaxBytes + 1));
  EXPECT_EQ(away.dropped(), 1U);
  away.set_peer(agent_, outbox_.peer());
  EXPECT_EQ(read(), 2U);
}

// ---------------------------------------------------------------------- processes

struct Processes {
  Supervision supervision{{4, 0, 0}};
  supervision::Effects out;

  void hear(const supervision::Input& input) { supervision.step(input, MonoTime{}, out); }
  void start(std::uint32_t attempt) {
    auto order = std::make_shared<wire::StartProcess>();
    order->command = {"worker"};
    order->cpus = 1;
    hear(supervision::StartWanted{key(attempt), order, 1});
    hear(supervision::WorkerStarted{key(attempt), 1000 + attempt});
  }
  static ProcessKey key(std::uint32_t attempt) { return {"j", {{'w', 3}, Attempt{attempt}}}; }
};

TEST(WorkerGate, AProcessThatThisAgentDidNotStartIsToldSo) {
  const auto refused = refusal_of(Processes::key(1), Processes().supervision);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, wire::RefusalCode::kUnknown);
  EXPECT_THAT(refused->reason, HasSubstr("ANTDT_ATTEMPT"));
}

TEST(WorkerGate, AnOlderAttemptIsToldThatItWasReplaced) {
  Processes processes;
  processes.start(1);
  EXPECT_FALSE(refusal_of(Processes::key(1), processes.supervision));
  processes.start(2);
  const auto refused = refusal_of(Processes::key(1), processes.supervision);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, wire::RefusalCode::kStale);
}

TEST(WorkerGate, NothingIsPassedOnToAProcessThatHasEnded) {
  Processes processes;
  EXPECT_FALSE(hears_job_daemon(Processes::key(1), processes.supervision));
  processes.start(1);
  EXPECT_TRUE(hears_job_daemon(Processes::key(1), processes.supervision));
  processes.hear(supervision::ProcessEnded{Processes::key(1), ExitStatus{0, 0, "", ""}});
  EXPECT_FALSE(hears_job_daemon(Processes::key(1), processes.supervision));
}

}  // namespace
}  // namespace antdt::antdtd
