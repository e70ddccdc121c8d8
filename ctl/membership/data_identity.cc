#include "ctl/membership/data_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace antdt::ctl {
namespace {

using Files = std::vector<wire::DataFile>;

std::string text_of(const wire::DataFile& file) {
  return fmt::format("{} records in {} bytes, xxh3 {}", file.records, file.bytes, file.fingerprint);
}

// Describes a whole split, if its files are not listed.
std::string text_of(const wire::DataIdentity& data) {
  return fmt::format("{} records to train on and {} to evaluate on, fingerprint {} ({})",
                     data.train_records, data.eval_records,
                     data.fingerprint.empty() ? "not told" : data.fingerprint,
                     data.detail.empty() ? "files are not told" : data.detail);
}

std::optional<std::string> file_difference(const Files& expected, const Files& found,
                                           const std::string& who) {
  if (expected.empty() || found.empty()) return {};
  const auto [e, f] = std::ranges::mismatch(expected, found, same_file);
  if (e == expected.end() && f == found.end()) return {};
  if (e == expected.end()) {
    return fmt::format("{}: {} has {}; data.json has no such file", f->path, who, text_of(*f));
  }
  if (f == found.end()) {
    return fmt::format("{}: {} has no such file; data.json has {}", e->path, who, text_of(*e));
  }
  const std::string there = e->path == f->path ? "" : fmt::format(" ({})", e->path);
  return fmt::format("{}: {} has {}; data.json{} has {}", f->path, who, text_of(*f), there,
                     text_of(*e));
}

bool totals_differ(const wire::DataIdentity& expected, const wire::DataIdentity& found) {
  const auto differ = [&](std::uint64_t a, std::uint64_t b) {
    return a != b && (b != 0 || !found.fingerprint.empty());
  };
  return differ(expected.train_records, found.train_records) ||
         differ(expected.eval_records, found.eval_records) ||
         (!expected.fingerprint.empty() && !found.fingerprint.empty() &&
          expected.fingerprint != found.fingerprint);
}

}  // namespace

bool same_file(const wire::DataFile& a, const wire::DataFile& b) {
  return a.split == b.split && a.bytes == b.bytes && a.records == b.records &&
         a.fingerprint == b.fingerprint;
}

bool tells_nothing(const wire::DataIdentity& data) {
  return data.train_records == 0 && data.eval_records == 0 && data.fingerprint.empty() &&
         data.files.empty();
}

wire::DataIdentity data_in(const wire::DataIdentity& all, const PinnedData& pins,
                           std::string_view domain) {
  if (pins.empty() || all.files.empty()) return all;
  wire::DataIdentity own = all;
  own.files.clear();
  own.fingerprint.clear();
  own.detail.clear();
  if (pins.has("train")) own.train_records = pins.records_of("train", domain);
  if (pins.has("eval")) own.eval_records = pins.records_of("eval", domain);
  // There may be thousands of files.
  std::set<std::string_view> pinned_splits;
  std::set<std::pair<std::string_view, std::string_view>> here;  // split and path
  for (const PinnedPart& part : pins.parts) {
    pinned_splits.insert(part.split);
    if (part.domain != domain) continue;
    for (const std::string& file : part.files) here.emplace(part.split, file);
    for (const std::string& file : part.labels) here.emplace(part.split, file);
  }
  for (const wire::DataFile& file : all.files) {
    const bool everywhere = !pinned_splits.contains(file.split);
    if (everywhere || here.contains({file.split, file.path})) own.files.push_back(file);
  }
  return own;
}

std::optional<std::string> data_difference(const wire::DataIdentity& expected,
                                           const wire::DataIdentity& found,
                                           const std::string& who) {
  if (tells_nothing(expected) || tells_nothing(found)) return {};
  auto difference = file_difference(expected.files, found.files, who);
  if (!difference && totals_differ(expected, found)) {
    difference = fmt::format("{} has {}; data.json has {}", who, text_of(found), text_of(expected));
  }
  if (!expected.built_by.empty() && !found.built_by.empty() &&
      expected.built_by != found.built_by) {
    difference = fmt::format(
        "{}{} makes records of files by \"{}\", data.json by \"{}\" (install the same release of "
        "AntDT on every host)",
        difference ? *difference + "; " : "", who, found.built_by, expected.built_by);
  }
  return difference;
}

}  // namespace antdt::ctl
