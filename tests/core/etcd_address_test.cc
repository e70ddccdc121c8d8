#include "core/schema/etcd_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antdt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(EtcdAddress, MembersAreListedBehindTheScheme) {
  EXPECT_THAT(*etcd_members("etcd://10.0.0.1:2379"), ElementsAre("10.0.0.1:2379"));
  EXPECT_THAT(*etcd_members("etcd://h1:2379,[::1]:2380"), ElementsAre("h1:2379", "[::1]:2380"));
}

TEST(EtcdAddress, WhatIsNotAnAddressIsNamed) {
  for (const char* url : {"", "http://h1:2379", "etcd://", "etcd://h1", "etcd://h1:2379,",
                          "etcd://h1:2379/jobs", "etcd://user@h1:x"}) {
    const auto members = etcd_members(url);
    ASSERT_FALSE(members) << url;
    EXPECT_EQ(members.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(members.error().message, HasSubstr(url));
    EXPECT_THAT(members.error().message, HasSubstr("\"etcd://10.0.0.1:2379,10.0.0.2:2379\""));
  }
}

TEST(EtcdAddress, OnlyMembersOfThisMachineAreNotExposed) {
  EXPECT_THAT(
      exposed_etcd_members(
          {{"127.0.0.1:1", "localhost:1", "[::1]:1", "10.0.0.1:1", "h1:1"}, {}, {}, {}, {}, {}}),
      ElementsAre("10.0.0.1:1", "h1:1"));
}

}  // namespace
}  // namespace antdt
