// Tests of a worker's requests to its servers, their repetition, and the process they go to.
#include "trainer/ps/calls/requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antdt::ps::requests_test {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// "2: 7": request 7 is sent over link 2. "2: ?": its server is asked for nothing.
class RequestsTest : public ::testing::Test {
 protected:
  void begin(requests::Start start) {
    asks_.emplace(std::move(start));
    asks_->begin(effects_);
    show();
  }
  static requests::Start one_server(Duration again, Duration give_up = {}) {
    requests::Start start;
    start.roster.servers = {"s0"};
    start.again = again;
    start.give_up = give_up;
    return start;
  }
  static requests::Start two_processes() {
    requests::Start start = one_server(seconds(2));
    start.roster.others = {"s1"};
    return start;
  }
  Requests::Id say(std::uint64_t version = 1) {
    return asks_->say(0, wire::PsIdle{version}, now, effects_);
  }
  std::vector<std::string> step(requests::Input input) {
    asks_->step(std::move(input), now, effects_);
    return show();
  }
  // The caller waits, and there is no newer roster.
  std::vector<std::string> wait() {
    show();
    EXPECT_THAT(step(requests::WaitGoesOn{}), ElementsAre("look"));
    return step(requests::RosterLooked{});
  }
  std::vector<std::string> answer(requests::LinkId link, std::uint64_t seq,
                                  std::uint64_t version = 1) {
    return step(requests::ReplyHeard{link, seq, wire::PsIdled{version, 0}});
  }
  std::vector<std::string> show() {
    std::vector<std::string> shown;
    for (const requests::Effect& effect : effects_) {
      if (const auto* open = std::get_if<requests::OpenRequestLink>(&effect)) {
        shown.push_back(fmt::format("open {} to {}", open->link, open->endpoint));
      } else if (const auto* close = std::get_if<requests::CloseRequestLink>(&effect)) {
        shown.push_back(fmt::format("close {}", close->link));
      } else if (const auto* send = std::get_if<requests::SendRequest>(&effect)) {
        const bool is_question = std::holds_alternative<wire::PsPull>(*send->ask);
        if (is_question) question_ = send->seq;
        shown.push_back(is_question ? fmt::format("{}: ?", send->link)
                                    : fmt::format("{}: {}", send->link, send->seq));
      } else if (const auto* check = std::get_if<requests::CheckReach>(&effect)) {
        shown.push_back(fmt::format("check {}", check->endpoint));
      } else {
        shown.emplace_back("look");
      }
    }
    effects_.clear();
    return shown;
  }

  std::optional<Requests> asks_;
  requests::Effects effects_;
  std::uint64_t question_ = 0;  // number of the last one
  MonoTime now{};
};

TEST_F(RequestsTest, AnswersComeInAnyOrder) {
  begin(one_server(hours(1)));
  const Requests::Id one = say(1);
  const Requests::Id two = say(2);
  EXPECT_THAT(show(), ElementsAre("1: 1", "1: 2"));
  answer(1, two, 20);
  EXPECT_FALSE(asks_->answered(one));
  EXPECT_EQ(asks_->take<wire::PsIdled>(two)->version, 20U);
  answer(1, one, 10);
  EXPECT_EQ(asks_->take<wire::PsIdled>(one)->version, 10U);
  EXPECT_EQ(asks_->answers(), 2U);
}

TEST_F(RequestsTest, AnUnansweredRequestIsRepeatedUnchanged) {
  begin(one_server(milliseconds(20)));
  const Requests::Id lost = say();
  answer(1, say());
  show();
  now += milliseconds(19);
  EXPECT_THAT(wait(), IsEmpty());
  now += milliseconds(1);
  EXPECT_EQ(asks_->next_due(), now);
  EXPECT_THAT(wait(), ElementsAre(fmt::format("1: {}", lost)));
  EXPECT_THAT(wait(), IsEmpty()) << "not every turn";
  answer(1, lost);
  now += hours(1);
  EXPECT_THAT(wait(), IsEmpty());
}

// A server of which all workers together want more than it can do answers later than the interval.
TEST_F(RequestsTest, ASlowServerIsSentEachRequestOnce) {
  begin(one_server(seconds(2)));
  for (int round = 0; round < 10; ++round) {
    const Requests::Id id = say();
    EXPECT_THAT(show(), ElementsAre(fmt::format("1: {}", id)));
    now += seconds(2);
    EXPECT_THAT(wait(), ElementsAre("1: ?"));
    now += seconds(1);
    answer(1, id);
    step(requests::ReplyHeard{1, question_, wire::PsPulled{}});
    EXPECT_THAT(wait(), IsEmpty());
  }
}

TEST_F(RequestsTest, AServerThatStandsStillIsAskedForNothingAndAnswersEachRequestOnce) {
  begin(one_server(seconds(2)));
  answer(1, say());  // it is reached
  const Requests::Id one = say(1);
  const Requests::Id two = say(2);
  show();
  for (int i = 0; i < 15; ++i) {
    now += seconds(2);
    EXPECT_THAT(wait(), ElementsAre("1: ?"));
  }
  answer(1, one);
  answer(1, two);
  step(requests::ReplyHeard{1, question_, wire::PsPulled{}});
  EXPECT_THAT(wait(), IsEmpty());
}

TEST_F(RequestsTest, WhatWasLostIsRepeatedAsSoonAsTheServerAnswersWhatItWasAskedBehindIt) {
  begin(one_server(seconds(2)));
  const Requests::Id lost = say();
  show();
  now += seconds(2);
  EXPECT_THAT(wait(), ElementsAre("1: ?"));
  const Requests::Id later = say();
  show();
  step(requests::ReplyHeard{1, question_, wire::Refused{}});
  EXPECT_EQ(asks_->next_due(), now);
  EXPECT_THAT(wait(), ElementsAre(fmt::format("1: {}", lost)));
  EXPECT_THAT(wait(), IsEmpty());
  now += seconds(2);
  EXPECT_THAT(wait(), ElementsAre("1: ?")) << "also for the later one";
  answer(1, lost);
  EXPECT_THAT(wait(), IsEmpty()) << "that one was repeated behind the later one";
  step(requests::ReplyHeard{1, question_, wire::Refused{}});
  EXPECT_THAT(wait(), ElementsAre(fmt::format("1: {}", later)));
}

TEST_F(RequestsTest, AServerThatIsSilentForTooLongIsNamed) {
  begin(one_server(hours(1), milliseconds(20)));
  say();
  EXPECT_EQ(asks_->next_due(), now + milliseconds(20));
  now += milliseconds(20);
  wait();
  ASSERT_TRUE(asks_->failure());
  EXPECT_EQ(asks_->failure()->kind, ErrorKind::kUnreachable);
  EXPECT_THAT(asks_->failure()->message, HasSubstr("parameter server s0 at s0"));
}

TEST_F(RequestsTest, AServerThatWasNeverHeardIsLookedForAfterAWhile) {
  begin(one_server(seconds(2)));
  say();
  for (int i = 0; i < 4; ++i) {
    now += seconds(2);
    EXPECT_THAT(wait(), Not(Contains("check s0")));
  }
  now += seconds(2);
  EXPECT_THAT(wait(), Contains("check s0"));
  step(requests::ReachFailed{0, "connection refused"});
  ASSERT_TRUE(asks_->failure());
  EXPECT_THAT(asks_->failure()->message, HasSubstr("connection refused"));
}

TEST_F(RequestsTest, ABackupIsAskedForNothingWhenItsPrimaryIsSilentAndIsTheServerOnceItAnswers) {
  begin(two_processes());
  const Requests::Id id = say();
  show();
  now += Requests::kAgainOfTwo;
  EXPECT_THAT(wait(), ElementsAre("1: ?", "2: ?"));
  EXPECT_THAT(step(requests::ReplyHeard{2, 0, wire::PsPulled{}}), ElementsAre("close 1"));
  EXPECT_THAT(wait(), ElementsAre("2: 1")) << "at once";
  answer(1, id);
  EXPECT_FALSE(asks_->answered(id)) << "the one of before does not count any more";
  answer(2, id);
  EXPECT_TRUE(asks_->answered(id));
}

TEST_F(RequestsTest, ANewerRosterNamesOtherProcesses) {
  begin(two_processes());
  say();
  show();
  wire::PsRoster roster;
  roster.servers = {"s1"};
  roster.others = {"s2"};
  roster.number = 4;
  EXPECT_THAT(step(requests::WaitGoesOn{}), ElementsAre("look"));
  EXPECT_THAT(step(requests::RosterLooked{roster}),
              ElementsAre("close 1", "open 3 to s2", "2: 1", "3: ?"));
  roster.servers = {"s5"};
  roster.others = {};
  EXPECT_THAT(step(requests::RosterLooked{roster}),
              ElementsAre("close 2", "open 4 to s5", "close 3", "4: 1"));
}

// Over tcp a port is used again by the next process, which has another key.
TEST_F(RequestsTest, AnotherProcessAtTheSameEndPointHasALinkOfItsOwn) {
  requests::Start start = two_processes();
  start.roster.keys = {"key of s0"};
  start.roster.other_keys = {"key of s1"};
  wire::PsRoster roster = start.roster;
  begin(std::move(start));
  answer(1, say());
  show();
  roster.other_keys = {"key of the next s1"};
  EXPECT_THAT(step(requests::RosterLooked{roster}), ElementsAre("close 2", "open 3 to s1"));
  EXPECT_THAT(step(requests::RosterLooked{roster}), IsEmpty());

  roster.servers = {"s1"};
  roster.keys = roster.other_keys;
  roster.others = roster.other_keys = {};
  EXPECT_THAT(step(requests::RosterLooked{roster}), ElementsAre("close 1"));
  say();
  EXPECT_THAT(show(), ElementsAre("3: 2"));
  std::vector<std::string> said;
  for (int i = 0; i < 5; ++i) {
    now += seconds(2);
    said = wait();
  }
  EXPECT_THAT(said, ElementsAre("check s1", "3: ?")) << "this process was never heard";

  roster.keys = {"key of a third s1"};
  EXPECT_THAT(step(requests::RosterLooked{roster}), ElementsAre("close 3", "open 4 to s1", "4: 2"))
      << "nor has this one had time";
}

// A request may have waited for the lost server for long when the roster names another one.
TEST_F(RequestsTest, AServerThatIsNamedInPlaceOfALostOneHasTimeToBeReached) {
  wire::PsRoster promoted;
  promoted.servers = {"s1"};
  wire::PsRoster replaced;
  replaced.servers = {"s2"};
  for (const wire::PsRoster& newer : {promoted, replaced}) {
    begin(two_processes());
    say();
    const std::string server = newer.servers[0];
    for (int i = 0; i < 30; ++i) {
      now += seconds(2);
      wait();
    }
    EXPECT_THAT(step(requests::RosterLooked{newer}), Not(Contains("check " + server)));
    for (int i = 0; i < 4; ++i) {
      now += seconds(2);
      EXPECT_THAT(wait(), Not(Contains("check " + server))) << i;
    }
    now += seconds(2);
    EXPECT_THAT(wait(), Contains("check " + server));
  }
}

TEST_F(RequestsTest, ARefusalIsAnErrorThatSaysWhatMayBeDone) {
  begin(one_server(hours(1)));
  const Requests::Id over = say();
  const Requests::Id wrong = say();
  const Requests::Id unread = say();
  step(
      requests::ReplyHeard{1, over, wire::Refused{wire::RefusalCode::kStale, "the group is over"}});
  step(requests::ReplyHeard{1, wrong, wire::Refused{wire::RefusalCode::kInvalid, "no such table"}});
  step(requests::ReplyHeard{1, unread, wire::Refused{wire::RefusalCode::kIo, "stale handle"}});
  EXPECT_EQ(asks_->take<wire::PsIdled>(over).error().kind, ErrorKind::kAborted);
  EXPECT_EQ(asks_->take<wire::PsIdled>(wrong).error().kind, ErrorKind::kRefused);
  EXPECT_EQ(asks_->take<wire::PsIdled>(unread).error().kind, ErrorKind::kPeerIo);
  const Requests::Id damaged = say();
  const Requests::Id senseless = say();
  step(requests::ReplyHeard{1, damaged, wire::Refused{wire::RefusalCode::kCorrupt, "checksum"}});
  step(requests::ReplyHeard{1, senseless, wire::PsPulled{}});
  EXPECT_EQ(asks_->take<wire::PsIdled>(damaged).error().kind, ErrorKind::kCorrupt);
  EXPECT_EQ(asks_->take<wire::PsIdled>(senseless).error().kind, ErrorKind::kRefused)
      << "that is not about the checkpoint";
}

}  // namespace
}  // namespace antdt::ps::requests_test
