// A slice of all tables as bytes: what a file of a checkpoint holds, and what is
// copied when a slice moves.
//
// Little endian:
//   16 bytes  "antdt slice 1" and zeros
//   u32 slice, u32 number of tables
//   for each table
//     u32 length of its name, the name
//     u32 width, u32 state (floats), u64 rows
//     for each row: u64 key, `width` values, `state` floats of its optimizer
//
// The bytes depend on the order in which rows were made; what is read back is
// the same rows with the same floats, to the last bit.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "core/result.h"
#include "trainer/ps/rows/store.h"

namespace antdt::ps {

// Gives the bytes to `sink` piece by piece: a slice need not fit in memory twice.
void encode_slice(const Store& store, std::uint32_t slice,
                  const std::function<void(std::string_view)>& sink);

// Fills a slice that has no rows yet. Errors (kCorrupt): bytes that end early or late, another
// slice or other tables than the store's, a key that belongs to another slice or comes twice.
// After an error the slice may hold some of the rows.
[[nodiscard]] Status decode_slice(Store& store, std::uint32_t slice, std::string_view bytes);

}  // namespace antdt::ps
