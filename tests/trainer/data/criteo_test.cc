#include "trainer/data/formats/criteo.h"

#include <gmock/gmock.h>

#include "tests/trainer/data/testing.h"
#include "trainer/data/formats/features.h"

namespace antdt::data {
namespace {

using ::testing::HasSubstr;

class CriteoTest : public DataTest {
 protected:
  // The error of indexing a file of these bytes.
  std::string problem(const std::string& content, const std::string& rest = "") {
    const auto summary = index(config("criteo", file("bad.tsv", content), rest));
    return summary ? "none" : summary.error().message;
  }
};

TEST_F(CriteoTest, ARowBecomesThirteenDenseFeaturesAndThirtyNineIds) {
  auto opened = reader(config("criteo", file("a.tsv", criteo_row("1", "-3") + "\n")));
  ASSERT_OK(opened);
  Examples examples;
  ASSERT_OK((*opened)->read(first_records(1), examples));
  EXPECT_EQ((*opened)->shape().dense_width, 13U);
  EXPECT_EQ((*opened)->shape().id_width, 39U);
  EXPECT_EQ((*opened)->shape().classes, 2U);
  EXPECT_EQ((*opened)->shape().id_rows, 65536U);
  ASSERT_EQ(examples.dense.size(), 13U);
  ASSERT_EQ(examples.ids.size(), 39U);
  EXPECT_EQ(examples.labels, std::vector<float>{1.0F});
  EXPECT_FLOAT_EQ(examples.dense[0], -std::log1p(3.0F));
  EXPECT_FLOAT_EQ(examples.dense[2], std::log1p(2.0F));
  for (const std::int64_t id : examples.ids) {
    EXPECT_GE(id, 0);
    EXPECT_LT(id, 65536);
  }
}

TEST_F(CriteoTest, MissingFieldsAreReadAndHaveIdsOfTheirOwn) {
  const std::string rows = criteo_row("0", "", "") + "\n" + criteo_row("0", "0", "0") + "\n";
  auto opened = reader(config("criteo", file("a.tsv", rows)));
  ASSERT_OK(opened);
  Examples examples;
  ASSERT_OK((*opened)->read(first_records(2), examples));
  EXPECT_EQ(examples.dense[0], 0.0F);
  EXPECT_EQ(examples.dense[13], 0.0F);
  EXPECT_NE(examples.ids[0], examples.ids[39]);
  EXPECT_NE(examples.ids[13], examples.ids[39 + 13]);
}

TEST_F(CriteoTest, CarriageReturnsAndAMissingLastLineEndAreTolerated) {
  const std::string unix_rows = criteo_row("0", "7") + "\n" + criteo_row("1", "8") + "\n";
  const std::string dos_rows = criteo_row("0", "7") + "\r\n" + criteo_row("1", "8");
  auto a = reader(config("criteo", file("unix.tsv", unix_rows)));
  auto b = reader(config("criteo", file("dos.tsv", dos_rows)));
  ASSERT_OK(a);
  ASSERT_OK(b);
  ASSERT_EQ((*b)->records(), 2U);
  Examples of_a, of_b;
  ASSERT_OK((*a)->read(first_records(2), of_a));
  ASSERT_OK((*b)->read(first_records(2), of_b));
  EXPECT_EQ(of_a.ids, of_b.ids);
  EXPECT_EQ(of_a.dense, of_b.dense);
  EXPECT_EQ(of_a.labels, of_b.labels);
}

TEST_F(CriteoTest, AMalformedRowIsAnErrorWithFileLineReasonAndWayOut) {
  const std::string text = problem(criteo_row("1") + "\n" + criteo_row("2") + "\n");
  EXPECT_THAT(text, HasSubstr("bad.tsv:2: the label is '2', not 0 or 1"));
  EXPECT_THAT(text, HasSubstr("on_bad_record = { action = \"quarantine\""));
}

TEST_F(CriteoTest, EachKindOfMalformedRowIsNamed) {
  EXPECT_THAT(problem("1\t2\t3\n"), HasSubstr("3 fields where 40 are expected"));
  EXPECT_THAT(problem("\n"), HasSubstr("1 field where 40"));
  EXPECT_THAT(problem(criteo_row("0") + "\tff\n"), HasSubstr("41 fields where 40"));
  EXPECT_THAT(problem(criteo_row("0", "1x") + "\n"), HasSubstr("field 2 (number I1) is '1x'"));
  EXPECT_THAT(problem(criteo_row("0", "-") + "\n"), HasSubstr("field 2 (number I1) is '-'"));
  EXPECT_THAT(problem(criteo_row("0", "1234567890123456789012") + "\n"), HasSubstr("number I1"));
  EXPECT_THAT(problem(criteo_row("0", "1", "xyz") + "\n"),
              HasSubstr("field 15 (category C1) is 'xyz', not hexadecimal"));
  EXPECT_THAT(problem(criteo_row("", "1") + "\n"), HasSubstr("the label is ''"));
  EXPECT_THAT(problem(criteo_row("10", "1") + "\n"), HasSubstr("the label is '10'"));
}

TEST_F(CriteoTest, AnEmptyADamagedAndAMissingFileSayWhatToDo) {
  EXPECT_THAT(problem(""), HasSubstr("bad.tsv is empty"));
  EXPECT_THAT(problem("\x1f\x8b..."), HasSubstr("gzip -t"));
  const auto missing = index(config("criteo", directory_ / "none.tsv"));
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("none.tsv"));
  EXPECT_EQ(missing.error().kind, ErrorKind::kUsage);
}

TEST_F(CriteoTest, QuarantinedRowsAreNotNumberedAndAreKeptWithTheirPlace) {
  const std::string rows =
      criteo_row("0") + "\n" + "rubbish\n" + criteo_row("1") + "\n" + criteo_row("7") + "\n";
  const std::string json = config("criteo", file("q.tsv", rows),
                                  R"(, "on_bad_record": {"action": "quarantine", "max": 2})");
  const auto summary = index(json);
  ASSERT_OK(summary);
  EXPECT_EQ(summary->records, 2U);
  EXPECT_EQ(summary->quarantined, 2U);
  const auto kept = read_file(summary->quarantine_file);
  ASSERT_OK(kept);
  EXPECT_THAT(*kept, HasSubstr("q.tsv:2\t1 field where 40"));
  EXPECT_THAT(*kept, HasSubstr("\trubbish\n"));
  EXPECT_THAT(*kept, HasSubstr("q.tsv:4\tthe label is '7'"));
  auto opened = reader(json);
  ASSERT_OK(opened);
  Examples examples;
  ASSERT_OK((*opened)->read(first_records(2), examples));
  EXPECT_EQ(examples.labels, (std::vector<float>{0, 1}));
}

TEST_F(CriteoTest, MoreMalformedRowsThanAllowedAreAnErrorThatNamesTheFirst) {
  const std::string text = problem("x\ny\n" + criteo_row("1") + "\n",
                                   R"(, "on_bad_record": {"action": "quarantine", "max": 1})");
  EXPECT_THAT(text, HasSubstr("more than 1 malformed row;"));
  EXPECT_THAT(text, HasSubstr("bad.tsv:1"));
}

TEST_F(CriteoTest, AFileOfWhichNothingIsLeftIsAnError) {
  EXPECT_THAT(problem("x\n", R"(, "on_bad_record": {"action": "quarantine", "max": 5})"),
              HasSubstr("no record"));
}

TEST_F(CriteoTest, AVocabularyGivesFrequentKeysRowsAndSendsTheOthersToOne) {
  const std::string rows = criteo_row("0", "1", "aa") + "\n" + criteo_row("0", "1", "aa") + "\n" +
                           criteo_row("0", "1", "bb") + "\n" + criteo_row("0", "1", "cc") + "\n";
  auto opened = reader(config("criteo", file("v.tsv", rows),
                              R"(, "encode": "vocabulary", "vocabulary_min_count": 2)"));
  ASSERT_OK(opened);
  Examples examples;
  ASSERT_OK((*opened)->read(first_records(4), examples));
  const auto id = [&](std::size_t row) { return examples.ids[row * 39 + 13]; };
  EXPECT_EQ(id(0), id(1));
  EXPECT_NE(id(0), id(2));
  EXPECT_EQ(id(2), id(3));
  EXPECT_EQ((*opened)->shape().id_rows, 39U * 2);  // each field: unknown and one known key
}

}  // namespace
}  // namespace antdt::data
