#include "trainer/data/content/points.h"

#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "core/check.h"

namespace antdt::data {
namespace {

constexpr std::size_t kHead = 4 * 8;
constexpr std::size_t kPlace = 4 * 8;
constexpr int kFast = 1;  // windows are packed for size on the disk, not for ever

using Words = std::array<std::uint64_t, 4>;

Words words_at(std::string_view bytes, std::size_t at) {
  Words words{};
  std::memcpy(words.data(), bytes.data() + at, sizeof words);
  return words;
}

void append(std::string& text, const Words& words) {
  text.append(reinterpret_cast<const char*>(words.data()), sizeof words);
}

bool begins_zstd(std::string_view bytes) {
  // a frame, or one that is to be skipped, as pzstd writes them
  return bytes.starts_with("\x28\xb5\x2f\xfd") ||
         (bytes.size() >= 4 && (bytes[0] & 0xf0) == 0x50 && bytes.substr(1, 3) == "\x2a\x4d\x18");
}

bool begins_bzip2(std::string_view bytes) {
  // "BZh", a digit for the size of its blocks, and what a block begins with
  constexpr std::size_t kDigit = 3;
  return bytes.size() > kDigit && bytes.starts_with("BZh") &&
         bytes.substr(kDigit + 1).starts_with("1AY&SY");
}

}  // namespace

Result<Packing> packing_of(const std::string& path, std::string_view bytes) {
  if (bytes.starts_with("\x1f\x8b")) return Packing::kGzip;
  if (begins_zstd(bytes)) return Packing::kZstd;
  if (begins_bzip2(bytes)) {
    return fail(ErrorKind::kUsage,
                "{} is packed by bzip2, whose files are not read: pack it by gzip or zstd "
                "('bunzip2 -c {} | gzip > …')",
                path, path);
  }
  if (bytes.starts_with("\xfd"
                        "7zXZ")) {
    return fail(ErrorKind::kUsage,
                "{} is packed by xz, whose files are not read: pack it by gzip or zstd "
                "('xz -dc {} | gzip > …')",
                path, path);
  }
  return Packing::kPlain;
}

const AccessPoint& Points::before(std::uint64_t out) const {
  const auto after =
      std::upper_bound(points.begin(), points.end(), out,
                       [](std::uint64_t at, const AccessPoint& p) { return at < p.out; });
  ANTDT_CHECK(after != points.begin(), "no access point before byte {}", out);
  return *std::prev(after);
}

Result<Points> decode_points(std::string_view encoded, std::uint64_t file_bytes) {
  if (encoded.empty()) return Points{Packing::kPlain, file_bytes, {}};
  const auto broken = [] {
    return fail(ErrorKind::kCorrupt, "the access points of an index contradict each other");
  };
  if (encoded.size() < kHead) return broken();
  const auto [packing, content, count, window_bytes] = words_at(encoded, 0);
  if (packing != static_cast<std::uint64_t>(Packing::kGzip) &&
      packing != static_cast<std::uint64_t>(Packing::kZstd)) {
    return broken();
  }
  const std::uint64_t room = encoded.size() - kHead;
  if (count == 0 || count > room / kPlace || window_bytes > room - count * kPlace) return broken();
  const std::string_view windows = encoded.substr(kHead + count * kPlace, window_bytes);
  Points decoded{static_cast<Packing>(packing), content, {}};
  decoded.points.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto [out, in, at, rest] = words_at(encoded, kHead + i * kPlace);
    const std::uint64_t size = rest & 0xffffffff;
    AccessPoint point{
        out, in, (rest >> 40 & 1) != 0, static_cast<std::uint8_t>(rest >> 32 & 0xff), {}};
    if (at > windows.size() || size > windows.size() - at) return broken();
    point.window = windows.substr(at, size);
    const bool first = decoded.points.empty();
    if (first ? out != 0 || point.inside : out <= decoded.points.back().out) return broken();
    if (!first && in <= decoded.points.back().in) return broken();
    if (in > file_bytes || out > content || point.bits > 7 || (point.bits > 0 && in == 0)) {
      return broken();
    }
    decoded.points.push_back(point);
  }
  return decoded;
}

void PointsBuilder::add(AccessPoint point, std::string_view window) {
  const std::uint64_t at = windows_bytes_;
  if (!window.empty()) {
    std::string packed(ZSTD_compressBound(window.size()), '\0');
    const std::size_t size =
        ZSTD_compress(packed.data(), packed.size(), window.data(), window.size(), kFast);
    ANTDT_CHECK(ZSTD_isError(size) == 0, "packing a window: {}", ZSTD_getErrorName(size));
    const std::string_view window_packed = std::string_view(packed).substr(0, size);
    keep_ ? keep_(window_packed) : void(windows_ += window_packed);
    windows_bytes_ += size;
  }
  const std::uint64_t rest = (windows_bytes_ - at) | std::uint64_t{point.bits} << 32 |
                             std::uint64_t{point.inside ? 1U : 0U} << 40;
  points_.push_back({point.out, point.in, at, rest});
}

PointsFound PointsBuilder::found(std::uint64_t content_bytes) const {
  PointsFound found;
  found.windows_bytes = windows_bytes_;
  append(found.front,
         {static_cast<std::uint64_t>(packing_), content_bytes, points_.size(), windows_bytes_});
  for (const Place& p : points_) append(found.front, {p.out, p.in, p.at, p.rest});
  return found;
}

std::string PointsBuilder::encode(std::uint64_t content_bytes) const {
  const PointsFound points = found(content_bytes);
  return points.front + windows_ + std::string(points.zeros(), '\0');
}

}  // namespace antdt::data
