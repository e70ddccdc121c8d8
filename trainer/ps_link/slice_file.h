// A slice of parameters on disk: "slice-07.rows", in the format of trainer/ps/rows/slice_image.h.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/wire/training_messages.h"
#include "trainer/ps/rows/store.h"

namespace antdt::ps {

[[nodiscard]] std::string slice_file_name(std::uint32_t slice);

// Writes and syncs; the answer has size and checksum. `progress` is called whenever another part,
// of a bounded size, is on the disk, with its bytes.
[[nodiscard]] Result<wire::CheckpointFile> write_slice(
    const std::string& directory, const Store& store, std::uint32_t slice,
    const std::function<void(std::uint64_t bytes)>& progress = [](std::uint64_t) {});
// Reads these slices of a checkpoint one after another. Each is in memory twice while it is read
// in, and is compared with MANIFEST.json before. `progress` is called after each part with the
// bytes read and the total. The error names the file; then the content of the store is not a valid
// state.
using ReadProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;
[[nodiscard]] Status read_slices(const std::string& directory,
                                 const std::vector<std::uint32_t>& slices, Store& store,
                                 const ReadProgress& progress);
// Fills a slice that has no rows yet. kIo, and kCorrupt as in decode_slice(); both name the file.
[[nodiscard]] Status read_slice(const std::string& directory, Store& store, std::uint32_t slice);

}  // namespace antdt::ps
