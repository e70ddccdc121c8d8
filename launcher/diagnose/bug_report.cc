#include "launcher/diagnose/bug_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace antdt::launcher {
namespace {

std::string redacted(const ReportPart& part, const Redactor& redactor) {
  switch (part.kind) {
    case PartKind::kJson:
      return redactor.json(part.text, 2);
    case PartKind::kJsonLines:
      return redactor.json_lines(part.text);
    case PartKind::kText:
      break;
  }
  return redactor.text(part.text);
}

std::size_t removals(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = text.find(kRemoved); at != std::string_view::npos;
       at = text.find(kRemoved, at + kRemoved.size())) {
    ++count;
  }
  return count;
}

std::string join_names(std::vector<std::string> names) {
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  return fmt::format("{}", fmt::join(names, ", "));
}

void say_what_is_removed(BugReport& report, const Redactor& redactor) {
  std::size_t count = 0;
  std::vector<std::string> where;
  for (const ArchivedFile& file : report.files) {
    const std::size_t here = removals(file.content);
    if (here > 0) where.push_back(file.name);
    count += here;
  }
  if (!redactor.variables().empty()) {
    report.left_out.push_back(
        fmt::format("values of environment variables: {}", join_names(redactor.variables())));
  }
  if (count > 0) {
    report.left_out.push_back(
        fmt::format("what is or may be a secret, {} times in all, is replaced "
                    "by \"{}\" in {}",
                    count, kRemoved, join_names(std::move(where))));
  }
}

}  // namespace

BugReport bug_report(const ReportSources& sources, Redactor redactor) {
  BugReport report;
  report.left_out = {"keys and certificates: never read",
                     "the journal itself, checkpoints, models and data",
                     "job.toml and effective.toml: job.json says the same"};
  if (const auto configuration = redactor.configuration(sources.configuration)) {
    report.files.push_back({"job.json", *configuration});
  } else {
    report.left_out.push_back(fmt::format("job.json: {}", configuration.error().message));
  }
  std::vector<std::string> cut;
  for (const ReportPart& part : sources.parts) {
    report.files.push_back({part.name, redacted(part, redactor)});
    if (part.cut) cut.push_back(part.name);
  }
  if (!cut.empty()) {
    report.left_out.push_back(fmt::format("older lines of {}", join_names(std::move(cut))));
  }
  for (const std::string& line : sources.left_out) {
    report.left_out.push_back(redactor.text(line));
  }
  say_what_is_removed(report, redactor);
  std::string text;
  for (const std::string& line : report.left_out) text += line + "\n";
  report.files.insert(report.files.begin(), {"left-out.txt", std::move(text)});
  return report;
}

}  // namespace antdt::launcher
