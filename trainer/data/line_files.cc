#include "trainer/data/line_files.h"

#include <algorithm>

namespace antdt::data {
namespace {

// Whether the files are listed in order and cover all records, each with its offset.
bool is_whole(const Index& index) {
  const std::uint64_t records = index.meta().records;
  std::uint64_t next = 0;
  for (const IndexedFile& file : index.meta().files) {
    if (file.first_record != next || file.records > records - next) return false;
    next += file.records;
  }
  return next == records && index.offsets().size() == records;
}

}  // namespace

Result<LineFiles> LineFiles::open(Index index) {
  LineFiles lines(std::move(index));
  const auto& files = lines.meta().files;
  if (!is_whole(lines.index_)) {
    return fail(ErrorKind::kCorrupt,
                "the index of the data contradicts itself: delete the cache of indexes "
                "($XDG_CACHE_HOME/antdt) and start again");
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    ANTDT_TRY(MappedFile file, open_text_file(files[i].path));
    if (file.bytes().size() != files[i].bytes) {
      return fail(ErrorKind::kCorrupt, "{} has changed while it was in use", files[i].path);
    }
    ANTDT_TRY(Points points, decode_points(lines.index_.points(i), files[i].bytes));
    lines.contents_.add(std::move(file), std::move(points));
  }
  return lines;
}

std::size_t LineFiles::file_of(std::uint64_t record) const {
  const auto& files = meta().files;
  const auto after = std::upper_bound(
      files.begin(), files.end(), record,
      [](std::uint64_t number, const IndexedFile& file) { return number < file.first_record; });
  return static_cast<std::size_t>(after - files.begin()) - 1;
}

Result<std::string_view> LineFiles::line(std::uint64_t record) {
  if (record >= records()) {
    return fail(ErrorKind::kCorrupt, "record {} was asked for, and the data set has {}", record,
                records());
  }
  return contents_.line(file_of(record), index_.offsets()[record]);
}

void LineFiles::expect(std::uint64_t record) const {
  if (record < records()) contents_.expect(file_of(record), index_.offsets()[record]);
}

std::string LineFiles::place_of(std::uint64_t record) const {
  return fmt::format("{} at byte {} (record {})", meta().files[file_of(record)].path,
                     index_.offsets()[record], record);
}

}  // namespace antdt::data
