// Transcripts of the agent's supervision of processes, for one job with room for four.
//
//   agent slots=N                the agent
//   start|seen MEMBER
//   stop MEMBER [grace=TIME]
//   started MEMBER pid=N
//   ended MEMBER code=N|signal=N
//   adopt MEMBER pid=N|code=N    an earlier agent left it running, or ended
//   attach|heard|over            of the job daemon
//   tick
#include <gtest/gtest.h>

#include <stdexcept>

#include "antdtd/processes/supervision.h"
#include "tests/transcript/transcript.h"

namespace antdt::antdtd {
namespace {

using transcript::Line;

constexpr const char* kJob = "job-1";

ExitStatus exit_of(const Line& line) {
  ExitStatus status;
  status.code = static_cast<std::int32_t>(line.real("code", -1));
  status.signal = static_cast<std::int32_t>(line.number("signal", 0));
  return status;
}

StartRequest any_request() {
  wire::StartProcess start;
  start.command = {"/bin/true"};
  start.orphan_timeout_ms = 10000;
  return std::make_shared<wire::StartProcess>(start);
}

supervision::Input to_event(const Line& line) {
  const std::string& what = line.what();
  if (what == "attach") return supervision::DaemonAttached{kJob};
  if (what == "heard") return supervision::DaemonHeard{kJob};
  if (what == "over") return supervision::JobOver{kJob};
  if (what == "tick") return supervision::TimePassed{};
  const ProcessKey key{kJob, transcript::member_of(line.word(0))};
  const auto pid = static_cast<std::uint32_t>(line.number("pid", 0));
  if (what == "start") return supervision::StartWanted{key, any_request(), 1};
  if (what == "stop") return supervision::StopWanted{key, line.duration("grace", Duration::zero())};
  if (what == "started") return supervision::WorkerStarted{key, pid};
  if (what == "ended") return supervision::ProcessEnded{key, exit_of(line)};
  if (what == "seen") return supervision::ExitAcknowledged{key};
  if (what != "adopt") throw std::runtime_error("no event: " + what);
  supervision::ProcessFound adopted{key, any_request(), pid, {}};
  if (pid == 0) adopted.status = exit_of(line);
  return adopted;
}

std::string text(const ExitStatus& status) {
  if (status.signal != 0) return fmt::format("signal={}", status.signal);
  return fmt::format("code={}", status.code);
}

struct Render {
  std::string operator()(const supervision::LaunchProcess& e) const {
    return "launch " + name(e.key);
  }
  std::string operator()(const supervision::SignalProcess& e) const {
    const char* verb = e.force == Force::kTerminate ? "terminate "
                       : e.force == Force::kKill    ? "kill "
                                                    : "destroy ";
    return verb + name(e.key);
  }
  std::string operator()(const supervision::MarkOrphaned& e) const {
    return "mark-orphaned " + name(e.key);
  }
  std::string operator()(const supervision::ReportStarted& e) const {
    return fmt::format("report-started {} pid={}", name(e.key), e.pid);
  }
  std::string operator()(const supervision::ReportDeviceTrouble& e) const {
    return "report-device-trouble " + name(e.key) + " " + e.problem;
  }
  std::string operator()(const supervision::ReportExit& e) const {
    return "report-exit " + name(e.key) + " " + text(e.status);
  }
  std::string operator()(const supervision::RefuseStart& e) const {
    return fmt::format("refuse {} {}", name(e.key), e.code);
  }
  std::string operator()(const supervision::ForgetProcess& e) const {
    return "forget " + name(e.key);
  }
  std::string operator()(const supervision::ForgetJob&) const { return "forget-job"; }
  std::string operator()(const supervision::WriteToLog&) const { return "note"; }
  static std::string name(const ProcessKey& key) { return file_name(key.member); }
};

class SupervisionScript : public transcript::Machine {
 public:
  explicit SupervisionScript(const Line& first)
      : machine_(Capacity{first.real("slots", 4), 0, 0}) {}

  std::vector<std::string> run(const Line& line, MonoTime now) override {
    std::vector<std::string> shown;
    supervision::Effects effects;
    machine_.step(to_event(line), now, effects);
    for (const supervision::Effect& effect : effects) {
      shown.push_back(std::visit(Render{}, effect));
    }
    return shown;
  }

 private:
  Supervision machine_;
};

class SupervisionTranscript : public ::testing::TestWithParam<std::string> {};

TEST_P(SupervisionTranscript, IsWhatTheMachineDoes) {
  transcript::expect_as_written(ANTDT_TRANSCRIPTS, GetParam(), [](const Line& first) {
    return std::make_unique<SupervisionScript>(first);
  });
}

INSTANTIATE_TEST_SUITE_P(, SupervisionTranscript,
                         ::testing::ValuesIn(transcript::scripts_in(ANTDT_TRANSCRIPTS)),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace antdt::antdtd
