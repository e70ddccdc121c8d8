#include "core/metrics/exposition.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace antdt::metrics {
namespace {

TEST(ExpositionTest, AFamilyHasItsHelpItsTypeAndALineForEachSample) {
  Families families;
  Family& speed = families.gauge("antdt_speed", "samples a second");
  speed.add(12.5, {{"worker", "w0"}});
  speed.add(3, {{"worker", "w1"}, {"host", "a"}});
  families.counter("antdt_steps_total", "steps", 1e6);
  EXPECT_EQ(to_text(families),
            "# HELP antdt_speed samples a second\n"
            "# TYPE antdt_speed gauge\n"
            "antdt_speed{worker=\"w0\"} 12.5\n"
            "antdt_speed{worker=\"w1\",host=\"a\"} 3\n"
            "# HELP antdt_steps_total steps\n"
            "# TYPE antdt_steps_total counter\n"
            "antdt_steps_total 1000000\n");
}

TEST(ExpositionTest, CommonLabelsComeBeforeAnySamplesOwn) {
  Families families(Labels{{"run", "r1"}});
  families.gauge("a", "h", 1);
  families.gauge("b", "h").add(2, {{"x", "y"}});
  const std::string text = to_text(families);
  EXPECT_NE(text.find("\na{run=\"r1\"} 1\n"), text.npos) << text;
  EXPECT_NE(text.find("\nb{run=\"r1\",x=\"y\"} 2\n"), text.npos) << text;
}

TEST(ExpositionTest, AFamilyWithoutSamplesIsLeftOut) {
  Families families;
  families.gauge("a", "h");
  EXPECT_EQ(to_text(families), "");
}

TEST(ExpositionTest, LabelsAndHelpAreEscaped) {
  Families families;
  families.gauge("a", "back\\slash, \"quotes\"\nand lines").add(1, {{"l", "\\ \" \n"}});
  EXPECT_EQ(to_text(families),
            "# HELP a back\\\\slash, \"quotes\"\\nand lines\n"
            "# TYPE a gauge\n"
            "a{l=\"\\\\ \\\" \\n\"} 1\n");
}

std::string label_as_written(const std::string& value) {
  Families families;
  families.gauge("a", "h").add(1, {{"l", value}});
  const std::string text = to_text(families);
  const std::size_t begin = text.find("l=\"") + 3;
  return text.substr(begin, text.find("\"} 1") - begin);
}

TEST(ExpositionTest, WhatIsNoUtf8IsReplaced) {
  EXPECT_EQ(label_as_written("h\xC3\xB6st"), "h\xC3\xB6st");
  EXPECT_EQ(label_as_written("\xF0\x9F\x98\x80"), "\xF0\x9F\x98\x80");
  EXPECT_EQ(label_as_written("a\xBCz"), "a\uFFFDz");
  EXPECT_EQ(label_as_written("a\xC3"), "a\uFFFD") << "cut off inside a character";
  EXPECT_EQ(label_as_written("\xC0\xAF"), "\uFFFD\uFFFD") << "not the shortest form";
  EXPECT_EQ(label_as_written("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD") << "half of a surrogate pair";
  EXPECT_EQ(label_as_written("\xF4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD") << "above U+10FFFF";
}

TEST(ExpositionTest, ALongLabelIsCutAfterAWholeCharacter) {
  EXPECT_EQ(label_as_written(std::string(kMostOfALabel, 'x')), std::string(kMostOfALabel, 'x'));
  EXPECT_EQ(label_as_written(std::string(5000, 'x')), std::string(kMostOfALabel, 'x'));
  const std::string before(kMostOfALabel - 1, 'x');
  EXPECT_EQ(label_as_written(before + "\xC3\xB6" + "yy"), before);
}

TEST(ExpositionTest, NumbersThatAreNoneHaveTheFormatsNames) {
  Families families;
  Family& a = families.gauge("a", "h");
  a.add(std::nan(""));
  a.add(std::numeric_limits<double>::infinity());
  a.add(-std::numeric_limits<double>::infinity());
  EXPECT_EQ(to_text(families), "# HELP a h\n# TYPE a gauge\na NaN\na +Inf\na -Inf\n");
}

TEST(ExpositionTest, TheBucketsOfAHistogramAddUp) {
  Families families(Labels{{"run", "r"}});
  Histogram times({0.1, 1});
  for (const double seconds : {0.05, 0.1, 0.5, 7.0}) times.observe(seconds);
  families.histogram("t_seconds", "times", times);
  EXPECT_EQ(to_text(families),
            "# HELP t_seconds times\n"
            "# TYPE t_seconds histogram\n"
            "t_seconds_bucket{run=\"r\",le=\"0.1\"} 2\n"
            "t_seconds_bucket{run=\"r\",le=\"1\"} 3\n"
            "t_seconds_bucket{run=\"r\",le=\"+Inf\"} 4\n"
            "t_seconds_sum{run=\"r\"} 7.65\n"
            "t_seconds_count{run=\"r\"} 4\n");
}

}  // namespace
}  // namespace antdt::metrics
