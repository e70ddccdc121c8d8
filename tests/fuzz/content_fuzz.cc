// A data file, plain or packed, and access points to it as an index may have them. The lines that
// the pass over the file finds are read again, from the access points that it found; each is as it
// was.
#include <algorithm>
#include <utility>
#include <vector>

#include "tests/fuzz/support/fuzz.h"
#include "trainer/data/content/contents.h"
#include "trainer/data/content/line_scan.h"

namespace {

using namespace antdt;

using Lines = std::vector<std::pair<std::string, std::uint64_t>>;

data::Contents contents_of(const fuzz::MemoryFile& file, data::Points points) {
  data::Contents contents;
  contents.add(std::move(*data::MappedFile::open(file.path())), std::move(points));
  return contents;
}

}  // namespace

ANTDT_FUZZ_TARGET(content)(const std::uint8_t* bytes, std::size_t size) {
  static const fuzz::MemoryFile file;
  fuzz::Input input(bytes, size);
  file.write(input.long_part());
  const auto mapped = data::MappedFile::open(file.path());
  ANTDT_CHECK(mapped.has_value(), "{}", mapped.error().message);
  Lines lines;
  const auto found =
      scan_lines(*mapped, [&](std::string_view line, std::uint64_t offset) -> Status {
        if (lines.size() < 1000) lines.emplace_back(line, offset);
        return {};
      });
  if (found) {
    auto points = data::decode_points(*found, mapped->bytes().size());
    ANTDT_CHECK(points.has_value(), "own points are refused: {}", points.error().message);
    data::Contents contents = contents_of(file, std::move(*points));
    for (std::size_t i = lines.size(); i-- > 0;) {
      const auto line = contents.line(0, lines[i].second);
      ANTDT_CHECK(line && *line == lines[i].first, "line {} is another", i);
    }
  }
  auto others = data::decode_points(input.rest(), mapped->bytes().size());
  if (!others || others->content_bytes == 0) return 0;
  const std::uint64_t last = std::min<std::uint64_t>(others->content_bytes, 4 << 20) - 1;
  data::Contents contents = contents_of(file, std::move(*others));
  (void)contents.line(0, last);
  (void)contents.line(0, 0);
  return 0;
}
