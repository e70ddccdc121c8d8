// A slice of all tables as bytes: the content of a checkpoint's file, and what is copied when a
// slice moves.
//
// Little endian:
//   16 bytes  "antdt slice 1" and zeros
//   u32 slice, u32 number of tables
//   for each table
//     u32 length of its name, the name
//     u32 width, u32 state (floats), u64 rows
//     for each row: u64 key, `width` values, `state` floats of its optimizer
//
// The bytes depend on the order in which rows were made. Reading them gives the same rows with the
// same floats, to the last bit.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "core/result.h"
#include "trainer/ps/rows/store.h"

namespace antdt::ps {

// Passes the bytes to `sink` piece by piece, because a slice may not fit in memory twice.
void encode_slice(const Store& store, std::uint32_t slice,
                  const std::function<void(std::string_view)>& sink);

// The number of these bytes.
[[nodiscard]] std::uint64_t slice_bytes(const Store& store, std::uint32_t slice);

// Fills a slice that has no rows yet. Errors (kCorrupt): the bytes end early or late, belong to
// another slice or to other tables than the store's, or a key belongs to another slice or occurs
// twice. After an error the slice may hold some of the rows.
[[nodiscard]] Status decode_slice(Store& store, std::uint32_t slice, std::string_view bytes);

}  // namespace antdt::ps
