// Agents of one machine tell one another which devices they lease.
#include "antdtd/devices/device_claims.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "core/os/fs.h"

namespace antdt::antdtd {
namespace {

class ClaimsOfDevices : public ::testing::Test {
 protected:
  TempDir dir_;
  DeviceClaims one_{dir_.path()};
  DeviceClaims other_{dir_.path()};
};

TEST_F(ClaimsOfDevices, ADeviceIsOfOneAgent) {
  ASSERT_TRUE(one_.take("GPU-a"));
  ASSERT_TRUE(one_.take("GPU-a")) << "it has it already";
  EXPECT_FALSE(one_.is_taken_elsewhere("GPU-a"));
  EXPECT_TRUE(other_.is_taken_elsewhere("GPU-a"));
  EXPECT_FALSE(other_.is_taken_elsewhere("GPU-b"));
  const Status refused = other_.take("GPU-a");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kRefused);
  EXPECT_TRUE(other_.take("GPU-b"));

  one_.keep_only({});
  EXPECT_FALSE(other_.is_taken_elsewhere("GPU-a"));
  EXPECT_TRUE(other_.take("GPU-a"));
}

// Whoever may open the file can lock it, so the message says how to find out who did.
TEST_F(ClaimsOfDevices, ALockOfAProcessThatIsNoAgentRefusesADeviceAndSaysWhatToLookFor) {
  ASSERT_TRUE(one_.take("GPU-a"));
  one_.keep_only({});
  const std::string path = one_.path_of("GPU-a");
  const OwnedFd foreign(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct flock lock {};
  lock.l_type = F_RDLCK;
  lock.l_whence = SEEK_SET;
  ASSERT_EQ(fcntl(foreign.get(), F_OFD_SETLK, &lock), 0);
  EXPECT_TRUE(one_.is_taken_elsewhere("GPU-a"));
  const Status refused = one_.take("GPU-a");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("'fuser -v " + path + "'"), std::string::npos)
      << refused.error().message;
}

TEST_F(ClaimsOfDevices, AClaimLastsAsLongAsAProcessOfTheLease) {
  std::optional<DeviceClaims> agent(dir_.path());
  ASSERT_TRUE(agent->take("GPU-a"));
  auto shim = ClaimFile::join(agent->path_of("GPU-a"));
  ASSERT_TRUE(shim);
  agent.reset();
  EXPECT_TRUE(other_.is_taken_elsewhere("GPU-a")) << "the process lives";
  EXPECT_FALSE(other_.take("GPU-a"));

  // The agent is started again.
  agent.emplace(dir_.path());
  agent->join({"GPU-a"});
  EXPECT_FALSE(agent->is_taken_elsewhere("GPU-a"));
  EXPECT_TRUE(agent->take("GPU-a"));
  { const auto ended = std::move(*shim); }
  EXPECT_TRUE(other_.is_taken_elsewhere("GPU-a"));
  agent.reset();
  EXPECT_TRUE(other_.take("GPU-a"));
}

TEST_F(ClaimsOfDevices, ADeviceWithoutAUuidIsNotClaimed) {
  ASSERT_TRUE(one_.take(""));
  EXPECT_FALSE(other_.is_taken_elsewhere(""));
  EXPECT_TRUE(other_.take(""));
}

TEST_F(ClaimsOfDevices, WhatIsNoClaimFileIsNotUsed) {
  const std::string elsewhere = dir_.path() + "/elsewhere";
  ASSERT_EQ(symlink(elsewhere.c_str(), one_.path_of("GPU-a").c_str()), 0);
  ASSERT_EQ(mkfifo(one_.path_of("GPU-b").c_str(), 0600), 0);
  for (const char* uuid : {"GPU-a", "GPU-b"}) {
    const Status taken = one_.take(uuid);
    ASSERT_FALSE(taken);
    EXPECT_EQ(taken.error().kind, ErrorKind::kIo);
    EXPECT_FALSE(one_.is_taken_elsewhere(uuid));
  }
  EXPECT_FALSE(std::filesystem::exists(elsewhere));
  const Status nowhere = DeviceClaims(dir_.path() + "/missing").take("GPU-a");
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().kind, ErrorKind::kIo);
}

// So an administrator decides who may lock it.
TEST_F(ClaimsOfDevices, AFileThatIsThereKeepsItsMode) {
  ASSERT_TRUE(write_file_atomic(one_.path_of("GPU-a"), "", 0660));
  ASSERT_TRUE(one_.take("GPU-a"));
  struct stat found {};
  ASSERT_EQ(stat(one_.path_of("GPU-a").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777U, 0660U);
}

TEST_F(ClaimsOfDevices, FilesAreForEveryUser) {
  ASSERT_TRUE(one_.take("GPU-a/../x"));
  struct stat found {};
  ASSERT_EQ(stat((dir_.path() + "/antdt-device-GPU-a_.._x").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777U, 0666U);
}

}  // namespace
}  // namespace antdt::antdtd
