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
    EXPECT_EQ(*seal.open("job.json", seal.seal("job.json", bytes).value()), bytes);
  }
}

TEST(RunFileSeal, WhatAnotherKeyJobOrNameSealedIsRefused) {
  const RunFileSeal seal(key("one"), "job-1");
  const std::string sealed = seal.seal("job.json", "{}").value();
  EXPECT_FALSE(RunFileSeal(key("two"), "job-1").open("job.json", sealed));
  EXPECT_FALSE(RunFileSeal(key("one"), "job-2").open("job.json", sealed));
  const auto other = seal.open("data.json", sealed);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().kind, ErrorKind::kCorrupt);
  EXPECT_THAT(other.error().message, HasSubstr("was not written with this host's job.key"));
}

TEST(RunFileSeal, NoChangedByteIsAccepted) {
  const RunFileSeal seal(key("one"), "job-1");
  const std::string sealed = seal.seal("job.json", R"({"command":["true"]})").value();
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

TEST(RunFileSeal, NobodyElseReadsWhatItSealed) {
  const RunFileSeal seal(key("one"), "job-1");
  const std::string password = "a password of the job";
  const std::string sealed = seal.seal("job.json", password).value();
  EXPECT_THAT(sealed, testing::Not(HasSubstr(password.substr(0, 4))));
  EXPECT_NE(seal.seal("job.json", password).value(), sealed) << "each has a key of its own";
}

// HMAC-SHA-256 of the file of an earlier release, and its bytes.
TEST(RunFileSeal, WhatAnEarlierReleaseSealedIsOpened) {
  const RunFileSeal seal(key("one"), "job-1");
  crypto::Transcript text("a run's file in etcd");
  text << std::string_view("job-1") << std::string_view("job.json") << std::string_view("{}");
  const crypto::Mac code = crypto::Secret().derive("one").mac(text.text());
  const std::string sealed(reinterpret_cast<const char*>(code.data()), code.size());
  EXPECT_EQ(*seal.open("job.json", sealed + "{}"), "{}");
}

}  // namespace
}  // namespace antdt::jobd
