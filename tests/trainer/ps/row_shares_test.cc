// Tests which rows a worker sends to which server, and what does not fit a message.
#include "trainer/ps/calls/row_shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "trainer/ps/calls/worker_calls.h"

namespace antdt::ps::row_shares_test {
namespace {

using ::testing::HasSubstr;

constexpr std::uint32_t kWidth = 1024;
constexpr std::size_t kRows = std::size_t{70} * 1024 * 1024 / (kWidth * sizeof(float));

std::vector<std::uint64_t> keys_of_70_mib() {
  std::vector<std::uint64_t> keys(kRows);
  std::iota(keys.begin(), keys.end(), std::uint64_t{0});
  return keys;
}
TableGradient rows_of_70_mib() {
  return {0, {keys_of_70_mib(), std::vector<float>(kRows * kWidth)}};
}

// The calls of w0 to servers that never answer.
class Asking {
 public:
  explicit Asking(std::size_t servers)
      : calls_({WorkerId{'w', 0}, Attempt{1}}, Consistency::kUnbounded, start(servers)) {
    calls_.begin(wanted_);
    calls_.open({7, {{"dense", kWidth, "sum", 0, 0, 0, "zero", 0}}}, {}, wanted_);
  }
  Status put() { return calls_.put({rows_of_70_mib()}, {}, wanted_); }
  Status pull() {
    ANTDT_RETURN_IF_ERROR(calls_.say_pull({{0, keys_of_70_mib()}}, 0, {}, wanted_));
    return {};
  }
  Status push() {
    const std::vector<std::uint64_t> versions(calls_.requests().servers());
    return calls_.say_push({rows_of_70_mib()}, versions, {1, 0, 1, 0, 1, 1}, {}, wanted_);
  }

 private:
  static requests::Start start(std::size_t servers) {
    requests::Start start;
    for (std::size_t s = 0; s < servers; ++s) start.roster.servers.push_back(fmt::format("s{}", s));
    return start;
  }
  WorkerCalls calls_;
  requests::Effects wanted_;
};

// ZeroMQ would end the link, and the worker send it again over the next one, for ever.
TEST(RowSharesTest, RowsThatDoNotFitAMessageAreRefusedWithTheNumberOfServersThatSuffices) {
  Asking one(1);
  for (const Status& said : {one.put(), one.pull(), one.push()}) {
    ASSERT_FALSE(said);
    EXPECT_EQ(said.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(said.error().message, HasSubstr("parameter server s0"));
    EXPECT_THAT(said.error().message, HasSubstr("[roles.server] count to 2 or more (it is 1)"));
  }
  Asking two(2);
  for (const Status& said : {two.put(), two.pull(), two.push()}) {
    EXPECT_TRUE(said) << said.error().message;
  }
}

}  // namespace
}  // namespace antdt::ps::row_shares_test
