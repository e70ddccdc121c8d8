#include "core/drill/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

namespace antdt::drill {
namespace {

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  while (true) {
    const std::size_t comma = line.find(',');
    fields.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

struct Row {
  double time = 0;
  double batch = 0;
};

// The positions of the columns.
struct Header {
  std::size_t worker = 0, time = 0, batch = 0;
  [[nodiscard]] std::size_t last() const { return std::max({worker, time, batch}); }
};

Result<Header> header_of(std::string_view line) {
  const auto names = fields_of(line);
  const auto column = [&](std::string_view name) {
    return static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
  };
  const Header header{column("worker"), column("time"), column("batch_time_norm")};
  if (header.last() < names.size()) return header;
  return fail(ErrorKind::kUsage,
              "line 1: a trace needs the columns worker, time and batch_time_norm, and its header "
              "is '{}'",
              line);
}

}  // namespace

Result<Trace> Trace::parse(std::string_view csv) {
  std::map<std::uint32_t, std::vector<Row>> rows;
  std::optional<Header> header;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t number_of_line = 1; !csv.empty(); ++number_of_line) {
    const std::size_t end = csv.find('\n');
    std::string_view line = csv.substr(0, end);
    csv.remove_prefix(end == std::string_view::npos ? csv.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    if (!header) {
      ANTDT_TRY(header, header_of(line));
      continue;
    }
    const auto fields = fields_of(line);
    const bool whole = fields.size() > header->last();
    const auto worker = whole ? number<std::uint32_t>(fields[header->worker]) : std::nullopt;
    const auto time = whole ? number<double>(fields[header->time]) : std::nullopt;
    const auto batch = whole ? number<double>(fields[header->batch]) : std::nullopt;
    if (!worker || !time || !std::isfinite(*time) || !batch || !(*batch > 0) || *batch > 1e12) {
      return fail(ErrorKind::kUsage,
                  "line {}: '{}' does not give a worker's number, a time and a batch's time of "
                  "more than 0",
                  number_of_line, line.substr(0, 80));
    }
    rows[*worker].push_back({*time, *batch});
    least = std::min(least, *batch);
  }
  if (rows.empty()) return fail(ErrorKind::kUsage, "there is no batch in it");
  Trace trace;
  for (auto& [worker, batches] : rows) {
    std::ranges::stable_sort(batches, {}, &Row::time);
    std::vector<double>& out = trace.by_worker_.emplace_back();
    for (const Row& row : batches) out.push_back(row.batch / least);
  }
  return trace;
}

}  // namespace antdt::drill
