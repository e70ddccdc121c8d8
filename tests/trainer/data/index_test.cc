#include <gmock/gmock.h>
#include <utime.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "tests/fuzz/support/index_file.h"
#include "tests/trainer/data/testing.h"

namespace antdt::data {
namespace {

using ::testing::HasSubstr;

std::string rows(int count, int from = 0) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += criteo_row(i % 3 == 0 ? "1" : "0", std::to_string(from + i)) + "\n";
  }
  return text;
}

class IndexTest : public DataTest {
 protected:
  std::vector<std::string> indexes() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(cache())) {
      found.push_back(entry.path().string());
    }
    return found;
  }
};

TEST_F(IndexTest, ReadingAnyOrderGivesTheSameAsReadingInOrder) {
  const std::string json = R"({"data": {"format": "criteo", "paths": [")" +
                           file("a.tsv", rows(50)) + "\", \"" + file("b.tsv", rows(70, 50)) +
                           "\"]}}";
  auto opened = reader(json);
  ASSERT_OK(opened);
  ASSERT_EQ((*opened)->records(), 120U);
  Examples in_order;
  ASSERT_OK((*opened)->read(first_records(120), in_order));
  for (std::uint64_t i = 0; i < 120; ++i) {
    const std::uint64_t record = (i * 77 + 5) % 120;
    Examples one;
    ASSERT_OK((*opened)->read(std::vector{record}, one));
    EXPECT_FLOAT_EQ(one.dense[0], std::log1p(static_cast<float>(record)));
    EXPECT_EQ(one.labels[0], in_order.labels[record]);
    EXPECT_TRUE(std::equal(one.ids.begin(), one.ids.end(),
                           in_order.ids.begin() + static_cast<std::ptrdiff_t>(record) * 39));
  }
}

TEST_F(IndexTest, ARecordPastTheEndIsAnError) {
  auto opened = reader(config("criteo", file("a.tsv", rows(3))));
  ASSERT_OK(opened);
  Examples examples;
  EXPECT_FALSE((*opened)->read(std::vector<std::uint64_t>{3}, examples));
}

TEST_F(IndexTest, TheFingerprintFollowsContentsAndNotPaths) {
  const auto a = index(config("criteo", file("a.tsv", rows(10))));
  const auto b = index(config("criteo", file("b.tsv", rows(10))));
  const auto c = index(config("criteo", file("c.tsv", rows(10, 1))));
  ASSERT_OK(a);
  ASSERT_OK(b);
  ASSERT_OK(c);
  EXPECT_EQ(a->fingerprint, b->fingerprint);
  EXPECT_NE(a->fingerprint, c->fingerprint);
  EXPECT_THAT(c->detail, HasSubstr("c.tsv: "));
}

TEST_F(IndexTest, AValidIndexIsUsedAgain) {
  const std::string json = config("criteo", file("a.tsv", rows(10)));
  ASSERT_OK(index(json));
  const auto before = indexes();
  ASSERT_EQ(before.size(), 1U);
  const auto written = std::filesystem::last_write_time(before[0]);
  ASSERT_OK(index(json));
  EXPECT_EQ(indexes(), before);
  EXPECT_EQ(std::filesystem::last_write_time(before[0]), written);
}

TEST_F(IndexTest, AFileThatChangedIsIndexedAnew) {
  const std::string path = file("a.tsv", rows(10));
  const auto before = index(config("criteo", path));
  file("a.tsv", rows(11));
  const auto after = index(config("criteo", path));
  ASSERT_OK(before);
  ASSERT_OK(after);
  EXPECT_EQ(after->records, 11U);
  EXPECT_NE(after->fingerprint, before->fingerprint);
}

TEST_F(IndexTest, ContentsThatChangedUnderTheSameSizeAndTimeAreFoundBySampling) {
  const std::string path = file("a.tsv", rows(10));
  struct utimbuf when {
    1000000000, 1000000000
  };
  ASSERT_EQ(::utime(path.c_str(), &when), 0);
  const auto before = index(config("criteo", path));
  ASSERT_OK(before);
  std::string changed = rows(10);
  changed[0] = changed[0] == '1' ? '0' : '1';
  file("a.tsv", changed);
  ASSERT_EQ(::utime(path.c_str(), &when), 0);
  const auto after = index(config("criteo", path));
  ASSERT_OK(after);
  EXPECT_NE(after->fingerprint, before->fingerprint);
}

// Sampling sees a few blocks; cp -p and rsync -t leave size and time as they were.
TEST_F(IndexTest, ContentsThatChangedWhereNoSampleIsTakenAreFoundAllTheSame) {
  std::string rows_of_file = rows(4000);
  const std::string path = file("a.tsv", rows_of_file);
  struct utimbuf when {
    1000000000, 1000000000
  };
  ASSERT_EQ(::utime(path.c_str(), &when), 0);
  const auto before = index(config("criteo", path));
  ASSERT_OK(before);
  const std::string sample = sample_fingerprint(rows_of_file);
  std::size_t line = rows_of_file.find('\n', rows_of_file.size() / 2) + 1;
  const auto flipped = [&] {
    std::string changed = rows_of_file;
    changed[line] = changed[line] == '1' ? '0' : '1';
    return changed;
  };
  while (sample_fingerprint(flipped()) != sample) line = rows_of_file.find('\n', line) + 1;
  file("a.tsv", flipped());
  ASSERT_EQ(::utime(path.c_str(), &when), 0);
  const auto after = index(config("criteo", path));
  ASSERT_OK(after);
  EXPECT_NE(after->fingerprint, before->fingerprint);
}

TEST_F(IndexTest, ASettingThatChangesRecordsIsNamedAndMakesAnotherIndex) {
  const std::string path = file("a.csv", "1,a\n0,b\n");
  const auto with = [&](const std::string& options) {
    return index(
        R"({"data": {"format": "csv", "header": false, "paths": [")" + path + "\"], " + options +
        R"("columns": [{"name": "y", "kind": "label"}, {"name": "x", "kind": "category"}]}})");
  };
  const auto plain = with("");
  const auto words = with(R"("encode": "vocabulary", )");
  ASSERT_OK(plain);
  ASSERT_OK(words);
  EXPECT_EQ(plain->fingerprint, words->fingerprint);
  EXPECT_NE(plain->built_by, words->built_by);
  EXPECT_THAT(plain->built_by, HasSubstr("format csv"));
  ASSERT_EQ(plain->files.size(), 1U);
  EXPECT_EQ(plain->files[0].records, 2U);
  EXPECT_EQ(plain->files[0].split, "train");
  EXPECT_EQ(plain->files[0].path, path);
}

TEST_F(IndexTest, AnIndexThatAnotherReleaseBuiltIsBuiltAgain) {
  const std::string json = config("criteo", file("a.tsv", rows(3)));
  const auto before = index(json);
  ASSERT_OK(before);
  IndexMeta other = Index::open(indexes().at(0))->meta();
  other.built_by = "index builder 1, format criteo";
  other.records = 2;
  std::ofstream(indexes().at(0), std::ios::binary)
      << fuzz::index_file(std::string(16, '\0'), 2, encode_meta(other));
  const auto after = index(json);
  ASSERT_OK(after);
  EXPECT_EQ(after->records, 3U);
  EXPECT_EQ(after->built_by, before->built_by);
}

TEST_F(IndexTest, ADamagedIndexIsBuiltAgain) {
  const std::string json = config("criteo", file("a.tsv", rows(10)));
  const auto before = index(json);
  ASSERT_OK(before);
  const std::string path = indexes().at(0);
  const auto size = std::filesystem::file_size(path);
  for (const auto cut : {size - 1, size / 2, std::uintmax_t{8}, std::uintmax_t{0}}) {
    std::filesystem::resize_file(path, cut);
    const auto after = index(json);
    ASSERT_OK(after);
    EXPECT_EQ(after->fingerprint, before->fingerprint);
    EXPECT_EQ(std::filesystem::file_size(path), size);
  }
}

TEST_F(IndexTest, ADescriptionThatDoesNotAddUpIsNoIndex) {
  IndexMeta good;
  good.files = {{"a", 10, 0, "", "", 0, 2}, {"b", 10, 0, "", "", 2, 1}};
  good.records = 3;
  good.vocabulary_sizes = {1, 2};
  const auto open = [&](const IndexMeta& meta, std::uint64_t offsets = 3) {
    return Index::open(file("some.index", fuzz::index_file(std::string((offsets + 3) * 8, '\1'),
                                                           offsets, encode_meta(meta))));
  };
  ASSERT_OK(open(good));
  ASSERT_OK(open(good, 0));
  EXPECT_FALSE(open(good, 2)) << "a record without an offset";
  IndexMeta bad = good;
  bad.vocabulary_sizes = {~0ULL, 4};
  EXPECT_FALSE(open(bad)) << "sizes that add up only modulo 2^64";
}

TEST_F(IndexTest, AnIndexThatContradictsItselfIsNotReadFrom) {
  const std::string json = config("criteo", file("a.tsv", rows(3)));
  ASSERT_OK(index(json));
  IndexMeta bad = Index::open(indexes().at(0))->meta();
  bad.files.clear();  // three records, and nowhere to read them
  std::ofstream(indexes().at(0), std::ios::binary)
      << fuzz::index_file(std::string(24, '\0'), 3, encode_meta(bad));
  const auto opened = reader(json);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("delete"));
}

TEST_F(IndexTest, ANumberThatIsNoIntegerIsNotMadeOne) {
  std::string meta = encode_meta(IndexMeta{});
  ASSERT_OK(decode_meta(meta));
  meta.replace(meta.find("\"records\":0"), 11, "\"records\":1e40");
  EXPECT_FALSE(decode_meta(meta));
  meta.replace(meta.find("1e40"), 4, "-1");
  EXPECT_FALSE(decode_meta(meta));
}

TEST_F(IndexTest, ThoseThatStartTogetherAllGetTheSameIndex) {
  const std::string json = config("criteo", file("a.tsv", rows(2000)));
  std::vector<std::string> fingerprints(6);
  std::vector<std::thread> threads;
  for (std::string& fingerprint : fingerprints) {
    threads.emplace_back([&] {
      const auto summary = index(json);
      fingerprint = summary ? summary->fingerprint : summary.error().message;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& fingerprint : fingerprints) EXPECT_EQ(fingerprint, fingerprints[0]);
  EXPECT_EQ(fingerprints[0].size(), 16U) << fingerprints[0];
}

TEST_F(IndexTest, FormatIndexNumbersItsRecordsByThemselves) {
  const std::string json = R"({"data": {"format": "index", "records": 1000000000000}})";
  auto opened = reader(json);
  ASSERT_OK(opened);
  Examples examples;
  ASSERT_OK((*opened)->read(std::vector<std::uint64_t>{999999999999, 3}, examples));
  EXPECT_EQ(examples.count, 2U);
  EXPECT_EQ(examples.ids, (std::vector<std::int64_t>{999999999999, 3}));
  EXPECT_EQ(examples.labels, (std::vector<float>{1, 1}));
  EXPECT_EQ((*opened)->shape().id_width, 1U);
  EXPECT_EQ((*opened)->shape().id_rows, 1000000000000U);
  EXPECT_EQ((*opened)->shape().dense_width, 0U);
  const auto summary = index(json);
  ASSERT_OK(summary);
  EXPECT_EQ(summary->records, 1000000000000U);
}

TEST_F(IndexTest, FormatIndexHasNoRecordPastTheEnd) {
  auto opened = reader(R"({"data": {"format": "index", "records": 10}})");
  ASSERT_OK(opened);
  Examples examples;
  const auto read = (*opened)->read(std::vector<std::uint64_t>{9, 10}, examples);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("no record 10"));
}

TEST_F(IndexTest, FormatIndexHasNothingToEvaluateOn) {
  const std::string json = R"({"data": {"format": "index", "records": 10}})";
  const auto train = index(json);
  const auto eval = index(json, Split::kEval);
  ASSERT_OK(train);
  ASSERT_OK(eval);
  EXPECT_EQ(eval->records, 0U);
  EXPECT_EQ(eval->fingerprint, "");
  EXPECT_NE(train->fingerprint,
            index(R"({"data": {"format": "index", "records": 11}})")->fingerprint);
}

TEST_F(IndexTest, ASplitWithoutFilesHasNoRecords) {
  const auto summary = index(config("criteo", file("a.tsv", rows(2))), Split::kEval);
  ASSERT_OK(summary);
  EXPECT_EQ(summary->records, 0U);
}

TEST_F(IndexTest, AnUnknownFormatIsRefusedWithTheKnownOnes) {
  const auto summary = index(config("parquet", file("a", "x")));
  ASSERT_FALSE(summary);
  EXPECT_THAT(summary.error().message, HasSubstr("\"criteo\""));
}

}  // namespace
}  // namespace antdt::data
