#include "core/wire/codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <random>
#include <regex>
#include <set>
#include <vector>

#include "core/os/fs.h"
#include "core/wire/messages.h"

namespace antdt::wire {
namespace {

using namespace std::string_literals;
using testing::HasSubstr;

template <class... Messages>
struct ListOf {};
using EveryMessage =
    ListOf<Hello, Refused, Fetch, Grants, Recall, Recalled, WorkerWelcome, Report, Join, Form,
           Address, Roster, Ready, Plan, Settle, Abort, PhaseStart, Progress, CheckpointOrder,
           CheckpointWritten, Leave, Bye, Attach, AgentWelcome, StartProcess, ProcessStarted,
           ProcessExited, ExitSeen, StopProcess, Metrics, ReservePort, ReservedPort, Heartbeat,
           Detach, StartJob, JobStarted, StatusRequest, StatusReply, StopJob, EvictWorkers,
           ResizeJob, ApproveAction, SkipRecords, HostGone, Regroup, Done, PsOpen, PsOpened, PsPut,
           PsPull, PsPulled, PsPush, PsStepPull, PsStepPush, PsStaged, PsCommit, PsDecided, PsIdle,
           PsDecision, PsApplied, PsCut, PsSaved, PsIdled, PsServe, PsServing, PsRoster, PsCopied,
           PsTaken, PsImage, PsStats, InjectRules, Injected, Traced, StackWanted, StackTold,
           CheckpointBegun, FilesAttach, FilesReady, FilesDetach, FileProbe, FileProbed, FileList,
           FileListed, FileRead, FileData, FileWrite, FileDone, FileSum, FileSummed, FileCommit,
           FileRemove, JobsRequest, JobsReply, RelayedRequest, RelayedReply, FileHost, FileHostTold,
           FileClock, FileClockTold, FileDisk, FileDiskTold, FilePort, FilePortOpen, FileLink,
           FileLinkTold, HostDrain, DrainHost, HostDevices, DeviceTrouble>;

// Gives every field, of nested parts too, a different value.
class Filler {
 public:
  template <class T>
  void operator()(std::string_view, T& value) {
    fill(value);
  }
  [[nodiscard]] int fields() const { return count_; }

 private:
  template <class T>
  void fill(T& value) {
    ++count_;
    if constexpr (detail::HasFields<T>) {
      T::fields(value, *this);
    } else if constexpr (detail::IsId<T>::value) {
      fill(value.value);
    } else if constexpr (std::is_same_v<T, WorkerId>) {
      value = WorkerId{'s', static_cast<std::uint32_t>(count_)};
    } else if constexpr (std::is_same_v<T, std::string>) {
      value = std::string(static_cast<std::size_t>(count_ % 50), 'a') + "\0\xff"s;
    } else if constexpr (detail::IsVector<T>::value) {
      // The header of an array is longer from 16 items on. Two will do for those that have parts of
      // their own, which would multiply.
      using Item = typename T::value_type;
      value.resize(detail::HasFields<Item> || detail::IsVector<Item>::value ? 2 : 20);
      for (auto& item : value) fill(item);
    } else if constexpr (detail::IsOptional<T>::value) {
      fill(value.emplace());
    } else if constexpr (Named<T>) {
      value = static_cast<T>(1);
    } else if constexpr (std::is_same_v<T, bool>) {
      value = !value;
    } else if constexpr (std::is_floating_point_v<T>) {
      value = 0.1 * count_;
    } else if constexpr (std::is_signed_v<T>) {
      value = static_cast<T>(-70000 - count_);
    } else {
      value = static_cast<T>(std::numeric_limits<T>::max() - static_cast<T>(count_));
    }
  }
  int count_ = 0;
};

template <class T>
T filled() {
  T message{};
  Filler filler;
  T::fields(message, filler);
  return message;
}

// What the tests ask of each message: functions in a table compile in a fraction of the time of a
// typed test.
struct AnyMessage {
  std::string_view kind;
  std::string (*filled)();  // as bytes
  std::string (*empty)();
  Result<std::string> (*again)(std::string_view bytes);  // read, then written
  int fields;
};

template <class T>
AnyMessage any() {
  Filler counter;
  T scratch{};
  T::fields(scratch, counter);
  return {T::kKind, [] { return encode(filled<T>()); }, [] { return encode(T{}); },
          [](std::string_view bytes) -> Result<std::string> {
            const Result<T> read = decode<T>(bytes);
            if (!read) return tl::unexpected(read.error());
            return encode(*read);
          },
          counter.fields()};
}

template <class... Messages>
std::vector<AnyMessage> all_of(ListOf<Messages...>) {
  return {any<Messages>()...};
}

class EveryMessageTest : public testing::TestWithParam<AnyMessage> {};
INSTANTIATE_TEST_SUITE_P(Kinds, EveryMessageTest, testing::ValuesIn(all_of(EveryMessage{})),
                         [](const auto& instance) {
                           std::string name(instance.param.kind);
                           std::ranges::replace_if(
                               name, [](unsigned char c) { return !std::isalnum(c); }, '_');
                           return name;
                         });

TEST_P(EveryMessageTest, ReadsWhatItWrites) {
  const std::string bytes = GetParam().filled();
  const auto again = GetParam().again(bytes);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, bytes);
  if (GetParam().fields > 0) {
    EXPECT_NE(bytes, GetParam().empty());
  }
}

TEST_P(EveryMessageTest, TakesDefaultsForWhatIsMissing) {
  const auto again = GetParam().again("\x80"s);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, GetParam().empty());
}

TEST_P(EveryMessageTest, RefusesEveryTruncation) {
  const std::string bytes = GetParam().filled();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto again = GetParam().again(std::string_view(bytes).substr(0, size));
    ASSERT_FALSE(again) << "cut at " << size << " of " << bytes.size();
    ASSERT_EQ(again.error().kind, ErrorKind::kCorrupt);
  }
}

TEST_P(EveryMessageTest, SurvivesChangedBytes) {
  const std::string bytes = GetParam().filled();
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    std::string changed = bytes;
    for (int n = 0; n < 3; ++n) changed[random() % changed.size()] = static_cast<char>(random());
    // Either it can be read, and then written again, or it is an error.
    if (const auto again = GetParam().again(changed)) {
      EXPECT_FALSE(again->empty());
    }
  }
}

TEST_P(EveryMessageTest, SurvivesRandomBytes) {
  std::mt19937 random(8);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(random() % 64, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    if (const auto again = GetParam().again(bytes)) {
      EXPECT_FALSE(again->empty());
    }
  }
}

template <class... Messages>
std::multiset<std::string> kinds_of(ListOf<Messages...>) {
  return {std::string(Messages::kKind)...};
}

// A message that is missing from the list above would not be tested.
TEST(MessagesTest, AreAllInTheListAndHaveKindsOfTheirOwn) {
  const std::regex declaration("ANTDT_MESSAGE\\(\"([^\"]+)\"\\)");
  std::multiset<std::string> declared;
  const std::filesystem::path directory = std::string(ANTDT_SOURCE_DIR) + "/core/wire";
  for (const auto& header : std::filesystem::recursive_directory_iterator(directory)) {
    if (header.path().extension() != ".h") continue;
    const auto source = read_file(header.path().string());
    ASSERT_TRUE(source) << source.error().message;
    for (std::sregex_iterator it(source->begin(), source->end(), declaration), end; it != end;
         ++it) {
      declared.insert((*it)[1]);
    }
  }
  EXPECT_EQ(kinds_of(EveryMessage{}), declared);
  EXPECT_EQ(std::set<std::string>(declared.begin(), declared.end()).size(), declared.size());
}

TEST(CodecTest, KeepsTheEnvelope) {
  const Envelope sent{"fetch",           "ctr-01ARZ3NDEKTSV4RRFFQ69G5FAV",
                      WorkerId{'w', 12}, Attempt{2},
                      Generation{7},     1ULL << 40};
  const auto read = decode<Envelope>(encode(sent));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->kind, sent.kind);
  EXPECT_EQ(read->job, sent.job);
  EXPECT_EQ(read->worker, sent.worker);
  EXPECT_EQ(read->attempt, sent.attempt);
  EXPECT_EQ(read->generation, sent.generation);
  EXPECT_EQ(read->seq, sent.seq);
}

struct Inner {
  std::int32_t x = 0;
  ANTDT_PART { v("x", m.x); }
};
struct Sample {
  std::uint8_t small = 0;
  double real = 0;
  bool yes = false;
  std::string text;
  std::vector<Inner> inner;
  std::optional<std::uint32_t> maybe;
  ANTDT_PART {
    v("small", m.small);
    v("real", m.real);
    v("yes", m.yes);
    v("text", m.text);
    v("inner", m.inner);
    v("maybe", m.maybe);
  }
};

// Writes a map by hand, as a peer of another version or language would.
class MapWriter {
 public:
  explicit MapWriter(std::uint32_t entries) { out_.map(entries); }
  MapWriter& key(std::string_view name) { return out_.string(name), *this; }
  MapWriter& number(std::uint64_t n) { return out_.unsigned_integer(n), *this; }
  MapWriter& negative(std::int64_t n) { return out_.signed_integer(n), *this; }
  MapWriter& text(std::string_view s) { return out_.string(s), *this; }
  MapWriter& array(std::uint32_t n) { return out_.array(n), *this; }
  MapWriter& map(std::uint32_t n) { return out_.map(n), *this; }
  MapWriter& nil() { return out_.nil(), *this; }
  std::string take() { return out_.take(); }

 private:
  MsgpackWriter out_;
};

// So their defaults are 0 and empty, as what is left out is read.
TEST(CodecTest, AFetchAndItsAnswerLeaveOutWhatIsZeroOrEmpty) {
  EXPECT_EQ(encode(Fetch{}), "\x80"s);
  EXPECT_EQ(encode(Grants{}), "\x81\xa6status\xa7granted"s);
  Fetch fetch;
  fetch.late = 3;
  EXPECT_EQ(encode(fetch), "\x81\xa4late\x03"s);
  EXPECT_EQ(decode<Fetch>(encode(fetch))->late, 3U);
}

TEST(CodecTest, IgnoresFieldsItDoesNotKnow) {
  const std::string bytes = MapWriter(5)
                                .key("new")
                                .map(1)
                                .key("a")
                                .array(2)
                                .number(1)
                                .text("x")
                                .key("small")
                                .number(3)
                                .number(9)
                                .array(1)
                                .nil()  // a key that is no string
                                .key("text")
                                .text("hi")
                                .key("later")
                                .nil()
                                .take();
  const auto read = decode<Sample>(bytes);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->small, 3);
  EXPECT_EQ(read->text, "hi");
}

TEST(CodecTest, ReadsFieldsInAnyOrder) {
  const std::string bytes = MapWriter(4)
                                .key("maybe")
                                .number(5)
                                .key("inner")
                                .array(1)
                                .map(1)
                                .key("x")
                                .negative(-4)
                                .key("text")
                                .text("t")
                                .key("small")
                                .number(1)
                                .take();
  const auto read = decode<Sample>(bytes);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->maybe, 5U);
  ASSERT_EQ(read->inner.size(), 1U);
  EXPECT_EQ(read->inner[0].x, -4);
  EXPECT_EQ(read->text, "t");
  EXPECT_EQ(read->small, 1);
}

TEST(CodecTest, TellsNothingFromZero) {
  Sample sample;
  EXPECT_EQ(decode<Sample>(encode(sample))->maybe, std::nullopt);
  sample.maybe = 0;
  EXPECT_EQ(decode<Sample>(encode(sample))->maybe, 0U);
}

TEST(CodecTest, NamesTheFieldThatHasAWrongType) {
  const auto problem = [](std::string bytes) {
    const auto read = decode<Sample>(bytes);
    return read ? "no error"s : read.error().message;
  };
  EXPECT_THAT(problem(MapWriter(1).key("small").text("3").take()),
              HasSubstr("'small' is not an integer"));
  EXPECT_THAT(problem(MapWriter(1).key("small").number(256).take()), HasSubstr("in range"));
  EXPECT_THAT(problem(MapWriter(1).key("small").negative(-1).take()), HasSubstr("in range"));
  EXPECT_THAT(problem(MapWriter(1).key("real").text("1.0").take()), HasSubstr("'real'"));
  EXPECT_THAT(problem(MapWriter(1).key("yes").number(1).take()), HasSubstr("'yes'"));
  EXPECT_THAT(problem(MapWriter(1).key("text").number(1).take()), HasSubstr("'text'"));
  EXPECT_THAT(problem(MapWriter(1).key("inner").map(0).take()), HasSubstr("'inner'"));
  EXPECT_THAT(problem(MapWriter(1).key("inner").array(1).number(1).take()),
              HasSubstr("'inner' is not a map"));
  EXPECT_THAT(problem(MapWriter(1).key("text").nil().take()), HasSubstr("'text'"));
  EXPECT_THAT(problem("\x05"s), HasSubstr("not a map"));
}

TEST(CodecTest, RefusesAnInvalidWorkerId) {
  const auto read = decode<Envelope>(MapWriter(1).key("w").text("w-1").take());
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("worker id"));
}

TEST(CodecTest, RefusesBytesAfterTheMessage) {
  const auto read = decode<Sample>(encode(Sample{}) + "x");
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("after its end"));
}

enum class Colour : std::uint8_t { kRed, kGreen };
constexpr auto names_of(Colour) { return names("red", "green"); }
enum class Answer : std::uint8_t { kOther, kYes };
constexpr auto names_of(Answer) { return names("other", "yes"); }
constexpr Answer unknown_name(Answer) { return Answer::kOther; }
enum class Stage : std::uint8_t { kFirst, kSecond, kThird };
constexpr Stage last_of(Stage) { return Stage::kThird; }
struct Enums {
  Colour colour = Colour::kRed;
  Answer answer = Answer::kYes;
  Stage stage = Stage::kFirst;
  ANTDT_PART {
    v("colour", m.colour);
    v("answer", m.answer);
    v("stage", m.stage);
  }
};
// The same fields as an earlier release had them.
struct EnumsInTheOpen {
  std::string colour, answer;
  std::uint32_t stage = 0;
  ANTDT_PART {
    v("colour", m.colour);
    v("answer", m.answer);
    v("stage", m.stage);
  }
};

TEST(CodecTest, AnEnumTravelsAsItsNameOrItsNumber) {
  const auto read =
      decode<EnumsInTheOpen>(encode(Enums{Colour::kGreen, Answer::kYes, Stage::kThird}));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->colour, "green");
  EXPECT_EQ(read->answer, "yes");
  EXPECT_EQ(read->stage, 2U);
  const auto back = decode<Enums>(encode(*read));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->colour, Colour::kGreen);
  EXPECT_EQ(back->answer, Answer::kYes);
  EXPECT_EQ(back->stage, Stage::kThird);
}

TEST(CodecTest, ANameThatIsNotKnownIsAnErrorUnlessTheEnumHasAValueForIt) {
  const auto wrong = decode<Enums>(encode(EnumsInTheOpen{"blue", "yes", 0}));
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("colour"));
  const auto other = decode<Enums>(encode(EnumsInTheOpen{"red", "perhaps", 0}));
  ASSERT_TRUE(other);
  EXPECT_EQ(other->answer, Answer::kOther);
}

TEST(CodecTest, ANumberBeyondTheLastOfAnEnumIsAnError) {
  const auto wrong = decode<Enums>(encode(EnumsInTheOpen{"red", "yes", 3}));
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("stage"));
}

TEST(CodecTest, RefusesAnArrayOfFourBillionElementsThatAreNotThere) {
  const std::string bytes = "\x81\xa5inner\xdd\xff\xff\xff\xff\x80\x80"s;
  const auto read = decode<Sample>(bytes);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, ErrorKind::kCorrupt);
}

}  // namespace
}  // namespace antdt::wire
