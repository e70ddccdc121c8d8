// A slice of parameters on disk: "slice-07.rows", as trainer/ps/slice_image.h has it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/result.h"
#include "core/wire/messages.h"
#include "trainer/ps/store.h"

namespace antdt::ps {

[[nodiscard]] std::string slice_file_name(std::uint32_t slice);

// Synced; size and checksum are in the answer. `progress` is called whenever a further part of
// it, of a bounded size, is on the disk.
[[nodiscard]] Result<wire::CheckpointFile> write_slice(
    const std::string& directory, const Store& store, std::uint32_t slice,
    const std::function<void()>& progress = [] {});
// Fills a slice of which there is no row yet. kIo, and kCorrupt as decode_slice()
// has it; both name the file.
[[nodiscard]] Status read_slice(const std::string& directory, Store& store, std::uint32_t slice);

}  // namespace antdt::ps
