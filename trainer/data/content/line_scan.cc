#include "trainer/data/content/line_scan.h"

#include <algorithm>

#include "trainer/data/content/contents.h"
#include "trainer/data/content/unpacker.h"

namespace antdt::data {
namespace {

Status take_without_end(const TakeLine& take, std::string_view line, std::uint64_t offset) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return take(line, offset);
}

// The whole lines of `text`, which begins at `offset` of the content; answers what is left.
Result<std::string_view> take_whole(std::string_view text, std::uint64_t offset,
                                    const TakeLine& take) {
  std::size_t at = 0;
  for (std::size_t end = text.find('\n'); end != std::string_view::npos;
       end = text.find('\n', at)) {
    ANTDT_RETURN_IF_ERROR(take_without_end(take, text.substr(at, end - at), offset + at));
    at = end + 1;
  }
  return text.substr(at);
}

}  // namespace

Result<std::string> scan_lines(const MappedFile& file, const TakeLine& take) {
  std::string windows;
  ANTDT_TRY(const PointsFound found,
            scan_lines(file, take, [&](std::string_view window) { windows += window; }));
  return found.front + windows + std::string(found.zeros(), '\0');
}

Result<PointsFound> scan_lines(const MappedFile& file, const TakeLine& take, const KeepWindow& keep,
                               const Passed& passed) {
  file.expect_sequential();
  ANTDT_TRY(const Packing packing, packing_of(file.path(), file.bytes()));
  if (packing == Packing::kPlain) {
    ANTDT_TRY(const std::string_view rest, take_whole(file.bytes(), 0, take));
    if (!rest.empty()) {
      ANTDT_RETURN_IF_ERROR(take_without_end(take, rest, file.bytes().size() - rest.size()));
    }
    return PointsFound();
  }
  PointsBuilder points(packing, keep);
  ANTDT_TRY(const auto unpacker, unpack(packing, file.path(), file.bytes(), {}, &points));
  std::string text;          // a line that is not whole yet, and what was unpacked behind it
  std::uint64_t offset = 0;  // of text
  std::size_t searched = 0;  // without a line end
  while (true) {
    const std::size_t kept = text.size();
    if (kept > kLongestLine) {
      return fail(ErrorKind::kUsage,
                  "{} has a line of more than {} MiB at byte {} of its content: "
                  "is this text?",
                  file.path(), kLongestLine >> 20, offset);
    }
    text.resize(kept + PointsBuilder::kSpan);
    ANTDT_TRY(const std::size_t more, unpacker->read(std::span(text).subspan(kept)));
    text.resize(kept + more);
    if (passed) passed(unpacker->position());
    if (more == 0) break;
    if (text.find('\n', searched) == std::string::npos) {
      searched = text.size();
      continue;
    }
    ANTDT_TRY(const std::string_view rest, take_whole(text, offset, take));
    offset += text.size() - rest.size();
    text = std::string(rest);
    searched = text.size();
  }
  if (!text.empty()) ANTDT_RETURN_IF_ERROR(take_without_end(take, text, offset));
  return points.found(offset + text.size());
}

}  // namespace antdt::data
