// Shared by the tests of readers.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "core/os/fs.h"
#include "trainer/data/dataset.h"

namespace antdt::data {

// Directories for data files and for indexes, removed with the test.
class DataTest : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& content) {
    const std::string path = directory_ / name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  // `rest` is more of "data", as `, "key": value`.
  static std::string config(const std::string& format, const std::string& path,
                            const std::string& rest = "") {
    return R"({"data": {"format": ")" + format + R"(", "paths": [")" + path + "\"]" + rest + "}}";
  }
  std::string cache() const { return cache_.path(); }

  Result<DataSummary> index(const std::string& config_json, Split split = Split::kTrain) {
    return build_index(config_json, split, cache());
  }
  Result<std::unique_ptr<RecordReader>> reader(const std::string& config_json,
                                               Split split = Split::kTrain) {
    return open_reader(config_json, split, cache());
  }

  TempDir directory_, cache_;
};

inline std::vector<std::uint64_t> first_records(std::uint64_t count) {
  std::vector<std::uint64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

// A row of Criteo's format with these numbers (joined by tabs) in front and the
// same category everywhere.
inline std::string criteo_row(const std::string& label, const std::string& first_number = "1",
                              const std::string& first_category = "68fd1e64") {
  std::string row = label + "\t" + first_number;
  for (int i = 1; i < 13; ++i) row += "\t" + std::to_string(i);
  row += "\t" + first_category;
  for (int i = 1; i < 26; ++i) row += "\tab12";
  return row;
}

#define ASSERT_OK(result) ASSERT_TRUE((result).has_value()) << (result).error().message

}  // namespace antdt::data
