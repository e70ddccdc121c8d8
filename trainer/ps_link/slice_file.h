// A slice of parameters on disk: "slice-07.rows", as trainer/ps/rows/slice_image.h has it.
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

// Synced; size and checksum are in the answer. `progress` is called whenever a further part of
// it, of a bounded size, is on the disk.
[[nodiscard]] Result<wire::CheckpointFile> write_slice(
    const std::string& directory, const Store& store, std::uint32_t slice,
    const std::function<void()>& progress = [] {});
// These slices of a checkpoint, one after another: each is held a second time while it is taken
// in, and compared with MANIFEST.json before. `progress` is told after each part how many bytes of
// how many are read. An error names the file; what is in the store then is no state.
using ReadProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;
[[nodiscard]] Status read_slices(const std::string& directory,
                                 const std::vector<std::uint32_t>& slices, Store& store,
                                 const ReadProgress& progress);
// Fills a slice of which there is no row yet. kIo, and kCorrupt as decode_slice()
// has it; both name the file.
[[nodiscard]] Status read_slice(const std::string& directory, Store& store, std::uint32_t slice);

}  // namespace antdt::ps
