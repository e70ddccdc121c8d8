// Records of text files through libantdt.so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "core/os/fs.h"
#include "include/antdt.h"
#include "tests/trainer/data/packed.h"

namespace antdt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class CDataTest : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& content) {
    const std::string path = directory_ / name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  int open(const std::vector<std::string>& files, antdt_data** data, std::uint32_t flags = 0) {
    std::vector<const char*> paths;
    for (const std::string& path : files) paths.push_back(path.c_str());
    const std::string cache = directory_ / "cache";
    const antdt_data_options options{sizeof(options), flags, paths.data(), paths.size(),
                                     cache.c_str()};
    return antdt_data_open(&options, data);
  }
  static std::vector<std::string> read(antdt_data* data, std::vector<std::uint64_t> records) {
    antdt_data_records found{};
    found.struct_size = sizeof(found);
    EXPECT_EQ(antdt_data_read(data, records.data(), records.size(), &found), ANTDT_OK)
        << antdt_last_error();
    std::vector<std::string> texts;
    for (std::uint64_t i = 0; i < found.count; ++i) {
      const std::uint64_t begin = i == 0 ? 0 : found.ends[i - 1];
      texts.emplace_back(found.bytes + begin, found.ends[i] - begin);
    }
    return texts;
  }

  TempDir directory_;
};

TEST_F(CDataTest, AnyRecordsOfPlainAndPackedFilesAreReadInAnyOrder) {
  antdt_data* data = nullptr;
  ASSERT_EQ(open({file("a", "zero\none\n"), file("b.gz", data::gzip("two\n\n"))}, &data), ANTDT_OK)
      << antdt_last_error();
  antdt_data_about about{};
  about.struct_size = sizeof(about);
  ASSERT_EQ(antdt_data_describe(data, &about), ANTDT_OK);
  EXPECT_EQ(about.records, 4U);
  EXPECT_EQ(std::string(about.fingerprint).size(), 16U);
  EXPECT_THAT(read(data, {2, 0, 3, 0, 1}), ElementsAre("two", "zero", "", "zero", "one"));
  EXPECT_THAT(read(data, {}), ElementsAre());
  antdt_data_close(data);
}

TEST_F(CDataTest, OutsideOfAJobNobodyIsToldHowFarAProgramIs) {
  EXPECT_EQ(antdt_data_progress("/data/a", 1, 2, 0), ANTDT_OK);
  EXPECT_EQ(antdt_data_progress("/data/a", 1, 2, ANTDT_DATA_WAITS), ANTDT_OK);
  EXPECT_EQ(antdt_data_progress(nullptr, 0, 0, 0), ANTDT_OK);
  EXPECT_EQ(antdt_data_progress("/data/a", 1, 2, 2), ANTDT_USAGE);
}

TEST_F(CDataTest, WhatIsWrongIsSaid) {
  antdt_data* data = nullptr;
  EXPECT_EQ(open({}, &data), ANTDT_USAGE);
  EXPECT_EQ(open({file("a", "x\n")}, &data, 64), ANTDT_USAGE);
  EXPECT_EQ(open({directory_ / "none"}, &data), ANTDT_CONFIG);
  EXPECT_THAT(antdt_last_error(), HasSubstr("none"));
  EXPECT_EQ(open({file("cut.gz", data::gzip("a line\n").substr(0, 15))}, &data), ANTDT_CONFIG);
  EXPECT_THAT(antdt_last_error(), HasSubstr("cut.gz cannot be unpacked"));
  EXPECT_EQ(data, nullptr);
  ASSERT_EQ(open({file("a", "x\n")}, &data), ANTDT_OK);
  antdt_data_records found{};
  const std::uint64_t record = 1;
  EXPECT_EQ(antdt_data_read(data, &record, 1, &found), ANTDT_USAGE) << "struct_size";
  found.struct_size = sizeof(found);
  EXPECT_EQ(antdt_data_read(data, &record, 1, &found), ANTDT_USAGE);
  EXPECT_THAT(antdt_last_error(), HasSubstr("no record 1"));
  EXPECT_EQ(antdt_data_read(nullptr, &record, 1, &found), ANTDT_USAGE);
  antdt_data_close(data);
  antdt_data_close(nullptr);
}

}  // namespace
}  // namespace antdt
