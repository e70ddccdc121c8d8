// Packs texts for the tests of readers.
#pragma once

#include <zlib.h>
#include <zstd.h>

#include <string>
#include <string_view>

#include "core/check.h"

namespace antdt::data {

// One member of a gzip file.
inline std::string gzip(std::string_view text, int level = 6) {
  z_stream zlib{};
  ANTDT_CHECK(deflateInit2(&zlib, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK,
              "deflateInit2");
  std::string packed(deflateBound(&zlib, text.size()) + 64, '\0');
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  zlib.avail_in = static_cast<uInt>(text.size());
  zlib.next_out = reinterpret_cast<Bytef*>(packed.data());
  zlib.avail_out = static_cast<uInt>(packed.size());
  ANTDT_CHECK(deflate(&zlib, Z_FINISH) == Z_STREAM_END, "deflate");
  packed.resize(zlib.total_out);
  deflateEnd(&zlib);
  return packed;
}

// One frame.
inline std::string zstd(std::string_view text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 1));
  return packed;
}

// Frames of `bytes` bytes of text each.
inline std::string zstd_frames(std::string_view text, std::size_t bytes) {
  std::string packed;
  for (std::size_t at = 0; at < text.size(); at += bytes) packed += zstd(text.substr(at, bytes));
  return packed;
}

}  // namespace antdt::data
