#include "launcher/diagnose/bug_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antdt::launcher {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

const std::string& content_of(const BugReport& report, const std::string& name) {
  static const std::string none = "(there is no such file)";
  for (const ArchivedFile& file : report.files) {
    if (file.name == name) return file.content;
  }
  return none;
}

TEST(BugReport, HasASecretOfTheConfigurationNowhere) {
  ReportSources sources;
  sources.configuration = R"({"roles": {"worker": {"env": {"LICENSE": "s3cret-value"}}}})";
  sources.parts = {{"status.json", R"({"message": "s3cret-value"})", PartKind::kJson},
                   {"events.jsonl", "{\"text\":\"a s3cret-value\"}\n", PartKind::kJsonLines},
                   {"logs/w0.1.out", "got s3cret-value\n", PartKind::kText}};
  sources.left_out = {"logs/s3cret-value: it cannot be read"};
  const BugReport report = bug_report(sources, Redactor());
  for (const ArchivedFile& file : report.files) {
    EXPECT_THAT(file.content, Not(HasSubstr("s3cret"))) << file.name;
  }
  for (const std::string& line : report.left_out) EXPECT_THAT(line, Not(HasSubstr("s3cret")));
  EXPECT_EQ(content_of(report, "events.jsonl"), "{\"text\":\"a (removed)\"}\n");
}

TEST(BugReport, SaysWhatIsLeftOut) {
  ReportSources sources;
  sources.configuration = R"({"roles": {"worker": {"env": {"LICENSE": "value"}}}})";
  sources.parts = {{"logs/w0.1.out", "ok\n", PartKind::kText, true}};
  sources.left_out = {"status: nobody answers"};
  const BugReport report = bug_report(sources, Redactor());
  EXPECT_THAT(report.left_out, Contains("values of environment variables: LICENSE"));
  EXPECT_THAT(report.left_out, Contains("older lines of logs/w0.1.out"));
  EXPECT_THAT(report.left_out, Contains("status: nobody answers"));
  EXPECT_THAT(report.left_out,
              Contains(HasSubstr("1 times in all, is replaced by \"(removed)\" in job.json")));
  EXPECT_EQ(report.files.front().name, "left-out.txt");
  EXPECT_THAT(report.files.front().content, HasSubstr("LICENSE"));
}

TEST(BugReport, IsMadeWithoutAConfigurationThatCanBeRead) {
  ReportSources sources;
  sources.configuration = "{\"roles\": ";
  sources.parts = {{"agent.log", "it began\n", PartKind::kText}};
  const BugReport report = bug_report(sources, Redactor());
  EXPECT_EQ(content_of(report, "agent.log"), "it began\n");
  EXPECT_THAT(report.left_out,
              Contains(HasSubstr("job.json: the configuration is no JSON object")));
  EXPECT_EQ(content_of(report, "job.json"), "(there is no such file)");
}

}  // namespace
}  // namespace antdt::launcher
