// The one pass over a data file.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/result.h"
#include "trainer/data/content/points.h"
#include "trainer/data/index/mapped_file.h"

namespace antdt::data {

// A line without its end (LF or CR LF), and where in the content it begins. An error ends the pass.
using TakeLine = std::function<Status(std::string_view line, std::uint64_t offset)>;
// How much of a packed file has been read.
using Passed = std::function<void(std::uint64_t position)>;

// Calls `take` for each line of the file's content, unpacked if it is packed; what is behind the
// last line end is a line unless it is empty. Gives `keep` the windows of the file's access points,
// which may be some hundredths of the content, and answers the rest of the encoded points.
// `passed`, if any, is called for each piece of a packed file's content.
[[nodiscard]] Result<PointsFound> scan_lines(const MappedFile& file, const TakeLine& take,
                                             const KeepWindow& keep, const Passed& passed = {});
// The same for a file whose encoded points fit into memory; empty for a plain file.
[[nodiscard]] Result<std::string> scan_lines(const MappedFile& file, const TakeLine& take);

}  // namespace antdt::data
