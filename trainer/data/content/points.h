// The places of a packed file from which unpacking can begin.
//
// zlib needs the 32 KiB of content before a place, and the bits of a byte that two blocks share
// (as the zran example of zlib explains). zstd can begin where a frame begins. An index keeps the
// places of each packed file:
//
//   packing, content_bytes, points, window_bytes        4 x u64
//   out, in, window_at, window_bytes | bits << 32 | inside << 40    4 x u64 for each point
//   the windows, each packed by zstd                     window_bytes
//
// little-endian, with zeros up to a multiple of 8 bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace antdt::data {

enum class Packing : std::uint64_t { kPlain = 0, kGzip = 1, kZstd = 2 };

// By the first bytes of the file. kUsage for archives whose middle cannot be read.
[[nodiscard]] Result<Packing> packing_of(const std::string& path, std::string_view bytes);

struct AccessPoint {
  std::uint64_t out = 0;    // place in the content
  std::uint64_t in = 0;     // place in the file
  bool inside = false;      // gzip: inside a member; otherwise a member or frame begins here
  std::uint8_t bits = 0;    // gzip: bits of the byte before `in` that are still to be read
  std::string_view window;  // gzip: what comes before `out`, packed by zstd
};

// The points of one file. Windows refer to the bytes that were decoded.
struct Points {
  Packing packing = Packing::kPlain;
  std::uint64_t content_bytes = 0;
  std::vector<AccessPoint> points;  // ascending, the first at 0; none of a plain file

  // The last point at or before `out`. There is one.
  [[nodiscard]] const AccessPoint& before(std::uint64_t out) const;
};

// kCorrupt unless the points are in order and inside a file of `file_bytes` bytes. No bytes stand
// for a plain file, whose content is the file.
[[nodiscard]] Result<Points> decode_points(std::string_view encoded, std::uint64_t file_bytes);

// The encoded points of a file without their windows, which are most of the bytes: they stand
// behind `front` in the order in which they were found, with zeros up to a multiple of 8 bytes.
struct PointsFound {
  std::string front;  // empty: the file is not packed
  std::uint64_t windows_bytes = 0;
  [[nodiscard]] std::uint64_t zeros() const { return (8 - (front.size() + windows_bytes) % 8) % 8; }
  [[nodiscard]] std::uint64_t bytes() const { return front.size() + windows_bytes + zeros(); }
};
using KeepWindow = std::function<void(std::string_view packed)>;

// Collects points during the pass over a file.
class PointsBuilder {
 public:
  // As much content between two points at least: unpacking it takes a few milliseconds.
  static constexpr std::uint64_t kSpan = std::uint64_t{1} << 20;

  // `keep` is given each window; without it they stay in memory, for encode().
  explicit PointsBuilder(Packing packing, KeepWindow keep = {})
      : packing_(packing), keep_(std::move(keep)) {}
  // Whether a point at `out` is far enough behind the last one.
  [[nodiscard]] bool wants(std::uint64_t out) const {
    return points_.empty() || out - points_.back().out >= kSpan;
  }
  // `window`: the content before, not packed yet; point.window is ignored.
  void add(AccessPoint point, std::string_view window);
  [[nodiscard]] PointsFound found(std::uint64_t content_bytes) const;
  [[nodiscard]] std::string encode(std::uint64_t content_bytes) const;

 private:
  struct Place {
    std::uint64_t out, in, at, rest;
  };
  Packing packing_;
  KeepWindow keep_;
  std::vector<Place> points_;
  std::uint64_t windows_bytes_ = 0;
  std::string windows_;  // without keep_
};

}  // namespace antdt::data
