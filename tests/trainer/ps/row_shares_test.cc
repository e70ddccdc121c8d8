// Tests which rows a worker sends to which server, and what does not fit a message.
#include "trainer/ps/calls/row_shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "trainer/ps/calls/worker_calls.h"
#include "trainer/ps/rows/rows.h"

namespace antdt::ps::row_shares_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

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

// The calls of w0 to servers that answer only that its table is open.
class Asking {
 public:
  // `version`: the updates that were applied on these servers before.
  explicit Asking(std::size_t servers, std::uint64_t version = 1)
      : calls_({WorkerId{'w', 0}, Attempt{1}}, Consistency::kUnbounded, start(servers)) {
    calls_.begin(wanted_);
    calls_.open({7, {{"dense", kWidth, "sum", 0, 0, 0, "zero", 0}}}, {}, wanted_);
    for (const requests::Effect& effect : requests::Effects(wanted_)) {
      const auto* open = std::get_if<requests::SendRequest>(&effect);
      if (open == nullptr) continue;
      calls_.step(requests::ReplyHeard{open->link, open->seq, wire::PsOpened{version}}, {},
                  wanted_);
    }
    EXPECT_TRUE(calls_.take_answer().has_value());
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
    EXPECT_EQ(said.error().kind, ErrorKind::kTooLarge);
    EXPECT_THAT(said.error().message, HasSubstr("parameter server s0"));
    EXPECT_THAT(said.error().message,
                HasSubstr("2 servers or more would suffice, and there are 1"));
    EXPECT_THAT(said.error().message, HasSubstr("antdt resize RUN 2 --role server"));
  }
  Asking two(2);
  for (const Status& said : {two.put(), two.pull(), two.push()}) {
    EXPECT_TRUE(said) << said.error().message;
  }
}

TEST(RowSharesTest, AModelThatDoesNotFitIsAWrongConfigurationOnlyBeforeAnythingIsTrained) {
  EXPECT_EQ(Asking(1, 0).put().error().kind, ErrorKind::kUsage);
  EXPECT_EQ(Asking(1, 1).put().error().kind, ErrorKind::kTooLarge);
}

// What is said if a batch has keys 0 to `count` - 1 of a table with rows of `width`, and the job
// one server.
std::string said_of(std::uint64_t count, std::uint32_t width) {
  std::vector<std::uint64_t> keys(count);
  std::iota(keys.begin(), keys.end(), std::uint64_t{0});
  const Status said = check_answers({{{0, to_bytes(keys), {}}}}, {width});
  return said ? "" : said.error().message;
}

// The largest share of nine servers is 8 of 64 slices, which are 67.5 of 540 MiB.
TEST(RowSharesTest, TheNumberThatSufficesCountsInWholeSlices) {
  const std::uint64_t rows = 540ULL * 1024 * 1024 / (kWidth * sizeof(float));
  EXPECT_THAT(said_of(rows, kWidth), HasSubstr("10 servers or more would suffice"));
}

TEST(RowSharesTest, WhatFitsNoNumberOfServersIsToldWithoutANumber) {
  const std::string said = said_of(1024, 64 * 1024 * 1024);  // each row has 256 MiB
  EXPECT_THAT(said, HasSubstr("make the model or its batches smaller"));
  EXPECT_THAT(said, HasSubstr("not even 64 servers"));
  EXPECT_THAT(said, Not(HasSubstr("[roles.server]")));
}

TEST(RowSharesTest, DenseParametersHaveAFewestNumberOfServers) {
  EXPECT_EQ(fewest_servers({}), 1U);
  EXPECT_EQ(fewest_servers({rows_of_70_mib()}), 2U);
}

}  // namespace
}  // namespace antdt::ps::row_shares_test
