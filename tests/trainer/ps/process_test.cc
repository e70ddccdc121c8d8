// Tests of a parameter server's process: its messages to its agent, the group that it serves, and
// its links.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/overloaded.h"
#include "trainer/ps/process/linked_server.h"
#include "trainer/ps/process/server_process.h"

namespace antdt::ps::process_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// ------------------------------------------------------------------------- process

std::string show(const process::Effect& effect) {
  return std::visit(
      Overloaded{
          [](const process::SayHello&) { return std::string("hello"); },
          [](const process::TellOperator& e) { return e.text; },
          [](const process::SayJoin& e) { return "join at " + e.join.endpoint; },
          [](const process::OpenEndPoint&) { return std::string("open its end point"); },
          [](const process::BeginGroup& e) {
            return fmt::format("begin g{}{}", e.start.node.generation,
                               e.keep ? " with its rows" : "");
          },
          [](const process::OrderGroup& e) { return fmt::format("order #{}", e.serve.number); },
          [](const process::OrderSlices& e) { return fmt::format("write {}", e.cut.number); },
          [](const process::AnswerGroupOrder& e) {
            return fmt::format("serves #{} of g{}", e.serving.number, e.generation);
          },
          [](const process::RefuseGroupOrder& e) { return "refuse: " + e.refused.reason; },
          [](const process::AnswerCutOrder& e) { return fmt::format("wrote {}", e.saved.number); },
          [](const process::SayReport& e) {
            const wire::Report& r = e.report;
            std::string shown = fmt::format("report of {}", r.step);
            if (!r.io.empty()) {
              shown += fmt::format(", {} {}: {} of {}", r.io, r.io_path, r.io_done_bytes,
                                   r.io_total_bytes);
            }
            return shown;
          },
          [](const process::SayStats&) { return std::string("stats"); },
          [](const process::EndProcess& e) { return fmt::format("end {}", e.code); },
          [](const process::GiveUpProcess& e) { return "give up: " + e.error.message; },
      },
      effect);
}

class ServerProcessTest : public ::testing::Test {
 protected:
  std::vector<std::string> step(const process::Input& input) {
    process::Effects effects;
    server.step(input, now, effects);
    std::vector<std::string> shown;
    for (const process::Effect& effect : effects) shown.push_back(show(effect));
    return shown;
  }
  void greet() {
    step(process::WelcomeHeard{wire::kMaxVersion});
    step(process::EndPointOpened{"/run/s0"});
  }
  static wire::PsServe order(std::uint64_t number, bool keep = false) {
    wire::PsServe serve;
    serve.number = number;
    serve.servers = {"/run/s0", "/run/s1"};
    serve.sync = SyncStrategy::kPsBsp;
    serve.keep = keep;
    return serve;
  }

  MonoTime now{};
  ServerProcess server{{WorkerId{'s', 0}, Attempt{1}}, "/run/agent", now};
};

TEST_F(ServerProcessTest, SaysHelloUntilItIsWelcomeAndJoinsUntilItServes) {
  EXPECT_THAT(step(process::TimePassed{}), ElementsAre("hello"));
  EXPECT_THAT(step(process::WelcomeHeard{wire::kMaxVersion}), ElementsAre("open its end point"));
  EXPECT_THAT(step(process::EndPointOpened{"/run/s0"}), ElementsAre("join at /run/s0"));
  EXPECT_THAT(step(process::TimePassed{}), ElementsAre("join at /run/s0"));
  EXPECT_THAT(step(process::GroupOrderHeard{Generation{1}, order(1)}),
              ElementsAre("begin g1", "order #1"));
  EXPECT_THAT(step(process::OrderTaken{{1, {}}}), ElementsAre("serves #1 of g1"));
  EXPECT_THAT(step(process::TimePassed{}), IsEmpty());
  EXPECT_THAT(step(process::PulsePassed{7}), ElementsAre("report of 7", "stats"));
  EXPECT_THAT(step(process::PulsePassed{8, CutProgress{"/run/c5", 3, 9}}),
              ElementsAre("report of 8, writing the checkpoint /run/c5: 3 of 9", "stats"))
      << "so that whoever waits for it knows that it goes on";
}

TEST_F(ServerProcessTest, WithoutAnyAgentItTellsAnOperatorNowAndThenAndWaitsOn) {
  now += ServerProcess::kComplainAfter;
  EXPECT_THAT(step(process::TimePassed{}),
              ElementsAre(HasSubstr("no agent answered on /run/agent for 10 s"), "hello"));
  now += ServerProcess::kComplainAgain / 2;
  EXPECT_THAT(step(process::TimePassed{}), ElementsAre("hello"));
  now += std::chrono::hours(24);
  EXPECT_THAT(step(process::TimePassed{}), ElementsAre(HasSubstr("for 86440 s"), "hello"));
  EXPECT_THAT(step(process::WelcomeHeard{wire::kMaxVersion}), ElementsAre("open its end point"));
}

TEST_F(ServerProcessTest, AnAgentOfAnotherReleaseIsNoAgent) {
  EXPECT_THAT(step(process::WelcomeHeard{wire::kMaxVersion + 1}),
              ElementsAre(HasSubstr("install the same release")));
}

TEST_F(ServerProcessTest, AnAgentThatBeganAnewIsGreetedAnewAndTheGroupGoesOn) {
  greet();
  step(process::GroupOrderHeard{Generation{1}, order(1)});
  EXPECT_THAT(step(process::RefusalHeard{{wire::RefusalCode::kUnknown, "who is it?"}}),
              ElementsAre("hello"));
  now += ServerProcess::kComplainAfter;
  EXPECT_THAT(step(process::TimePassed{}), ElementsAre(HasSubstr("no agent answered"), "hello"))
      << "it waits for as long as need be";
  EXPECT_THAT(step(process::WelcomeHeard{wire::kMaxVersion}), IsEmpty());
  EXPECT_THAT(step(process::GroupOrderHeard{Generation{1}, order(2)}), ElementsAre("order #2"));
}

TEST_F(ServerProcessTest, OrdersOfALaterGenerationBeginAnotherGroupAndThoseOfAnEarlierOneNothing) {
  greet();
  step(process::GroupOrderHeard{Generation{2}, order(1)});
  EXPECT_THAT(step(process::GroupOrderHeard{Generation{1}, order(9)}), IsEmpty());
  EXPECT_THAT(step(process::GroupOrderHeard{Generation{3}, order(1, true)}),
              ElementsAre("begin g3 with its rows", "order #1"));
  EXPECT_THAT(step(process::GroupOrderHeard{Generation{3}, order(4)}), ElementsAre("order #4"));
  EXPECT_THAT(step(process::GroupOrderHeard{Generation{3}, order(3)}), ElementsAre("order #4"))
      << "the newest counts";
}

// It may have kept rows for this group. The job daemon hears only from its end that they are gone.
TEST_F(ServerProcessTest, AGroupThatCannotBeginEndsTheProcessWithTheReason) {
  greet();
  step(process::GroupOrderHeard{Generation{1}, order(1)});
  step(process::GroupOrderHeard{Generation{2}, order(1, true)});
  EXPECT_THAT(step(process::GroupFailed{{ErrorKind::kUsage, "it has told no key"}}),
              ElementsAre("give up: it cannot begin to serve generation 2: it has told no key"));
  EXPECT_TRUE(server.ended());
  EXPECT_THAT(step(process::GroupOrderHeard{Generation{2}, order(1, true)}), IsEmpty());
}

TEST_F(ServerProcessTest, AnOrderThatPutsItAtAnotherPlaceIsRefusedAndThePresentGroupStays) {
  greet();
  step(process::GroupOrderHeard{Generation{1}, order(1)});
  wire::PsServe elsewhere = order(1);
  elsewhere.index = 1;
  EXPECT_THAT(
      step(process::GroupOrderHeard{Generation{2}, elsewhere}),
      ElementsAre(HasSubstr("refuse: s0 is at /run/s0, which is not end point 1 of the 2")));
  EXPECT_THAT(step(process::GroupOrderHeard{Generation{1}, order(2)}), ElementsAre("order #2"));
}

TEST_F(ServerProcessTest, ACheckpointThatIsOrderedTwiceIsWrittenOnce) {
  greet();
  EXPECT_THAT(step(process::CutOrderHeard{Generation{1}, {5, "c5"}}), IsEmpty()) << "no group yet";
  step(process::GroupOrderHeard{Generation{1}, order(1)});
  EXPECT_THAT(step(process::CutOrderHeard{Generation{1}, {5, "c5"}}), ElementsAre("write 5"));
  EXPECT_THAT(step(process::CutOrderHeard{Generation{1}, {5, "c5"}}), IsEmpty());
  wire::PsSaved saved;
  saved.number = 5;
  EXPECT_THAT(step(process::CutTaken{saved}), ElementsAre("stats", "wrote 5"));
  EXPECT_THAT(step(process::CutOrderHeard{Generation{1}, {5, "c5"}}), ElementsAre("write 5"))
      << "the answer may have been lost";
}

TEST_F(ServerProcessTest, ABackupWritesACheckpointWhenItIsOrderedAgainAfterItsPromotion) {
  greet();
  wire::PsServe backup = order(1);
  backup.replica = wire::ReplicaRole::kBackup;
  backup.view = 1;
  backup.servers = {"/run/s2", "/run/s1"};
  backup.other = "/run/s2";
  step(process::GroupOrderHeard{Generation{1}, backup});
  EXPECT_THAT(step(process::CutOrderHeard{Generation{1}, {5, "c5"}}), IsEmpty())
      << "the order to be the primary is still on its way";
  wire::PsServe promoted = order(2);
  promoted.view = 2;
  step(process::GroupOrderHeard{Generation{1}, promoted});
  EXPECT_THAT(step(process::CutOrderHeard{Generation{1}, {5, "c5"}}), ElementsAre("write 5"));
}

TEST_F(ServerProcessTest, EndsAsItIsTold) {
  for (const auto& [input, end] : std::vector<std::pair<process::Input, std::string>>{
           {process::LeaveHeard{3}, "end 3"},
           {process::StopAsked{}, "end 75"},
           {process::BackupBroken{"Stale file handle", true}, "end 76"},
           {process::BackupBroken{"no slice"},
            "give up: it cannot be the backup of its server: no slice"},
           {process::RefusalHeard{{wire::RefusalCode::kStale, "another attempt runs"}}, "end 0"},
           {process::RefusalHeard{{wire::RefusalCode::kInvalid, "no such job"}},
            "give up: no such job"}}) {
    server = ServerProcess({WorkerId{'s', 0}, Attempt{1}}, "/run/agent", now);
    greet();
    EXPECT_THAT(step(input), ElementsAre(end));
  }
}

// --------------------------------------------------------------------------- links

class LinkedServerTest : public ::testing::Test {
 protected:
  static linked::Start start(replica::Role role, std::uint64_t view) {
    linked::Start start;
    start.node.servers = 2;
    start.role = role;
    start.view = view;
    start.endpoints = {"/run/s0", "/run/s1"};
    if (role == replica::Role::kPrimary) start.backup = "/run/s2";
    return start;
  }
  static std::vector<std::string> links(const linked::Effects& effects) {
    std::vector<std::string> shown;
    for (const linked::Effect& effect : effects) {
      if (const auto* open = std::get_if<linked::OpenLink>(&effect)) {
        shown.push_back(fmt::format("s{} at {}", open->server, open->endpoint));
      } else if (const auto* backup = std::get_if<linked::OpenBackupLink>(&effect)) {
        shown.push_back("backup at " + backup->endpoint);
      } else if (std::holds_alternative<linked::CloseBackupLink>(effect)) {
        shown.emplace_back("no backup");
      } else if (const auto* broken = std::get_if<replica::BreakUp>(&effect)) {
        shown.push_back("broken: " + broken->error);
      }
    }
    return shown;
  }
  static linked::Effects step(LinkedServer& server, const linked::Input& input) {
    linked::Effects effects;
    server.step(input, effects);
    return effects;
  }
  static std::vector<std::string> begins(LinkedServer& server) {
    linked::Effects effects;
    server.begin(effects);
    return links(effects);
  }
  static linked::GroupOrdered order(std::uint64_t number, std::uint64_t view,
                                    const std::string& first, const std::string& second) {
    wire::PsServe serve;
    serve.number = number;
    serve.view = view;
    serve.servers = {first, second};
    return {serve};
  }
};

TEST_F(LinkedServerTest, APrimaryIsLinkedToTheOthersAndToItsBackup) {
  LinkedServer primary(start(replica::Role::kPrimary, 1));
  EXPECT_THAT(begins(primary), ElementsAre("s1 at /run/s1", "backup at /run/s2"));
  EXPECT_THAT(links(step(primary, order(2, 1, "/run/s0", "/run/s1"))), IsEmpty()) << "as it was";
  EXPECT_THAT(links(step(primary, order(3, 1, "/run/s0", "/run/s3"))),
              ElementsAre("s1 at /run/s3"));
  EXPECT_THAT(links(step(primary, order(4, 2, "/run/s0", "/run/s3"))), ElementsAre("no backup"));
}

TEST_F(LinkedServerTest, ABackupIsLinkedToNobodyUntilItIsPromoted) {
  LinkedServer backup(start(replica::Role::kBackup, 1));
  EXPECT_THAT(begins(backup), IsEmpty());
  const linked::Effects told = step(backup, order(2, 1, "/run/s0", "/run/s1"));
  EXPECT_THAT(links(told), IsEmpty());
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(std::get<node::AnswerServe>(told[0]).serving.number, 2U);
  EXPECT_THAT(links(step(backup, order(3, 2, "/run/s2", "/run/s1"))), ElementsAre("s1 at /run/s1"));
  EXPECT_TRUE(backup.speaks());
}

// Over tcp a port is used again by the next process, which has another key.
TEST_F(LinkedServerTest, AnotherProcessAtTheSameEndPointGetsALinkOfItsOwn) {
  linked::Start with_keys = start(replica::Role::kAlone, 1);
  with_keys.keys = {"key of s0", "key of s1"};
  LinkedServer alone(with_keys);
  EXPECT_THAT(begins(alone), ElementsAre("s1 at /run/s1"));
  linked::GroupOrdered now = order(2, 1, "/run/s0", "/run/s1");
  now.serve.keys = {{WorkerId{'s', 0}, Attempt{1}, "key of s0"},
                    {WorkerId{'s', 1}, Attempt{1}, "key of s1"}};
  EXPECT_THAT(links(step(alone, now)), IsEmpty());
  now.serve.number = 3;
  now.serve.keys[1] = {WorkerId{'s', 1}, Attempt{2}, "key of the next s1"};
  EXPECT_THAT(links(step(alone, now)), ElementsAre("s1 at /run/s1"));
}

TEST_F(LinkedServerTest, AServingProcessCannotBeginAnewAsABackup) {
  LinkedServer alone(start(replica::Role::kAlone, 1));
  begins(alone);
  linked::GroupOrdered backup = order(2, 2, "/run/s0", "/run/s1");
  backup.serve.replica = wire::ReplicaRole::kBackup;
  EXPECT_THAT(links(step(alone, backup)), ElementsAre(HasSubstr("it is told to begin anew")));
}

TEST_F(LinkedServerTest, AnOrderThatDoesNotSayWhereAllServersAreChangesNoLink) {
  LinkedServer alone(start(replica::Role::kAlone, 0));
  EXPECT_THAT(begins(alone), ElementsAre("s1 at /run/s1"));
  linked::GroupOrdered nowhere = order(2, 0, "", "");
  nowhere.serve.servers.clear();
  EXPECT_THAT(links(step(alone, nowhere)), IsEmpty());
}

TEST_F(LinkedServerTest, ALaterCheckpointEndsTheWritingOfTheOneBefore) {
  linked::Start one = start(replica::Role::kAlone, 0);
  one.node.servers = 1;
  one.endpoints = {"/run/s0"};
  one.node.workers = {{WorkerId{'w', 0}, Attempt{1}}};
  LinkedServer server(one);
  begins(server);
  const Asker worker{"link", {WorkerId{'w', 0}, Attempt{1}}, 1};
  const wire::PsOpen tables{7, {{"t", 1, "sum", 0, 0, 0, "zero", 0}}};
  step(server, linked::of_node(node::RequestHeard{worker, Generation{1}, tables}));
  const auto begin = [&](std::uint64_t number) {
    linked::Effects all = step(server, linked::of_node(node::SlicesOrdered{{number, "c"}}));
    linked::Effects then = step(server, linked::of_node(node::WritingBegun{number, 1, {}}));
    all.insert(all.end(), then.begin(), then.end());
    return all;
  };
  const auto count = [](const linked::Effects& effects, auto is) {
    return std::ranges::count_if(effects, is);
  };
  const auto stops = [](const linked::Effect& e) {
    return std::holds_alternative<linked::StopWriting>(e);
  };
  EXPECT_EQ(count(begin(1), stops), 0);
  const linked::Effects second = begin(2);
  EXPECT_EQ(count(second, stops), 1);
  const auto first_failed = [](const linked::Effect& e) {
    const auto* answer = std::get_if<node::AnswerCut>(&e);
    return answer != nullptr && answer->saved.number == 1 && !answer->saved.error.empty();
  };
  EXPECT_EQ(count(second, first_failed), 1);
  const auto late = step(server, linked::of_node(node::SlicesWritten{1, {}, {}}));
  EXPECT_THAT(late, IsEmpty()) << "it was answered for";
  const auto written = step(server, linked::of_node(node::SlicesWritten{2, {}, {}}));
  ASSERT_EQ(written.size(), 1U);
  EXPECT_EQ(std::get<node::AnswerCut>(written[0]).saved.error, "");
}

}  // namespace
}  // namespace antdt::ps::process_test
