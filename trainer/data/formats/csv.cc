#include "trainer/data/formats/csv.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "trainer/data/formats/features.h"

namespace antdt::data {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

bool read_number(std::string_view text, double& value) {
  if (text.empty()) {
    value = std::numeric_limits<double>::quiet_NaN();
    return true;
  }
  if (text.front() == '+') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
}

}  // namespace

CsvFormat::CsvFormat(std::vector<Column> columns, char separator, bool header)
    : columns_(std::move(columns)), separator_(separator), header_(header) {
  for (const Column& column : columns_) {
    numbers_ += column.kind == ColumnKind::kNumeric ? 1 : 0;
    categories_ += column.kind == ColumnKind::kCategory ? 1 : 0;
  }
}

std::string CsvFormat::next_field(std::string_view& rest, bool& more, std::string& unquoted,
                                  std::string_view& field) const {
  std::size_t start = rest.find_first_not_of(' ');
  std::size_t end = std::string_view::npos;
  if (start != std::string_view::npos && rest[start] == '"') {
    unquoted.clear();
    std::size_t at = start + 1;
    while (true) {
      const std::size_t quote = rest.find('"', at);
      if (quote == std::string_view::npos) return "a quoted field does not end on its line";
      unquoted.append(rest.substr(at, quote - at));
      at = quote + 1;
      if (at >= rest.size() || rest[at] != '"') break;
      unquoted.push_back('"');
      ++at;
    }
    field = unquoted;
    end = rest.find(separator_, at);
    if (!trimmed(rest.substr(at, end - at)).empty()) {
      return "a quoted field is followed by something that is not the separator";
    }
  } else {
    end = rest.find(separator_);
    field = trimmed(rest.substr(0, end));
  }
  more = end != std::string_view::npos;
  rest = more ? rest.substr(end + 1) : std::string_view{};
  return {};
}

bool CsvFormat::parse(std::string_view line, Row& row) const {
  row.numbers.clear();
  row.keys.clear();
  std::string unquoted;
  std::string_view field;
  bool more = true;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const Column& column = columns_[i];
    if (!more) {
      row.problem = fmt::format("{} fields where {} are expected", i, columns_.size());
      return false;
    }
    const char* before = line.data();
    row.problem = next_field(line, more, unquoted, field);
    if (!row.problem.empty()) return false;
    if (column.kind == ColumnKind::kLabel) {
      // A label with doubled quotes would not outlive `unquoted`; a label in plain quotes refers
      // into the line itself.
      if (field.data() == unquoted.data() && !field.empty()) {
        const char* quote = before;
        while (*quote != '"') ++quote;
        field = std::string_view(quote + 1, field.size());
      }
      row.label = field;
    } else if (column.kind == ColumnKind::kNumeric) {
      double number = 0;
      if (!read_number(field, number)) {
        row.problem = fmt::format("field {} (column '{}') is '{}', not a number", i + 1,
                                  column.name, field.substr(0, 40));
        return false;
      }
      row.numbers.push_back(number);
    } else if (column.kind == ColumnKind::kCategory) {
      row.keys.push_back(field.empty() ? kMissingKey : text_key(field));
    }
  }
  if (more) row.problem = fmt::format("more than the {} fields expected", columns_.size());
  return !more;
}

std::string CsvFormat::check_header(std::string_view line) const {
  std::string unquoted;
  std::string_view field;
  bool more = true;
  for (const Column& column : columns_) {
    if (!more) return fmt::format("the header has no column '{}'", column.name);
    if (std::string problem = next_field(line, more, unquoted, field); !problem.empty()) {
      return problem;
    }
    if (field != column.name) {
      return fmt::format(
          "the header says '{}' where data.columns says '{}' (list the columns in "
          "the file's order, with kind \"ignore\" for those not wanted)",
          field, column.name);
    }
  }
  return more ? fmt::format("the header has more than the {} columns of data.columns",
                            columns_.size())
              : "";
}

}  // namespace antdt::data
