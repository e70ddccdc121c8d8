// The readers on real data, where there is any: archives in the directory that
// ANTDT_TEST_DATA names.
#include <cstdlib>
#include <filesystem>

#include "tests/trainer/data/testing.h"

namespace antdt::data {
namespace {

class RealDataTest : public DataTest {
 protected:
  // Unpacks an archive; "" when it is not there.
  std::string unpacked(const std::string& name) {
    const char* given = std::getenv("ANTDT_TEST_DATA");
    const std::filesystem::path archive =
        std::filesystem::path(given ? given : ANTDT_DEFAULT_TEST_DATA) / (name + ".tar.xz");
    if (!std::filesystem::exists(archive)) return "";
    const std::string command = "tar xJf '" + archive.string() + "' -C '" + directory_.path() + "'";
    return std::system(command.c_str()) == 0 ? directory_ / name : "";
  }
};

TEST_F(RealDataTest, EveryRowOfTheCriteoSampleIsRead) {
  const std::string root = unpacked("criteo_kaggle_10k");
  if (root.empty()) GTEST_SKIP() << "no criteo_kaggle_10k.tar.xz; set ANTDT_TEST_DATA";
  auto opened = reader(config("criteo", root + "/train_10k.tsv"));
  ASSERT_OK(opened);
  ASSERT_EQ((*opened)->records(), 10000U);
  Examples examples;
  ASSERT_OK((*opened)->read(first_records(10000), examples));
  const auto clicks = std::accumulate(examples.labels.begin(), examples.labels.end(), 0.0);
  EXPECT_GT(clicks, 2000);
  EXPECT_LT(clicks, 3000);
}

TEST_F(RealDataTest, EveryImageOfMnistIsRead) {
  const std::string root = unpacked("mnist");
  if (root.empty()) GTEST_SKIP() << "no mnist.tar.xz; set ANTDT_TEST_DATA";
  ASSERT_EQ(std::system(("gunzip " + root + "/t10k-*.gz").c_str()), 0);
  auto opened = reader(config("idx", root + "/t10k-images-idx3-ubyte",
                              R"(, "labels": [")" + root + "/t10k-labels-idx1-ubyte\"]"));
  ASSERT_OK(opened);
  EXPECT_EQ((*opened)->records(), 10000U);
  EXPECT_EQ((*opened)->shape().dense_width, 784U);
  EXPECT_EQ((*opened)->shape().classes, 10U);
  Examples examples;
  ASSERT_OK((*opened)->read(std::vector<std::uint64_t>{0, 9999}, examples));
  EXPECT_EQ(examples.labels, (std::vector<float>{7, 6}));
}

}  // namespace
}  // namespace antdt::data
