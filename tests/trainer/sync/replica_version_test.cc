#include "trainer/sync/replica_version.h"

#include <gtest/gtest.h>

namespace antdt::sync {
namespace {

TEST(ReplicaVersion, TheReplicasWithTheHighestVersionGoOn) {
  const ReplicaVersion seven{Step{7}, {}};
  const ReplicaVersion seven_in_3{Step{7}, Generation{3}};
  const ReplicaVersion seven_in_4{Step{7}, Generation{4}};
  const ReplicaVersion eight{Step{8}, {}};
  using Ranks = std::vector<std::uint32_t>;
  EXPECT_EQ(furthest(std::vector{seven, eight, seven, eight}), (Ranks{1, 3}));
  EXPECT_EQ(furthest(std::vector{seven, seven_in_3, seven}), (Ranks{1}));
  EXPECT_EQ(furthest(std::vector{seven_in_4, seven_in_3, seven_in_4}), (Ranks{0, 2}));
  EXPECT_EQ(furthest(std::vector{seven_in_4, eight}), (Ranks{1}));
  EXPECT_EQ(furthest({}), Ranks{});
}

}  // namespace
}  // namespace antdt::sync
