#include "trainer/data/formats/labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antdt::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Labels learnt(bool may_be_names, const std::vector<const char*>& texts) {
  Labels labels(may_be_names);
  for (const char* text : texts) EXPECT_EQ(labels.learn(text), "");
  return labels;
}

TEST(LabelsTest, TheFirstLabelSaysThatTheyAreNames) {
  Labels labels = learnt(true, {"cat", "7", "dog", "cat"});
  EXPECT_THAT(labels.names(), ElementsAre("cat", "7", "dog"));
  EXPECT_EQ(labels.classes(), 3U);
  EXPECT_EQ(labels.value("dog"), 2.0F);
  EXPECT_EQ(labels.value("cow"), -1.0F);
}

TEST(LabelsTest, AfterANumberANameIsWrong) {
  Labels labels = learnt(true, {"0"});
  EXPECT_THAT(labels.learn("cat"), HasSubstr("not a number"));
  EXPECT_EQ(labels.classes(), 2U);
}

TEST(LabelsTest, AFormatWithoutNamesTakesNumbersAlsoAfterANameThatWasRefused) {
  Labels labels(false);
  EXPECT_THAT(labels.learn("cat"), HasSubstr("not a number"));
  EXPECT_EQ(labels.learn("4"), "");
  EXPECT_EQ(labels.classes(), 5U);
}

TEST(LabelsTest, OneNumberThatIsNoClassMakesNumbersOfAll) {
  Labels labels = learnt(true, {"3", "0.5", "2"});
  EXPECT_EQ(labels.classes(), 1U);
  EXPECT_EQ(labels.value("0.5"), 0.5F);
  EXPECT_EQ(labels.learn("-8"), "");
}

TEST(LabelsTest, FrozenClassesTakeNoneThatTheTrainingDataDoesNotHave) {
  Labels numbers({}, 4);
  numbers.freeze();
  EXPECT_EQ(numbers.learn("3"), "");
  EXPECT_THAT(numbers.learn("4"), HasSubstr("0 to 3"));
  EXPECT_THAT(numbers.learn("0.5"), HasSubstr("0 to 3"));
  EXPECT_EQ(numbers.classes(), 4U);
  Labels names({"cat", "dog"}, 2);
  names.freeze();
  EXPECT_THAT(names.learn("cow"), HasSubstr("(cat, dog)"));
  Labels any({}, 1);
  any.freeze();
  EXPECT_EQ(any.learn("-8.5"), "");
  EXPECT_EQ(any.classes(), 1U);
}

TEST(LabelsTest, ALabelThatIsMissingIsWrong) {
  Labels labels;
  EXPECT_EQ(labels.learn(""), "the label is missing");
}

}  // namespace
}  // namespace antdt::data
