#include "jobd/standby/run_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antdt::jobd {
namespace {

using testing::HasSubstr;

transport::KeyPair key(const std::string& secret) { return {"job", "public", secret}; }

TEST(RunFileSeal, WhatItSealedIsOpened) {
  const RunFileSeal seal(key("one"), "job-1");
  for (const std::string& bytes : {std::string(), std::string("{}"), std::string("\0\n", 2)}) {
    EXPECT_EQ(*seal.open("job.json", seal.seal("job.json", bytes)), bytes);
  }
}

TEST(RunFileSeal, WhatAnotherKeyJobOrNameSealedIsRefused) {
  const RunFileSeal seal(key("one"), "job-1");
  const std::string sealed = seal.seal("job.json", "{}");
  EXPECT_FALSE(RunFileSeal(key("two"), "job-1").open("job.json", sealed));
  EXPECT_FALSE(RunFileSeal(key("one"), "job-2").open("job.json", sealed));
  const auto other = seal.open("data.json", sealed);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().kind, ErrorKind::kCorrupt);
  EXPECT_THAT(other.error().message, HasSubstr("was not written with this host's job.key"));
}

TEST(RunFileSeal, NoChangedByteIsAccepted) {
  const RunFileSeal seal(key("one"), "job-1");
  const std::string sealed = seal.seal("job.json", R"({"command":["true"]})");
  for (std::size_t at = 0; at < sealed.size(); ++at) {
    std::string changed = sealed;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    EXPECT_FALSE(seal.open("job.json", changed)) << at;
  }
  for (const std::string& text :
       {std::string(), std::string("\n"), sealed.substr(0, 32), sealed.substr(1), sealed + " "}) {
    EXPECT_FALSE(seal.open("job.json", text)) << text;
  }
}

}  // namespace
}  // namespace antdt::jobd
