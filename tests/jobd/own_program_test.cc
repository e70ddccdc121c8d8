// The user's programs that decide, correctly and wrongly, and their effect on the job daemon's
// loop.
#include "jobd/programs/own_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "core/os/fs.h"
#include "core/os/process.h"
#include "core/os/rotating_file.h"
#include "jobd/programs/child_program.h"

namespace antdt::jobd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

class OwnProgramTest : public testing::Test {
 protected:
  OwnProgramTest() {
    ignore_sigpipe();  // as every program of AntDT does
    view_.plan = PlanVersion{3};
    view_.rules.global_batch = 64;
    for (std::uint32_t i = 0; i < 2; ++i) {
      ctl::WorkerView w;
      w.member = {{'w', i}, Attempt{1}};
      view_.workers.push_back(w);
    }
  }
  // Runs `script` with a shell, and offers views until `done` says so.
  template <class Done>
  void run(const std::string& script, Done&& done) {
    OwnProgram program(
        loop_,
        {{"/bin/sh", "-c", script},
         directory_.path(),
         [this](const std::string& words) { ASSERT_TRUE(file_.append(words)); }},
        [this](ctl::Decision decision, PlanVersion plan) {
          EXPECT_EQ(plan, PlanVersion{3});
          decisions_.push_back(std::move(decision));
        },
        [this](const std::string& text) { news_ += text + "\n"; });
    const std::function<void()> turn = [&] {
      program.tick();
      program.offer(view_, 1);
      trouble_ = program.trouble();
      if (done()) return loop_.stop();
      if (loop_.now() >= deadline_) {
        ADD_FAILURE() << "nothing came of it; news: " << news_;
        return loop_.stop();
      }
      loop_.call_after(milliseconds(20), turn);
    };
    deadline_ = loop_.now() + seconds(60);
    loop_.call_after(milliseconds(0), turn);
    loop_.run();
  }
  std::string news_of(const std::string& script) {
    run(script, [this] { return !news_.empty(); });
    EXPECT_NE(trouble_, "");
    return news_;
  }

  TempDir directory_;
  std::string log_ = directory_ / "solution.log";
  RotatingFile file_{log_, OwnProgram::kLogBytes};
  SteadyClock clock_;
  EventLoop loop_{clock_};
  MonoTime deadline_{};
  ctl::ClusterView view_;
  std::vector<ctl::Decision> decisions_;
  std::string news_;
  std::string trouble_;
};

constexpr const char* kEvicts =
    R"(n=0; while read view; do n=$((n+1)); echo "heard $n" >&2;
       echo "{\"view\":$n,\"reason\":\"r$n\",\"actions\":[{\"kind\":\"evict\",\"worker\":\"w1\"}]}";
       done)";

TEST_F(OwnProgramTest, EachViewHasItsAnswer) {
  run(kEvicts, [this] { return decisions_.size() >= 3; });
  ASSERT_GE(decisions_.size(), 3U);
  EXPECT_EQ(decisions_[2].reason, "r3");
  EXPECT_EQ(news_, "");
  EXPECT_EQ(trouble_, "");
  EXPECT_THAT(read_file(log_).value_or(""), HasSubstr("heard 1\n"));
}

TEST_F(OwnProgramTest, AViewThatIsLargerThanAPipeArrives) {
  for (std::uint32_t i = 2; i < 4000; ++i) {
    ctl::WorkerView w;
    w.member = {{'w', i}, Attempt{1}};
    view_.workers.push_back(w);
  }
  run(R"(head -n 1 | wc -c >&2; echo '{"view":1,"actions":[{"kind":"resize","count":3}]}'; cat)",
      [this] { return !decisions_.empty(); });
  EXPECT_GT(std::stoul(read_file(log_).value_or("0")), 1'000'000UL);
}

TEST_F(OwnProgramTest, AMissingProgramIsReported) {
  EXPECT_THAT(news_of("exec /nothing/of/the/kind"), HasSubstr("ended with code 127"));
}

TEST_F(OwnProgramTest, AProgramThatEndsIsReportedWithItsLastLines) {
  EXPECT_THAT(news_of("echo NameError: speeds >&2; exit 3"),
              HasSubstr("ended with code 3 (NameError: speeds)"));
}

TEST_F(OwnProgramTest, AProgramThatWritesNonsenseIsReported) {
  EXPECT_THAT(news_of("read view; echo hello; cat"),
              HasSubstr("no JSON object on one line: hello"));
}

TEST_F(OwnProgramTest, AProgramThatClosesItsOutputIsReported) {
  EXPECT_THAT(news_of("exec >&-; cat >/dev/null"), HasSubstr("has closed its standard output"));
}

TEST_F(OwnProgramTest, OneThatSaysTooMuchIsEnded) {
  EXPECT_THAT(news_of("while :; do printf xxxxxxxxxxxxxxxx; done"), HasSubstr("said more than"));
}

TEST_F(OwnProgramTest, OneThatFloodsItsStandardErrorFillsNoDisk) {
  run("read view; yes complaint >&2", [this] {
    std::error_code none;
    return std::filesystem::exists(log_ + ".1", none);
  });
  EXPECT_LE(std::filesystem::file_size(log_ + ".1"), OwnProgram::kLogBytes);
}

TEST(ChildProgramTest, ItsChildrenEndWithIt) {
  auto child = ChildProgram::start({"/bin/sh", "-c", "sleep 1000 & echo $!"}, "");
  ASSERT_TRUE(child) << child.error().message;
  std::string said;
  const auto deadline = std::chrono::steady_clock::now() + seconds(60);
  const auto wait_for = [&](auto&& condition) {
    while (!condition() && std::chrono::steady_clock::now() < deadline) usleep(1000);
    return condition();
  };
  ASSERT_TRUE(wait_for([&] {
    said += child->read_output(100).value_or("");
    return said.ends_with('\n') && child->ended();
  }));
  EXPECT_EQ(child->ended(), "ended with code 0");
  const auto gone = [path = "/proc/" + said.substr(0, said.size() - 1) + "/stat"] {
    const auto stat = read_file(path);
    return !stat || stat->find(") Z ") != std::string::npos;
  };
  EXPECT_TRUE(wait_for(gone)) << said;
}

TEST_F(OwnProgramTest, OneThatEndedIsStartedAgain) {
  run(std::string("test -e began || { touch began; exit 1; }; ") + kEvicts,
      [this] { return !decisions_.empty(); });
  EXPECT_THAT(news_, HasSubstr("ended with code 1"));
  EXPECT_EQ(trouble_, "");
}

}  // namespace
}  // namespace antdt::jobd
