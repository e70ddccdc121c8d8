#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>

#include "trainer/data/content/unpacker.h"

namespace antdt::data {
namespace {

constexpr std::size_t kWindow = 32768;
constexpr std::size_t kTrailer = 8;                   // CRC and length of a member
constexpr std::size_t kSlice = std::size_t{1} << 30;  // zlib counts in 32 bits
constexpr int kMember = 15 + 16;                      // with gzip's header and trailer
constexpr int kInside = -15;                          // without
constexpr int kIdleCalls = 8;  // that neither read nor write; zlib holds 4 bytes at most

class Gzip final : public Unpacker {
 public:
  Gzip(const std::string& path, std::string_view packed, PointsBuilder* found)
      : path_(path), packed_(packed), found_(found) {}
  ~Gzip() override {
    if (open_) inflateEnd(&zlib_);
  }

  [[nodiscard]] Status begin(const AccessPoint& from) {
    in_ = from.in;
    out_ = from.out;
    inside_ = from.inside;
    if (inflateInit2(&zlib_, inside_ ? kInside : kMember) != Z_OK) {
      return fail(ErrorKind::kIo, "{}: no memory to unpack it", path_);
    }
    open_ = true;
    if (found_ != nullptr) found_->add({out_, in_, false, 0, {}}, {});
    return inside_ ? enter(from) : Status{};
  }

  Result<std::size_t> read(std::span<char> out) override {
    std::size_t done = 0;
    while (done < out.size() && !ended_) {
      ANTDT_TRY(const std::size_t more,
                some(out.subspan(done, std::min(out.size() - done, kSlice))));
      done += more;
    }
    return done;
  }

  std::uint64_t position() const override { return in_; }

 private:
  // In the middle of a member: gives zlib what it would know by then.
  [[nodiscard]] Status enter(const AccessPoint& from) {
    std::array<unsigned char, kWindow> window{};
    const std::size_t size =
        from.window.empty()
            ? 0
            : ZSTD_decompress(window.data(), window.size(), from.window.data(), from.window.size());
    if (ZSTD_isError(size) != 0) return damaged("its index is damaged");
    if (from.bits > 0) {
      const int shared = static_cast<unsigned char>(packed_[from.in - 1]) >> (8 - from.bits);
      if (inflatePrime(&zlib_, from.bits, shared) != Z_OK) return damaged("its index is damaged");
    }
    if (size > 0 && inflateSetDictionary(&zlib_, window.data(), static_cast<uInt>(size)) != Z_OK) {
      return damaged("its index is damaged");
    }
    return {};
  }

  // One call of zlib.
  [[nodiscard]] Result<std::size_t> some(std::span<char> out) {
    const std::size_t given = std::min(packed_.size() - in_, kSlice);
    zlib_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed_.data() + in_));
    zlib_.avail_in = static_cast<uInt>(given);
    zlib_.next_out = reinterpret_cast<Bytef*>(out.data());
    zlib_.avail_out = static_cast<uInt>(out.size());
    const int result = inflate(&zlib_, found_ != nullptr ? Z_BLOCK : Z_NO_FLUSH);
    const std::size_t used = given - zlib_.avail_in;
    const std::size_t made = out.size() - zlib_.avail_out;
    in_ += used;
    out_ += made;
    if (result == Z_STREAM_END) {
      ANTDT_RETURN_IF_ERROR(end_member());
      return made;
    }
    if (result == Z_MEM_ERROR) return fail(ErrorKind::kIo, "{}: no memory to unpack it", path_);
    if (result != Z_OK && result != Z_BUF_ERROR) {
      return damaged(zlib_.msg != nullptr ? zlib_.msg : "it needs a dictionary");
    }
    // An empty block may lie in bits that zlib holds already, so one such call proves nothing.
    idle_calls_ = used == 0 && made == 0 ? idle_calls_ + 1 : 0;
    if (idle_calls_ > kIdleCalls) return damaged("it is cut short");
    const bool block_ended = (zlib_.data_type & 128) != 0 && (zlib_.data_type & 64) == 0;
    if (found_ != nullptr && block_ended && found_->wants(out_)) note_block();
    return made;
  }

  void note_block() {
    std::array<unsigned char, kWindow> window{};
    uInt size = 0;
    if (inflateGetDictionary(&zlib_, window.data(), &size) != Z_OK) return;
    found_->add({out_, in_, true, static_cast<std::uint8_t>(zlib_.data_type & 7), {}},
                {reinterpret_cast<const char*>(window.data()), size});
  }

  // Another member, zeros (tapes are padded) or the end of the file.
  [[nodiscard]] Status end_member() {
    if (inside_) {
      if (packed_.size() - in_ < kTrailer) return damaged("it is cut short");
      in_ += kTrailer;
      inside_ = false;
    }
    const std::string_view rest = packed_.substr(in_);
    if (rest.empty() || rest.find_first_not_of('\0') == std::string_view::npos) {
      ended_ = true;
      return {};
    }
    if (!rest.starts_with("\x1f\x8b")) return damaged("what follows is not packed by gzip");
    if (inflateReset2(&zlib_, kMember) != Z_OK) return damaged("zlib cannot begin a member");
    if (found_ != nullptr && found_->wants(out_)) found_->add({out_, in_, false, 0, {}}, {});
    return {};
  }

  [[nodiscard]] tl::unexpected<Error> damaged(std::string_view why) const {
    return fail(ErrorKind::kCorrupt,
                "{} cannot be unpacked at byte {}: {}. Try 'gzip -t' on it, and copy it again",
                path_, in_, why);
  }

  std::string path_;
  std::string_view packed_;
  PointsBuilder* found_;
  z_stream zlib_{};
  bool open_ = false;
  bool inside_ = false;
  bool ended_ = false;
  int idle_calls_ = 0;
  std::uint64_t in_ = 0, out_ = 0;
};

}  // namespace

Result<std::unique_ptr<Unpacker>> unpack_gzip(const std::string& path, std::string_view packed,
                                              const AccessPoint& from, PointsBuilder* found) {
  auto gzip = std::make_unique<Gzip>(path, packed, found);
  ANTDT_RETURN_IF_ERROR(gzip->begin(from));
  return gzip;
}

Result<std::unique_ptr<Unpacker>> unpack(Packing packing, const std::string& path,
                                         std::string_view packed, const AccessPoint& from,
                                         PointsBuilder* found) {
  return packing == Packing::kGzip ? unpack_gzip(path, packed, from, found)
                                   : unpack_zstd(path, packed, from, found);
}

}  // namespace antdt::data
