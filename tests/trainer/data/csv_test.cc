#include <gmock/gmock.h>

#include "tests/trainer/data/testing.h"

namespace antdt::data {
namespace {

using ::testing::HasSubstr;

constexpr const char* kColumns =
    R"(, "header": true, "columns": [{"name": "age", "kind": "numeric"}, {"name": "id", "kind": "ignore"},
       {"name": "job", "kind": "category"}, {"name": "income", "kind": "label"}])";

class CsvTest : public DataTest {
 protected:
  std::string csv(const std::string& content, const std::string& rest = "") {
    return config("csv", file("a.csv", content), kColumns + rest);
  }
  std::string problem(const std::string& content) {
    const auto summary = index(csv(content));
    return summary ? "none" : summary.error().message;
  }
  Examples read_all(const std::string& json) {
    Examples examples;
    auto opened = reader(json);
    EXPECT_TRUE(opened) << opened.error().message;
    if (!opened) return examples;
    const auto status = (*opened)->read(first_records((*opened)->records()), examples);
    EXPECT_TRUE(status) << status.error().message;
    return examples;
  }
};

TEST_F(CsvTest, QuotesSpacesAndDoubledQuotesDoNotChangeAValue) {
  const Examples plain =
      read_all(csv("age,id,job,income\n39,1,clerk,0\n40,2,\"a \"\"b\"\", c\",1\n"));
  const Examples quoted = read_all(config(
      "csv",
      file("b.csv",
           "\"age\", id, job, income\n \"39\" , 1, \"clerk\", 0\n40,x,\"a \"\"b\"\", c\",\"1\"\n"),
      kColumns));
  EXPECT_EQ(plain.ids, quoted.ids);
  EXPECT_EQ(plain.dense, quoted.dense);
  EXPECT_EQ(plain.labels, (std::vector<float>{0, 1}));
  EXPECT_EQ(quoted.labels, plain.labels);
}

TEST_F(CsvTest, NamesOfClassesAreNumberedInOrderOfFirstAppearance) {
  const Examples examples =
      read_all(csv("age,id,job,income\n1,1,a,high\n2,1,a,low\n3,1,a,high\n4,1,a,middle\n"));
  EXPECT_EQ(examples.labels, (std::vector<float>{0, 1, 0, 2}));
}

TEST_F(CsvTest, EvaluationDataUseTheClassesOfTheTrainingData) {
  const std::string eval = file("e.csv", "age,id,job,income\n1,1,a,low\n2,1,a,high\n");
  const std::string json =
      csv("age,id,job,income\n1,1,a,high\n2,1,a,low\n", R"(, "eval_paths": [")" + eval + "\"]");
  auto opened = reader(json, Split::kEval);
  ASSERT_OK(opened);
  Examples examples;
  ASSERT_OK((*opened)->read(first_records(2), examples));
  EXPECT_EQ(examples.labels, (std::vector<float>{1, 0}));
}

TEST_F(CsvTest, AnUnknownClassIsAnErrorThatNamesTheKnownOnes) {
  const std::string eval = file("e.csv", "age,id,job,income\n1,1,a,none\n");
  const auto opened = reader(
      csv("age,id,job,income\n1,1,a,high\n2,1,a,low\n", R"(, "eval_paths": [")" + eval + "\"]"),
      Split::kEval);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("e.csv:2"));
  EXPECT_THAT(opened.error().message, HasSubstr("(high, low)"));
}

TEST_F(CsvTest, LabelsThatAreNotWholeNumbersMakeARegression) {
  auto opened = reader(csv("age,id,job,income\n1,1,a,0.5\n2,1,a,-3\n"));
  ASSERT_OK(opened);
  EXPECT_EQ((*opened)->shape().classes, 1U);
}

TEST_F(CsvTest, OtherSeparatorsAndFilesWithoutHeaderAreRead) {
  const Examples examples =
      read_all(csv("39;1;clerk;0\n;1;;1\n", R"(, "separator": ";", "header": false)"));
  EXPECT_EQ(examples.count, 2U);
  EXPECT_EQ(examples.dense[1], 0.0F);
}

TEST_F(CsvTest, EachKindOfMalformedRowIsNamed) {
  const std::string header = "age,id,job,income\n";
  EXPECT_THAT(problem(header + "1,2,3\n"), HasSubstr("a.csv:2: 3 fields where 4 are expected"));
  EXPECT_THAT(problem(header + "1,2,3,0,5\n"), HasSubstr("more than the 4 fields"));
  EXPECT_THAT(problem(header + "old,2,3,0\n"), HasSubstr("field 1 (column 'age') is 'old'"));
  EXPECT_THAT(problem(header + "1,2,\"3,0\n"), HasSubstr("quoted field does not end"));
  EXPECT_THAT(problem(header + "1,2,\"3\"x,0\n"), HasSubstr("followed by something"));
  EXPECT_THAT(problem(header + "1,2,3,\n"), HasSubstr("the label is missing"));
  EXPECT_THAT(problem(header + "1,2,3,1\n1,2,3,yes\n"), HasSubstr("a.csv:3: the label is 'yes'"));
}

TEST_F(CsvTest, AHeaderThatDiffersFromTheColumnsIsAnErrorThatNamesBoth) {
  EXPECT_THAT(problem("age,id,work,income\n1,2,3,0\n"),
              HasSubstr("a.csv:1: the header says 'work' where data.columns says 'job'"));
}

TEST_F(CsvTest, ASchemaWithoutALabelIsRefused) {
  const auto summary = index(
      config("csv", file("a.csv", "1\n"), R"(, "columns": [{"name": "a", "kind": "numeric"}])"));
  ASSERT_FALSE(summary);
  EXPECT_THAT(summary.error().message, HasSubstr("label"));
}

}  // namespace
}  // namespace antdt::data
