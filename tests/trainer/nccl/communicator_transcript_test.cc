// Transcripts of the machine of a communicator.
//
//   communicator [forming=TIME] [operation=TIME] [closing=TIME] [aborting=TIME] [late=TIME]
//   form|enqueue|finish|close|abort      what is wanted
//   returned NAME                        how a call ended: ok, in-progress, cuda, system, internal,
//   polled NAME                          argument, remote; the state that was polled
//   work running|done|failed
//   destroyed
//   aborted NAME
//   tick
#include <gtest/gtest.h>

#include <map>
#include <stdexcept>

#include "core/overloaded.h"
#include "tests/transcript/transcript.h"
#include "trainer/nccl/communicator_machine.h"

namespace antdt::nccl::communicator {
namespace {

using transcript::Line;

Code code_of(const std::string& name) {
  static const std::map<std::string, Code> kCodes = {{"ok", Code::kSuccess},
                                                     {"in-progress", Code::kInProgress},
                                                     {"cuda", Code::kUnhandledCudaError},
                                                     {"system", Code::kSystemError},
                                                     {"internal", Code::kInternalError},
                                                     {"argument", Code::kInvalidArgument},
                                                     {"remote", Code::kRemoteError}};
  return kCodes.at(name);
}

WorkState work_of(const std::string& name) {
  if (name == "running") return WorkState::kRunning;
  if (name == "done") return WorkState::kDone;
  if (name == "failed") return WorkState::kFailed;
  throw std::runtime_error("no state of work: " + name);
}

Input input_of(const Line& line) {
  const std::string& what = line.what();
  if (what == "form") return FormWanted{};
  if (what == "enqueue") return EnqueueWanted{"the all-reduce of 8 elements"};
  if (what == "finish") return FinishWanted{};
  if (what == "close") return CloseWanted{};
  if (what == "abort") return AbortWanted{};
  if (what == "returned") return Returned{code_of(line.word(0))};
  if (what == "polled") return Polled{code_of(line.word(0))};
  if (what == "work") return WorkQueried{work_of(line.word(0))};
  if (what == "destroyed") return Destroyed{};
  if (what == "aborted") return Aborted{code_of(line.word(0))};
  if (what == "tick") return TimePassed{};
  throw std::runtime_error("no event: " + what);
}

std::string answer_of(const Status& status) {
  if (status) return "answer: ok";
  const bool aborted = status.error().kind == ErrorKind::kAborted;
  const bool io = status.error().kind == ErrorKind::kIo;
  return fmt::format("answer: {}: {}",
                     aborted ? "aborted"
                     : io    ? "io"
                             : "internal",
                     status.error().message);
}

std::string show(const Effect& effect) {
  return std::visit(Overloaded{[](const Form&) -> std::string { return "FORM"; },
                               [](const Enqueue&) -> std::string { return "ENQUEUE"; },
                               [](const Poll&) -> std::string { return "POLL"; },
                               [](const MarkWork&) -> std::string { return "MARK-WORK"; },
                               [](const QueryWork&) -> std::string { return "QUERY-WORK"; },
                               [](const Finalize&) -> std::string { return "FINALIZE"; },
                               [](const Destroy&) -> std::string { return "DESTROY"; },
                               [](const Abort&) -> std::string { return "ABORT"; },
                               [](const Answer& e) { return answer_of(e.status); }},
                    effect);
}

class Playing final : public transcript::Machine {
 public:
  explicit Playing(const Patience& patience) : machine_(patience) {}
  [[nodiscard]] std::vector<std::string> run(const Line& line, MonoTime now) override {
    Effects effects;
    machine_.step(input_of(line), now, effects);
    std::vector<std::string> lines;
    for (const Effect& effect : effects) lines.push_back(show(effect));
    return lines;
  }

 private:
  CommunicatorMachine machine_;
};

std::unique_ptr<transcript::Machine> make(const Line& first) {
  Patience patience;
  patience.forming = first.duration("forming", patience.forming);
  patience.operation = first.duration("operation", patience.operation);
  patience.closing = first.duration("closing", patience.closing);
  patience.aborting = first.duration("aborting", patience.aborting);
  patience.late_caller = first.duration("late", patience.late_caller);
  return std::make_unique<Playing>(patience);
}

class CommunicatorTranscript : public ::testing::TestWithParam<std::string> {};

TEST_P(CommunicatorTranscript, IsAsWritten) {
  transcript::expect_as_written(ANTDT_TRANSCRIPTS, GetParam(), make);
}

INSTANTIATE_TEST_SUITE_P(All, CommunicatorTranscript,
                         ::testing::ValuesIn(transcript::scripts_in(ANTDT_TRANSCRIPTS)),
                         [](const auto& script) { return script.param; });

// The job daemon waits for `hang_after` before it ends a member that is not ready.
TEST(CommunicatorMachine, FormingIsGivenUpBeforeTheJobDaemonEndsMembers) {
  using std::chrono::seconds;
  EXPECT_EQ(patience_in(seconds(120)).forming, seconds(60));
  EXPECT_EQ(patience_in(seconds(8)).forming, seconds(4));
  EXPECT_EQ(patience_in(seconds(86'400)).forming, seconds(120));
}

TEST(CommunicatorMachine, AnAbortWaitsForWhatTheDeviceMayStillCompute) {
  using std::chrono::seconds;
  EXPECT_EQ(patience_in(seconds(120)).aborting, seconds(60));
  EXPECT_EQ(patience_in(seconds(3600)).aborting, seconds(1800));
  EXPECT_EQ(patience_in(seconds(1)).aborting, seconds(10));
}

// At most one call is under way, whatever comes in whatever order.
TEST(CommunicatorMachine, WantsOneCallAtATimeAndAlwaysEndsAfterAnAbort) {
  for (std::uint32_t seed = 1; seed <= 20'000; ++seed) {
    std::uint32_t state = seed;
    const auto roll = [&state](std::uint32_t sides) {
      state = state * 1664525 + 1013904223;
      return (state >> 16) % sides;
    };
    CommunicatorMachine machine;
    MonoTime now{};
    std::optional<Effect> call;
    bool waits = false, aborted = false;
    const auto step = [&](const Input& input) {
      Effects effects;
      machine.step(input, now, effects);
      for (const Effect& effect : effects) {
        if (std::holds_alternative<Answer>(effect)) {
          EXPECT_TRUE(waits) << "seed " << seed << ": an answer that nobody waits for";
          waits = false;
        } else {
          EXPECT_FALSE(call) << "seed " << seed << ": two calls at a time";
          call = effect;
        }
      }
    };
    const auto finish_call = [&] {
      const Effect made = *std::exchange(call, std::nullopt);
      const Code code = roll(12) == 0  ? Code::kRemoteError
                        : roll(2) == 0 ? Code::kSuccess
                                       : Code::kInProgress;
      const bool is_work =
          std::holds_alternative<MarkWork>(made) || std::holds_alternative<QueryWork>(made);
      if (std::holds_alternative<Poll>(made)) return step(Polled{code});
      if (is_work) return step(WorkQueried{static_cast<WorkState>(roll(3))});
      if (std::holds_alternative<Destroy>(made)) return step(Destroyed{});
      if (std::holds_alternative<Abort>(made)) return step(Aborted{Code::kSuccess});
      step(Returned{code});
    };
    const auto request = [&] {
      waits = true;
      switch (machine.state() == CommunicatorMachine::State::kNew ? 0 : 1 + roll(3)) {
        case 0:
          return step(FormWanted{});
        case 1:
          return step(EnqueueWanted{"x"});
        case 2:
          return step(FinishWanted{});
        default:
          return step(CloseWanted{});
      }
    };
    for (int turn = 0; turn < 60; ++turn) {
      const std::uint32_t what = roll(20);
      if (what == 0) {
        aborted = true;
        step(AbortWanted{});
      } else if (what < 8 && call) {
        finish_call();
      } else if (what < 12 && !waits) {
        request();
      } else {
        now = std::max(now, std::min(machine.next(), now + std::chrono::milliseconds(50)));
        step(TimePassed{});
      }
    }
    if (!aborted) step(AbortWanted{});
    for (int turn = 0; turn < 200 && !machine.ended(); ++turn) {
      if (call) {
        finish_call();
      } else {
        now += std::chrono::milliseconds(2);
        step(TimePassed{});
      }
    }
    ASSERT_TRUE(machine.ended()) << "seed " << seed;
    ASSERT_FALSE(waits) << "seed " << seed;
  }
}

}  // namespace
}  // namespace antdt::nccl::communicator
