#include "trainer/loop/served/linked_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antdt::trainer {
namespace {

using ::testing::HasSubstr;

class NoRows final : public HostedRows {
 public:
  [[nodiscard]] const std::vector<wire::PsTable>& tables() const override { return tables_; }
  [[nodiscard]] std::vector<ps::TableKeys> rows_of(const data::Examples&) const override {
    return {};
  }
  [[nodiscard]] Status put(std::vector<ps::TableKeys>,
                           const std::vector<std::vector<float>>&) override {
    return {};
  }
  [[nodiscard]] std::vector<ps::TableGradient> gradients() const override { return {}; }

 private:
  std::vector<wire::PsTable> tables_;
};

// The agent hands out rosters as they are: an older release on the server's host tells no key.
TEST(LinkedRows, ServersThatCannotBeReachedAreAnErrorOfEachCall) {
  transport::Context context;
  LinkedRows linked(context, {});
  NoRows rows;
  wire::PsRoster roster;
  roster.sync = SyncStrategy::kHybrid;
  roster.servers = {"tcp://127.0.0.1:1"};
  roster.keys = {""};

  const auto used = linked.use(Generation{1}, roster);

  ASSERT_FALSE(used);
  EXPECT_EQ(used.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(used.error().message, HasSubstr("told no key"));
  const Status pulled = linked.pull(rows, {}, {});
  const Status sent = linked.send(rows, {}, 0);
  const Status concluded = linked.conclude(rows, {});
  for (const Status& status : {pulled, sent, concluded}) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().message, used.error().message);
  }
}

}  // namespace
}  // namespace antdt::trainer
