#include "ctl/checkpoints/checkpoint_names.h"

#include <gtest/gtest.h>

#include <string>

namespace antdt::ctl::copies {
namespace {

TEST(CheckpointNames, OnlyAWholeNameIsOne) {
  EXPECT_EQ(order_of("s0000000010-l1-g1-w0.1"), std::pair(std::uint64_t{1}, std::uint64_t{10}));
  EXPECT_EQ(age_of(".tmp-5-g2"), (Age{2, 5}));
  for (const std::string name :
       {"s0000000010-l1", "s0000000010-l1-g1-w0.1/../../state.db", "s-l1-g1", "s1-l-g1", "s+1-l1-",
        "s1-l1-g1-w0.1\n", "s1-l1-g1 w0.1", "s99999999999999999999-l1-g1"}) {
    EXPECT_EQ(order_of(name), std::nullopt) << name;
  }
  for (const std::string name : {"..", ".", "", ".tmp-", ".tmp-7x", ".tmp-7/..", ".tmp-7-g1/../..",
                                 ".tmp--7", ".tmp-7-g1-w0 1"}) {
    EXPECT_EQ(age_of(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace antdt::ctl::copies
