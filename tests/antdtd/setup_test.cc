#include "antdtd/setup.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/fs.h"

namespace antdt::antdtd {
namespace {

namespace fs = std::filesystem;

TEST(RemoveTraces, NothingIsLeftOfAJobWhoseDaemonWasKilledAtItsVeryEnd) {
  const TempDir dir;
  AgentFlags flags;
  flags.is_private = true;
  flags.socket_dir = dir / "s";
  flags.state_dir = dir / "s/state";
  fs::create_directories(dir / "s/state/jobs");
  for (const char* left :
       {"agent.sock", "agent.sock.lock", "workers.sock", "workers.sock.lock", "jobd.sock",
        "jobd.sock.lock", "p-7.1", "p-7.1.lock", "state/environment.part"}) {
    ASSERT_TRUE(write_file_atomic(dir / ("s/" + std::string(left)), "")) << left;
  }
  remove_traces(flags);
  EXPECT_FALSE(fs::exists(dir / "s"));
}

TEST(RemoveTraces, WhatIsNoneOfItsStays) {
  const TempDir dir;
  AgentFlags flags;
  flags.is_private = true;
  flags.socket_dir = dir / "s";
  flags.state_dir = dir / "s/state";
  fs::create_directories(flags.state_dir);
  ASSERT_TRUE(write_file_atomic(dir / "s/notes", "mine"));
  remove_traces(flags);
  EXPECT_EQ(read_file(dir / "s/notes").value_or("?"), "mine");
}

}  // namespace
}  // namespace antdt::antdtd
