// The content of a bug report, made from what was read of a run. Pure.
#pragma once

#include <string>
#include <vector>

#include "launcher/diagnose/redact.h"
#include "launcher/diagnose/tar.h"

namespace antdt::launcher {

enum class PartKind { kText, kJson, kJsonLines };

// A file of the report, as it was read.
struct ReportPart {
  std::string name;
  std::string text;
  PartKind kind = PartKind::kText;
  bool cut = false;  // the file is longer; this is its end
};

struct ReportSources {
  std::string configuration;  // job.json
  std::vector<ReportPart> parts;
  std::vector<std::string> left_out;  // what was not read, and why
};

struct BugReport {
  std::vector<ArchivedFile> files;    // the first one, left-out.txt, has the lines of left_out
  std::vector<std::string> left_out;  // for people: a line for each subject
};

// Nothing comes into the report that has not gone through the redactor. Without a configuration
// that can be read, the other parts are there all the same.
[[nodiscard]] BugReport bug_report(const ReportSources& sources, Redactor redactor);

}  // namespace antdt::launcher
