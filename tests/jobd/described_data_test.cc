// Descriptions of files that the launching host does not have.
#include "jobd/programs/described_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antdt::jobd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

DataFound two_files() {
  DataFound found;
  found.train_records = 70;
  found.classes = 2;
  found.files = {{"train", "/d/a", 1000, 40, "aa"},
                 {"train", "/d/b", 900, 30, "bb"},
                 {"eval", "/d/eval", 100, 5, "ee"}};
  return found;
}

std::string problem_with(const DataFound& found, const std::string& format = "criteo") {
  const auto data = described_data(found, format, "west", "west.json");
  return data ? "" : data.error().message;
}

TEST(DescribedData, HasTheTrainingFilesAndTheirRecords) {
  const auto data = described_data(two_files(), "criteo", "west", "west.json");
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ(data->part, (PinnedPart{"train", "west", 70, {"/d/a", "/d/b"}}));
  EXPECT_EQ(data->files.size(), 2U);
}

TEST(DescribedData, FilesOfImagesAndOfLabelsAreInPairs) {
  DataFound found = two_files();
  found.files[1].records = 0;
  found.train_records = 40;
  const auto data = described_data(found, "idx", "west", "west.json");
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_THAT(data->part.files, ElementsAre("/d/a"));
  EXPECT_THAT(data->part.labels, ElementsAre("/d/b"));
  found.files.erase(found.files.begin() + 1);
  EXPECT_THAT(problem_with(found, "idx"), HasSubstr("'/d/a' has no file of labels behind it"));
}

TEST(DescribedData, NumbersOfRecordsThatDoNotAddUpAreRefused) {
  DataFound found = two_files();
  found.train_records = 71;
  EXPECT_THAT(problem_with(found),
              HasSubstr("west.json has 71 training records (train_records), and its training files "
                        "have 70"));
}

TEST(DescribedData, AFileThatIsListedTwiceIsRefused) {
  DataFound found = two_files();
  found.files[1].path = "/d/a";
  EXPECT_THAT(problem_with(found), HasSubstr("west.json lists '/d/a' twice"));
}

TEST(DescribedData, NumbersThatCannotBeAreRefused) {
  constexpr std::uint64_t kTooMany = std::uint64_t{1} << 53;
  DataFound found = two_files();
  found.files[0].bytes = kTooMany;
  EXPECT_THAT(problem_with(found), HasSubstr("numbers of 2^53 or more"));
  found = two_files();
  found.files[0].records = found.files[1].records = kTooMany / 2;
  found.train_records = kTooMany;
  EXPECT_THAT(problem_with(found), HasSubstr("numbers of 2^53 or more"));
  found.files[0].records = UINT64_MAX;  // the sum would be 70 again if it were allowed to overflow
  found.files[1].records = 71;
  found.train_records = 70;
  EXPECT_THAT(problem_with(found), HasSubstr("numbers of 2^53 or more"));
}

TEST(DescribedData, ADescriptionWithoutTrainingFilesIsRefused) {
  DataFound found = two_files();
  found.files.erase(found.files.begin(), found.files.begin() + 2);
  EXPECT_THAT(problem_with(found), HasSubstr("describes no training files of domain 'west'"));
  found = two_files();
  found.classes = 0;
  EXPECT_THAT(problem_with(found), HasSubstr("describes no training files of domain 'west'"));
}

}  // namespace
}  // namespace antdt::jobd
