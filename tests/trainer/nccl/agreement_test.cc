#include "trainer/nccl/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace antdt::nccl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

MemberSays member(const std::string& host, const std::string& device, int version = 22703) {
  return {.version = version, .host = host, .machine = host + "/1", .device = device};
}
MemberSays holder(const std::string& host, const std::string& device, int version = 22703) {
  MemberSays says = member(host, device, version);
  says.holds_state = true;
  return says;
}

std::string why(const std::vector<MemberSays>& members, bool encrypt = false) {
  return obstacle(members, encrypt).why;
}
std::vector<bool> at_fault(const std::vector<MemberSays>& members, bool encrypt = false) {
  return obstacle(members, encrypt).at_fault;
}

TEST(Agreement, EqualMembersUseNccl) {
  EXPECT_EQ(why({member("a", "0"), member("a", "1"), member("b", "0")}), "");
}

TEST(Agreement, TroubleIsToldOnceWithAllHostsThatHaveIt) {
  std::vector<MemberSays> members{member("a", "0"), member("b", "0"), member("c", "0")};
  members[1].trouble = members[2].trouble = "NCCL cannot be loaded";
  EXPECT_EQ(why(members), "b, c: NCCL cannot be loaded");
  EXPECT_THAT(at_fault(members), ElementsAre(false, true, true));
  members[0].trouble = "no device";
  EXPECT_THAT(at_fault(members), ElementsAre(true, true, true));
}

TEST(Agreement, DifferentVersionsNameTheirHosts) {
  EXPECT_THAT(why({member("a", "0"), member("b", "0", 22602), member("c", "0")}),
              AllOf(HasSubstr("2.26.2 on b"), HasSubstr("2.27.3 on a, c")));
}

TEST(Agreement, WhoDiffersFromMostMembersIsAtFault) {
  EXPECT_THAT(at_fault({member("a", "0", 22602), member("b", "0"), member("c", "0")}),
              ElementsAre(true, false, false));
  EXPECT_THAT(at_fault({member("a", "0"), member("b", "0", 22602), member("c", "0")}),
              ElementsAre(false, true, false));
}

// All members decide alike, and one has to be left.
TEST(Agreement, WhereAsManyHaveOneAsTheOtherTheLowestRankIsNotAtFault) {
  EXPECT_THAT(at_fault({member("a", "0"), member("b", "0", 22602)}), ElementsAre(false, true));
  EXPECT_THAT(at_fault({member("a", "0", 22602), member("b", "0")}), ElementsAre(false, true));
  EXPECT_THAT(at_fault({member("a", "0"), member("b", "0", 22602), member("c", "0", 22602),
                        member("d", "0")}),
              ElementsAre(false, true, true, false));
  EXPECT_THAT(why({member("a", "0"), member("b", "0", 22602)}),
              AllOf(HasSubstr("2.26.2 on b"), HasSubstr("2.27.3 on a")));
}

// As when the host of the lowest ranks was set up anew: nobody else has the state of those that
// train.
TEST(Agreement, WhoHoldsTheStateIsNotAtFaultForNewcomersThatDiffer) {
  EXPECT_THAT(at_fault({member("a", "0", 22602), holder("b", "0")}), ElementsAre(true, false));
  EXPECT_THAT(at_fault({member("a", "0", 22602), member("a", "1", 22602), member("c", "0"),
                        holder("b", "0")}),
              ElementsAre(true, true, false, false));
}

TEST(Agreement, HoldersThatDifferAreDecidedAmongByTheirOwnNumber) {
  EXPECT_THAT(at_fault({member("a", "0", 22602), holder("b", "0", 22602), holder("c", "0"),
                        holder("d", "0")}),
              ElementsAre(true, true, false, false));
  EXPECT_THAT(at_fault({member("a", "0", 22602), holder("b", "0"), holder("c", "0", 22602)}),
              ElementsAre(true, false, true));
}

TEST(Agreement, EncryptionForbidsNcclBetweenHostsOnly) {
  EXPECT_EQ(why({member("a", "0"), member("a", "1")}, true), "");
  const std::vector<MemberSays> across{member("a", "0"), member("b", "0"), member("b", "1")};
  EXPECT_THAT(why(across, true), HasSubstr("cluster.encrypt"));
  EXPECT_THAT(at_fault(across, true), ElementsAre(true, false, false));
  const std::vector<MemberSays> joined{member("a", "0"), member("a", "1"), holder("b", "0")};
  EXPECT_THAT(at_fault(joined, true), ElementsAre(true, true, false));
}

// NCCL hangs if two ranks of a communicator have one device.
TEST(Agreement, OneDeviceForTwoMembersIsFound) {
  const std::vector<MemberSays> shared{member("a", "1"), member("a", "0"), member("a", "0")};
  EXPECT_THAT(why(shared), HasSubstr("on a use the device 0"));
  EXPECT_THAT(at_fault(shared), ElementsAre(false, false, true));
  const std::vector<MemberSays> joined{member("a", "0"), holder("a", "0"), member("b", "0")};
  EXPECT_THAT(why(joined), HasSubstr("on a use the device 0"));
  EXPECT_THAT(at_fault(joined), ElementsAre(true, false, false));
  EXPECT_EQ(why({member("a", "0"), member("b", "0")}), "");
}

TEST(Agreement, WhatAMemberSaysIsReadAsItWasWritten) {
  MemberSays says = member("a", "0000:3B:00.0");
  says.trouble = std::string(2000, 'x');  // longer than its field
  std::memset(says.id.internal, 7, sizeof(says.id.internal));
  std::vector<std::byte> bytes;
  for (const MemberSays& one : {says, holder("b", "1")}) {
    const SaysBytes encoded = encode(one);
    bytes.insert(bytes.end(), encoded.begin(), encoded.end());
  }
  const auto read = decode(bytes);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 2U);
  EXPECT_EQ((*read)[0].host, "a");
  EXPECT_EQ((*read)[0].machine, "a/1");
  EXPECT_EQ((*read)[0].device, "0000:3B:00.0");
  EXPECT_EQ((*read)[0].version, 22703);
  EXPECT_EQ((*read)[0].trouble, std::string((*read)[0].trouble.size(), 'x'));
  EXPECT_GT((*read)[0].trouble.size(), 500U);
  EXPECT_EQ(std::memcmp((*read)[0].id.internal, says.id.internal, sizeof(says.id.internal)), 0);
  EXPECT_FALSE((*read)[0].holds_state);
  EXPECT_EQ((*read)[1].host, "b");
  EXPECT_TRUE((*read)[1].holds_state);
}

TEST(Agreement, AnotherReleasesWordsAreRefused) {
  SaysBytes bytes = encode(member("a", "0"));
  bytes[0] = std::byte{0};
  const auto read = decode(bytes);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, ErrorKind::kCorrupt);
}

}  // namespace
}  // namespace antdt::nccl
