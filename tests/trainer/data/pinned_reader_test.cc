// Files that are pinned to domains: a worker reads those of its own alone.
#include "trainer/data/pinned_reader.h"

#include <gmock/gmock.h>

#include "tests/trainer/data/testing.h"

namespace antdt::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kTwoColumns =
    R"(, "columns": [{"name": "x", "kind": "numeric"}, {"name": "y", "kind": "label"}])";

// Records 0 to 2 and 5 are of the east, 3 and 4 of the west, whose file is not here.
class PinnedReaderTest : public DataTest {
 protected:
  std::string job() {
    const std::string first = file("a.csv", "10,0\n11,1\n12,0\n");
    const std::string last = file("c.csv", "15,1\n");
    const auto part = [](const std::string& domain, int records, const std::string& path) {
      return R"({"split": "train", "domain": ")" + domain + R"(", "records": )" +
             std::to_string(records) + R"(, "files": [")" + path + R"("], "labels": []})";
    };
    std::string text = config("csv", first, kTwoColumns);
    text.back() = ',';
    return text + R"("pins": {"domains": ["east", "west"], "classes": 3, "parts": [)" +
           part("east", 3, first) + "," + part("west", 2, "/nowhere/b.csv") + "," +
           part("east", 1, last) + "]}}";
  }
};

TEST_F(PinnedReaderTest, RecordsHaveTheirNumbersAmongThoseOfAllDomains) {
  const auto east = open_reader(job(), Split::kTrain, cache(), "east");
  ASSERT_OK(east);
  EXPECT_EQ((*east)->records(), 6U);
  EXPECT_EQ((*east)->shape().classes, 3U) << "the west has a label that the east has not";
  Examples examples;
  const std::vector<std::uint64_t> numbers{5, 0, 2};
  ASSERT_OK((*east)->read(numbers, examples));
  EXPECT_THAT(examples.labels, ElementsAre(1, 0, 0));
}

TEST_F(PinnedReaderTest, ARecordOfAnotherDomainCannotBeRead) {
  const auto east = open_reader(job(), Split::kTrain, cache(), "east");
  ASSERT_OK(east);
  Examples examples;
  for (const std::uint64_t record : {3, 4, 6}) {
    const auto status = (*east)->read(std::vector{record}, examples);
    ASSERT_FALSE(status) << record;
    EXPECT_THAT(status.error().message, HasSubstr("is pinned to another domain than 'east'"));
  }
}

TEST_F(PinnedReaderTest, OnlyTheFilesOfTheDomainAreIndexed) {
  const auto east = build_index(job(), Split::kTrain, cache(), "east");
  ASSERT_OK(east);
  EXPECT_EQ(east->records, 4U);
  EXPECT_EQ(east->files.size(), 2U);
  const auto west = build_index(job(), Split::kTrain, cache(), "west");
  ASSERT_FALSE(west) << "its file is not here";
  EXPECT_THAT(west.error().message, HasSubstr("/nowhere/b.csv"));
}

}  // namespace
}  // namespace antdt::data
