#include "launcher/diagnose/tar.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "core/os/fs.h"

namespace antdt::launcher {
namespace {

// What the program tar prints for these arguments.
std::string said_by_tar(const std::string& arguments) {
  std::FILE* pipe = ::popen(("TZ=UTC tar " + arguments + " 2>&1").c_str(), "r");
  std::string text;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) text += static_cast<char>(c);
  EXPECT_EQ(::pclose(pipe), 0) << text;
  return text;
}

TEST(Tar, IsReadByTheProgramTar) {
  const std::string large(1'000'000, 'x');
  const auto archive =
      tar_of("top", {{"a.txt", "one\n"}, {"logs/empty", ""}, {"large", large}}, 1'700'000'000);
  ASSERT_TRUE(archive) << archive.error().message;
  const TempDir dir;
  ASSERT_TRUE(write_file_atomic(dir / "x.tar", *archive));
  const std::string path = dir / "x.tar";
  EXPECT_EQ(said_by_tar("tf " + path), "top/a.txt\ntop/logs/empty\ntop/large\n");
  EXPECT_EQ(said_by_tar("xOf " + path + " top/a.txt top/large"), "one\n" + large);
  const std::string listing = said_by_tar("tvf " + path + " top/a.txt");
  EXPECT_NE(listing.find("-rw------- 0/0"), std::string::npos) << listing;
  EXPECT_NE(listing.find("2023-11-14 22:13"), std::string::npos) << listing;
}

TEST(Tar, RefusesANameThatTheFormatCannotHold) {
  EXPECT_FALSE(tar_of("top", {{std::string(100, 'n'), ""}}, 0));
}

}  // namespace
}  // namespace antdt::launcher
