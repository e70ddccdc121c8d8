// Removes secrets from what goes into a bug report. Pure.
//
// Removed are
//  - values that were named before (forget), wherever they occur;
//  - values of names that stand for secrets (launcher/diagnose/secret_words.h): NAME=value,
//    "name": "value", --name value;
//  - words with the form of a known token, "Bearer ...", user and password in a URL;
//  - private keys in PEM form;
//  - in a job's configuration the values of all variables of the environment, except of those that
//    are known to be harmless.
// A secret that has no such name or form, and was not named before, is not recognized: whoever
// sends a report has to look through it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace antdt::launcher {

inline constexpr std::string_view kRemoved = "(removed)";

class Redactor {
 public:
  // Shorter values are not removed by themselves: they occur by chance.
  static constexpr std::size_t kShortest = 6;

  void forget(const std::string& value);

  // `found`, if any, gets the values of names and the passwords in URLs that were removed.
  [[nodiscard]] std::string text(std::string_view text,
                                 std::vector<std::string>* found = nullptr) const;
  // The same JSON, indented by `indent` blanks (-1: on one line), with its texts redacted; what is
  // no JSON is redacted as a text.
  [[nodiscard]] std::string json(std::string_view json, int indent) const;
  // A JSON value on each line.
  [[nodiscard]] std::string json_lines(std::string_view lines) const;
  // A job's configuration (job.json), indented; kCorrupt if it is no JSON object. Secrets that were
  // removed from it are forgotten from then on.
  [[nodiscard]] Result<std::string> configuration(const std::string& json);
  // The variables of the environment whose values were removed from the configuration.
  [[nodiscard]] const std::vector<std::string>& variables() const { return variables_; }

 private:
  std::vector<std::string> values_;  // the longest first
  std::vector<std::string> variables_;
};

}  // namespace antdt::launcher
