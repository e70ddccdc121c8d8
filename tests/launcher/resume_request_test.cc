#include "launcher/start/resume_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "core/os/fs.h"

namespace antdt::launcher {
namespace {

using testing::HasSubstr;

class ResumeRequestTest : public testing::Test {
 protected:
  static ResumeRequest asked_by(const std::string& who, bool from_checkpoint) {
    ResumeRequest request;
    request.who = who;
    request.from_checkpoint = from_checkpoint;
    return request;
  }
  TempDir run_;
  std::string path_ = run_ / "resume.request";
};

TEST_F(ResumeRequestTest, ComesBackAsItWasWritten) {
  for (const bool from_checkpoint : {false, true}) {
    ASSERT_TRUE(write_resume_request(run_.path(), asked_by("ann \"the boss\"", from_checkpoint)));
    const auto request = read_resume_request(run_.path());
    ASSERT_TRUE(request) << request.error().message;
    ASSERT_TRUE(request->has_value());
    EXPECT_EQ((*request)->who, "ann \"the boss\"");
    EXPECT_EQ((*request)->from_checkpoint, from_checkpoint);
  }
}

TEST_F(ResumeRequestTest, WhereThereIsNoneNothingIsAskedFor) {
  const auto request = read_resume_request(run_.path());
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_FALSE(request->has_value());
}

TEST_F(ResumeRequestTest, IsForOneIncarnation) {
  ASSERT_TRUE(write_resume_request(run_.path(), asked_by("ann", false)));
  ASSERT_TRUE(remove_resume_request(run_.path()));
  EXPECT_FALSE(read_resume_request(run_.path())->has_value());
  EXPECT_TRUE(remove_resume_request(run_.path())) << "an earlier one may have got as far";
}

TEST_F(ResumeRequestTest, NobodyElseReadsIt) {
  ASSERT_TRUE(write_resume_request(run_.path(), asked_by("ann", false)));
  struct stat found {};
  ASSERT_EQ(stat(path_.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777U, 0600U);
}

TEST_F(ResumeRequestTest, OneThatCannotBeReadIsAnErrorThatNamesIt) {
  for (const char* text :
       {"", "resume", "[]", R"({"who":7,"from_checkpoint":false})", R"({"from_checkpoint":true})",
        R"({"who":"ann","from_checkpoint":"yes"})"}) {
    ASSERT_TRUE(write_file_atomic(path_, text));
    const auto request = read_resume_request(run_.path());
    ASSERT_FALSE(request) << text;
    EXPECT_EQ(request.error().kind, ErrorKind::kCorrupt) << text;
    EXPECT_THAT(request.error().message, HasSubstr(path_)) << text;
  }
}

// It must not count as missing: a run that should go on would end instead.
TEST_F(ResumeRequestTest, OneThatIsNoFileIsAnError) {
  ASSERT_TRUE(make_directories(path_));
  EXPECT_FALSE(read_resume_request(run_.path()));
  EXPECT_FALSE(remove_resume_request(run_.path()));
}

}  // namespace
}  // namespace antdt::launcher
