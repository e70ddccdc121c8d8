#include "trainer/client/environment.h"

#include <gmock/gmock.h>

#include <cstdlib>

namespace antdt::client {
namespace {

using ::testing::HasSubstr;

class EnvironmentTest : public ::testing::Test {
 protected:
  EnvironmentTest() {
    ::setenv("ANTDT_SOCKET", "/tmp/s", 1);
    ::setenv("ANTDT_JOB_ID", "job-1", 1);
    ::setenv("ANTDT_WORKER_ID", "w3", 1);
    ::setenv("ANTDT_ATTEMPT", "2", 1);
    ::setenv("ANTDT_PROTOCOL", "antdt", 1);
  }
  std::string problem() {
    const auto environment = Environment::from_process();
    return environment ? "none" : environment.error().message;
  }
};

TEST_F(EnvironmentTest, EverythingIsReadFromTheVariables) {
  const auto environment = Environment::from_process();
  ASSERT_TRUE(environment) << environment.error().message;
  EXPECT_EQ(environment->socket, "/tmp/s");
  EXPECT_EQ(environment->job, "job-1");
  EXPECT_EQ(environment->self, (Member{WorkerId{'w', 3}, Attempt{2}}));
}

TEST_F(EnvironmentTest, AMissingVariableIsNamedWithTheWayToStartAWorker) {
  ::unsetenv("ANTDT_SOCKET");
  EXPECT_THAT(problem(), HasSubstr("ANTDT_SOCKET is not set"));
  EXPECT_THAT(problem(), HasSubstr("antdt run job.toml"));
}

TEST_F(EnvironmentTest, MalformedVariablesAreNamedWithTheExpectedForm) {
  ::setenv("ANTDT_WORKER_ID", "worker", 1);
  EXPECT_THAT(problem(), HasSubstr("ANTDT_WORKER_ID is 'worker'"));
  ::setenv("ANTDT_WORKER_ID", "w0", 1);
  for (const char* attempt : {"0", "x", "1x", "-1"}) {
    ::setenv("ANTDT_ATTEMPT", attempt, 1);
    EXPECT_THAT(problem(), HasSubstr("ANTDT_ATTEMPT")) << attempt;
  }
}

}  // namespace
}  // namespace antdt::client
