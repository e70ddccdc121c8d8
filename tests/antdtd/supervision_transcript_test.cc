// Each file of transcripts/ is a list of events and, indented, the effects that
// must follow; what the state machine does is written in the same form and
// compared as a whole.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "antdtd/supervision.h"
#include "core/fs.h"

namespace antdt::antdtd {
namespace {

constexpr const char* kJob = "job-1";

struct Words {
  std::string verb;
  Member member;
  std::map<std::string, std::string> values;
  [[nodiscard]] std::int64_t number(const std::string& name, std::int64_t otherwise) const {
    const auto it = values.find(name);
    return it == values.end() ? otherwise : std::stoll(it->second);
  }
};

Words parse(std::istringstream& line) {
  Words words;
  line >> words.verb;
  for (std::string word; line >> word;) {
    const std::size_t equals = word.find('=');
    const std::size_t dot = word.find('.');
    if (equals != std::string::npos) {
      words.values[word.substr(0, equals)] = word.substr(equals + 1);
    } else {
      words.member.worker = *parse_worker_id(word.substr(0, dot));
      words.member.attempt = Attempt{static_cast<std::uint32_t>(std::stoul(word.substr(dot + 1)))};
    }
  }
  return words;
}

ExitStatus exit_of(const Words& words) {
  ExitStatus status;
  status.code = static_cast<std::int32_t>(words.number("code", -1));
  status.signal = static_cast<std::int32_t>(words.number("signal", 0));
  return status;
}

StartRequest any_request() {
  wire::StartProcess start;
  start.command = {"/bin/true"};
  start.orphan_timeout_ms = 10000;
  return std::make_shared<wire::StartProcess>(start);
}

Event to_event(const Words& words) {
  const ProcessKey key{kJob, words.member};
  const auto pid = static_cast<std::uint32_t>(words.number("pid", 0));
  if (words.verb == "start") return event::StartWanted{key, any_request(), 1};
  if (words.verb == "stop") {
    return event::StopWanted{key, std::chrono::seconds(words.number("grace", 0))};
  }
  if (words.verb == "started") return event::WorkerStarted{key, pid};
  if (words.verb == "ended") return event::ProcessEnded{key, exit_of(words)};
  if (words.verb == "seen") return event::ExitAcknowledged{key};
  if (words.verb == "attach") return event::DaemonAttached{kJob};
  if (words.verb == "heard") return event::DaemonHeard{kJob};
  if (words.verb == "over") return event::JobOver{kJob};
  if (words.verb == "adopt") {
    event::Adopted adopted{key, any_request(), pid, {}};
    if (pid == 0) adopted.status = exit_of(words);
    return adopted;
  }
  EXPECT_EQ(words.verb, "tick");
  return event::Tick{};
}

std::string text(const ExitStatus& status) {
  if (status.signal != 0) return fmt::format("signal={}", status.signal);
  return fmt::format("code={}", status.code);
}

struct Render {
  std::string operator()(const effect::Launch& e) const { return "launch " + name(e.key); }
  std::string operator()(const effect::Signal& e) const {
    const char* verb = e.force == Force::kTerminate ? "terminate "
                       : e.force == Force::kKill    ? "kill "
                                                    : "destroy ";
    return verb + name(e.key);
  }
  std::string operator()(const effect::ReportStarted& e) const {
    return fmt::format("report-started {} pid={}", name(e.key), e.pid);
  }
  std::string operator()(const effect::ReportExit& e) const {
    return "report-exit " + name(e.key) + " " + text(e.status);
  }
  std::string operator()(const effect::RefuseStart& e) const {
    return "refuse " + name(e.key) + " " + e.code;
  }
  std::string operator()(const effect::ForgetProcess& e) const { return "forget " + name(e.key); }
  std::string operator()(const effect::ForgetJob&) const { return "forget-job"; }
  std::string operator()(const effect::Note&) const { return "note"; }
  static std::string name(const ProcessKey& key) { return file_name(key.member); }
};

class SupervisionTranscript : public ::testing::TestWithParam<std::string> {};

TEST_P(SupervisionTranscript, IsWhatTheMachineDoes) {
  const std::string path = std::string(ANTDT_TRANSCRIPTS) + "/" + GetParam() + ".txt";
  const Result<std::string> expected = read_file(path);
  ASSERT_TRUE(expected) << expected.error().message;
  Supervision machine(Capacity{4, 0, 0});
  std::string actual;
  std::istringstream lines(*expected);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  ")) continue;
    actual += line + "\n";
    if (line.starts_with("#")) continue;
    std::istringstream rest(line);
    double at_seconds = 0;
    rest >> at_seconds;
    // The clock began long before the job.
    const MonoTime now = MonoTime{} + std::chrono::hours(1) + from_seconds(at_seconds);
    for (const Effect& effect : machine.step(to_event(parse(rest)), now)) {
      actual += "  " + std::visit(Render{}, effect) + "\n";
    }
  }
  EXPECT_EQ(actual, *expected);
}

INSTANTIATE_TEST_SUITE_P(, SupervisionTranscript,
                         ::testing::Values("stop_with_grace", "newer_attempt", "orphaned_job",
                                           "adoption"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace antdt::antdtd
