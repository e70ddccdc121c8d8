// Links to agents that the test plays. Messages travel in real time; the clock advances only when
// the test says so.
#include "jobd/links/agent_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/os/fs.h"
#include "core/wire/packet.h"

namespace antdt::jobd {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// An agent that stores the kinds of the messages it receives.
class PlayedAgent {
 public:
  PlayedAgent(EventLoop& loop, transport::Context& context, const std::string& path)
      : loop_(loop), socket_(transport::Socket::bind_ipc(context, path).value()) {
    loop_.watch_socket(socket_, [this] {
      while (const auto packet = socket_.receive()) {
        peer_ = packet->peer;
        const auto envelope = wire::open_envelope(*packet);
        ASSERT_TRUE(envelope);
        EXPECT_EQ(envelope->job, "ctr");
        heard.push_back(envelope->kind);
      }
    });
  }
  ~PlayedAgent() { loop_.unwatch_socket(socket_); }
  PlayedAgent(const PlayedAgent&) = delete;
  PlayedAgent& operator=(const PlayedAgent&) = delete;

  template <class T>
  void say(const T& message, wire::Envelope envelope = {}) {
    wire::Packet packet = wire::make_packet(std::move(envelope), message);
    packet.peer = peer_;
    ASSERT_EQ(socket_.send(packet), transport::SendOutcome::kSent);
  }
  void say_nonsense() {
    ASSERT_EQ(socket_.send({peer_, "", "\xff\xff", "\xff"}), transport::SendOutcome::kSent);
  }

  std::vector<std::string> heard;

 private:
  EventLoop& loop_;
  transport::Socket socket_;
  std::string peer_;
};

class AgentLinksTest : public testing::Test {
 protected:
  static constexpr Duration kConnect = ctl::AgentContacts::kConnectDeadline;
  static constexpr Duration kLostAfter = seconds(10);

  AgentLinksTest() : pump_(eventfd(1, EFD_CLOEXEC)) {
    // Always readable, so the loop never waits for the fake clock, which does not advance.
    loop_.watch_fd(pump_, [this] { look(); });
    links_ = std::make_unique<AgentLinks>(
        loop_, "ctr", Incarnation{3}, kLostAfter,
        AgentLinks::Handlers{
            [this](const std::string& endpoint, const wire::AgentWelcome& welcome) {
              events.push_back(endpoint + " welcomes as " + welcome.host);
            },
            [this](const std::string& endpoint, const std::string& reason) {
              events.push_back(endpoint + " lost: " + reason);
            },
            [this](const std::string& endpoint, const wire::Envelope& envelope, std::string_view) {
              events.push_back(endpoint + " says " + envelope.kind);
            }});
  }
  ~AgentLinksTest() override {
    agents_.clear();
    close(pump_);
  }

  PlayedAgent& add(const std::string& endpoint) {
    const std::string path = directory_ / (endpoint + ".sock");
    agents_.push_back(std::make_unique<PlayedAgent>(loop_, context_, path));
    links_->add(endpoint, transport::Socket::connect_ipc(context_, path).value());
    return *agents_.back();
  }
  // An agent that has answered.
  PlayedAgent& add_welcome(const std::string& endpoint) {
    PlayedAgent& agent = add(endpoint);
    await([&] { return agent.heard.size() >= 2; }, "the first messages of a link");
    welcome(agent, endpoint);
    await([&] { return !events.empty(); }, "the welcome");
    agent.heard.clear();
    events.clear();
    return agent;
  }
  static void welcome(PlayedAgent& agent, const std::string& host) {
    wire::AgentWelcome message;
    message.host = host;
    agent.say(message);
  }
  // Time passes, and what is due meanwhile is done.
  void pass(Duration time, Duration step = seconds(1)) {
    for (; time > Duration::zero(); time -= step) {
      clock_.advance(std::min(step, time));
      turns(2);
    }
  }
  void turns(int count) {
    await([&] { return count-- <= 0; }, "turns of the loop");
  }
  void await(std::function<bool()> condition, const char* what) {
    condition_ = std::move(condition);
    const SteadyClock real;
    const MonoTime deadline = real.now() + seconds(20);
    give_up_ = [&real, deadline] { return real.now() > deadline; };
    gave_up_ = false;
    loop_.run();
    ASSERT_FALSE(gave_up_) << "waited for " << what;
  }

  std::vector<std::string> events;

  TempDir directory_;
  ManualClock clock_;
  EventLoop loop_{clock_};
  transport::Context context_;
  std::unique_ptr<AgentLinks> links_;

 private:
  void look() {
    gave_up_ = give_up_();
    if (gave_up_ || condition_()) loop_.stop();
  }

  int pump_;
  std::function<bool()> condition_, give_up_;
  bool gave_up_ = false;
  std::vector<std::unique_ptr<PlayedAgent>> agents_;
};

TEST_F(AgentLinksTest, AttachesEverySecondUntilTheAgentAnswersAndThenIsAlive) {
  PlayedAgent& agent = add("a");
  await([&] { return agent.heard.size() >= 2; }, "the first messages");
  EXPECT_THAT(agent.heard, ElementsAre("hello", "attach"));
  EXPECT_FALSE(links_->contacts().all_welcome());
  pass(seconds(1));
  await([&] { return agent.heard.size() >= 4; }, "the second try");
  EXPECT_THAT(agent.heard, ElementsAre("hello", "attach", "hello", "attach"));
  welcome(agent, "node-a");
  await([&] { return !events.empty(); }, "the welcome");
  EXPECT_THAT(events, ElementsAre("a welcomes as node-a"));
  EXPECT_TRUE(links_->contacts().all_welcome());
  agent.heard.clear();
  pass(seconds(2));
  await([&] { return agent.heard.size() >= 2; }, "heartbeats");
  EXPECT_THAT(agent.heard, ElementsAre("heartbeat", "heartbeat"));
}

TEST_F(AgentLinksTest, AWelcomeThatIsSaidTwiceCountsOnce) {
  PlayedAgent& agent = add_welcome("a");
  welcome(agent, "a");
  agent.say(wire::Done{});
  await([&] { return !events.empty(); }, "what was said behind it");
  EXPECT_THAT(events, ElementsAre("a says done"));
}

TEST_F(AgentLinksTest, AHostThatIsSilentIsReportedOnceAndWelcomedAnewWhenItIsBack) {
  PlayedAgent& agent = add_welcome("a");
  pass(kLostAfter);
  EXPECT_THAT(events, IsEmpty()) << "not before the time is over";
  pass(seconds(1));
  ASSERT_EQ(events.size(), 1U);
  EXPECT_THAT(events[0], HasSubstr("a lost: nothing was heard from it for 11 s"));
  EXPECT_FALSE(links_->contacts().all_welcome());
  pass(seconds(60));
  EXPECT_EQ(events.size(), 1U) << "it is said once";
  await([&] { return testing::Value(agent.heard, testing::Contains("attach")); },
        "a link that attaches again");
  welcome(agent, "a");
  await([&] { return events.size() > 1; }, "the second welcome");
  EXPECT_EQ(events[1], "a welcomes as a");
  // The agent is watched as before.
  pass(kLostAfter + seconds(1));
  EXPECT_EQ(events.size(), 3U);
}

TEST_F(AgentLinksTest, AnyMessageFromAHostShowsThatItIsAlive) {
  PlayedAgent& agent = add_welcome("a");
  for (int i = 0; i < 4; ++i) {
    pass(kLostAfter - seconds(1));
    EXPECT_THAT(links_->contacts().silent(loop_.now()), ElementsAre("a"));
    agent.say(wire::Heartbeat{});
    await([&] { return links_->contacts().silent(loop_.now()).empty(); }, "the heartbeat");
  }
  EXPECT_THAT(events, IsEmpty());
}

TEST_F(AgentLinksTest, OneSilentHostSaysNothingOfAnother) {
  PlayedAgent& a = add_welcome("a");
  static_cast<void>(add_welcome("b"));
  pass(seconds(6));
  a.say(wire::Heartbeat{});
  await([&] { return links_->contacts().silent(loop_.now()).size() == 1; }, "the heartbeat");
  EXPECT_THAT(links_->contacts().silent(loop_.now()), ElementsAre("b"));
  pass(seconds(5));
  ASSERT_EQ(events.size(), 1U);
  EXPECT_THAT(events[0], testing::StartsWith("b lost: "));
}

TEST_F(AgentLinksTest, AnAgentThatNeverAnswersHasTheTimeToConnect) {
  static_cast<void>(add("a"));
  pass(kConnect);
  EXPECT_THAT(events, IsEmpty());
  pass(seconds(1));
  ASSERT_EQ(events.size(), 1U);
  EXPECT_THAT(events[0], HasSubstr("is antdtd running there"));
}

TEST_F(AgentLinksTest, ARefusalBeforeTheWelcomeIsALostHostWithItsReason) {
  PlayedAgent& agent = add("a");
  await([&] { return agent.heard.size() >= 2; }, "the first messages");
  agent.say(wire::Refused{wire::RefusalCode::kVersion, "it speaks versions 1 to 2 only"});
  await([&] { return !events.empty(); }, "the refusal");
  EXPECT_THAT(events, ElementsAre("a lost: it refused: it speaks versions 1 to 2 only"));
}

TEST_F(AgentLinksTest, AnAgentThatWasStartedAnewIsAttachedToAgainAndNotLost) {
  PlayedAgent& agent = add_welcome("a");
  agent.say(wire::Refused{wire::RefusalCode::kUnknown, "it does not know this job"});
  await([&] { return !links_->contacts().all_welcome(); }, "the refusal");
  EXPECT_THAT(events, IsEmpty());
  pass(seconds(1));
  await([&] { return testing::Value(agent.heard, testing::Contains("attach")); }, "an attach");
  welcome(agent, "a");
  await([&] { return !events.empty(); }, "the welcome");
  EXPECT_THAT(events, ElementsAre("a welcomes as a"));
}

TEST_F(AgentLinksTest, MessagesAboutAWorkerDoNotChangeTheLink) {
  PlayedAgent& agent = add_welcome("a");
  wire::Envelope envelope;
  envelope.worker = WorkerId{'w', 0};
  envelope.attempt = Attempt{1};
  agent.say(wire::Refused{wire::RefusalCode::kFull, "no cores are free"}, envelope);
  await([&] { return !events.empty(); }, "the refusal");
  EXPECT_THAT(events, ElementsAre("a says refused"));
  EXPECT_TRUE(links_->contacts().all_welcome());
}

TEST_F(AgentLinksTest, NonsenseIsDroppedAndWhatFollowsIsHeard) {
  PlayedAgent& agent = add_welcome("a");
  agent.say_nonsense();
  agent.say(wire::Done{});
  await([&] { return !events.empty(); }, "what was said behind it");
  EXPECT_THAT(events, ElementsAre("a says done"));
}

TEST_F(AgentLinksTest, AllAreToldThatTheJobIsOverAndNothingGoesToAnUnknownHost) {
  PlayedAgent& a = add_welcome("a");
  PlayedAgent& b = add_welcome("b");
  EXPECT_THAT(links_->endpoints(), ElementsAre("a", "b"));
  EXPECT_FALSE(links_->send("c", wire::make_packet(wire::Done{})));
  links_->detach();
  await([&] { return !a.heard.empty() && !b.heard.empty(); }, "the end");
  EXPECT_THAT(a.heard, ElementsAre("detach"));
  EXPECT_THAT(b.heard, ElementsAre("detach"));
}

TEST_F(AgentLinksTest, AnAgentThatHasForgottenTheJobIsNotAttachedToAgainAfterItsEnd) {
  PlayedAgent& a = add_welcome("a");
  links_->detach();
  await([&] { return !a.heard.empty(); }, "the end");
  a.say(wire::Refused{wire::RefusalCode::kUnknown, "it does not know this job"});
  await([&] { return !links_->contacts().welcome("a"); }, "the refusal");
  pass(kLostAfter + seconds(1));
  ASSERT_TRUE(links_->send("a", wire::make_packet(
                                    [] {
                                      wire::Envelope envelope;
                                      envelope.job = "ctr";
                                      return envelope;
                                    }(),
                                    wire::Done{})));
  await([&] { return a.heard.back() == "done"; }, "what was sent last");
  EXPECT_THAT(a.heard, ElementsAre("detach", "done"));
  EXPECT_THAT(events, IsEmpty()) << "its host is not lost to a job that is over";
}

}  // namespace
}  // namespace antdt::jobd
