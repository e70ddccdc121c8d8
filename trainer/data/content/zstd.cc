#include <zstd.h>

#include "trainer/data/content/unpacker.h"

namespace antdt::data {
namespace {

// zstd can only begin at a frame, so a longer one would be unpacked as a whole for one record.
constexpr std::uint64_t kLongestFrame = std::uint64_t{256} << 20;

class Zstd final : public Unpacker {
 public:
  Zstd(const std::string& path, std::string_view packed, const AccessPoint& from,
       PointsBuilder* found)
      : path_(path),
        packed_(packed),
        found_(found),
        in_(from.in),
        out_(from.out),
        frame_(from.out) {
    if (found_ != nullptr) found_->add({out_, in_, false, 0, {}}, {});
  }
  ~Zstd() override { ZSTD_freeDCtx(zstd_); }

  Result<std::size_t> read(std::span<char> out) override {
    if (zstd_ == nullptr) zstd_ = ZSTD_createDCtx();
    if (zstd_ == nullptr) return fail(ErrorKind::kIo, "{}: no memory to unpack it", path_);
    std::size_t done = 0;
    while (done < out.size() && !(between_ && in_ == packed_.size())) {
      ANTDT_TRY(const std::size_t more, some(out.subspan(done)));
      done += more;
    }
    return done;
  }

  std::uint64_t position() const override { return in_; }

 private:
  [[nodiscard]] Result<std::size_t> some(std::span<char> out) {
    if (between_ && found_ != nullptr && found_->wants(out_)) {
      found_->add({out_, in_, false, 0, {}}, {});
    }
    if (between_) frame_ = out_;
    ZSTD_inBuffer input{packed_.data() + in_, packed_.size() - in_, 0};
    ZSTD_outBuffer output{out.data(), out.size(), 0};
    const std::size_t result = ZSTD_decompressStream(zstd_, &output, &input);
    if (ZSTD_isError(result) != 0) return damaged(ZSTD_getErrorName(result));
    in_ += input.pos;
    out_ += output.pos;
    between_ = result == 0;
    if (!between_ && input.pos == 0 && output.pos == 0) return damaged("it is cut short");
    if (found_ != nullptr && out_ - frame_ > kLongestFrame) {
      return fail(
          ErrorKind::kUsage,
          "{} has a zstd frame of more than {} MiB, and unpacking begins with a frame: pack "
          "it in many ('zstd -dc {} | split -C 4m --filter=zstd > …')",
          path_, kLongestFrame >> 20, path_);
    }
    return output.pos;
  }

  [[nodiscard]] tl::unexpected<Error> damaged(std::string_view why) const {
    return fail(ErrorKind::kCorrupt,
                "{} cannot be unpacked at byte {}: {}. Try 'zstd -t' on it, and copy it again",
                path_, in_, why);
  }

  std::string path_;
  std::string_view packed_;
  PointsBuilder* found_;
  ZSTD_DCtx* zstd_ = nullptr;
  std::uint64_t in_, out_;
  std::uint64_t frame_;  // where in the content it began
  bool between_ = true;  // two frames
};

}  // namespace

Result<std::unique_ptr<Unpacker>> unpack_zstd(const std::string& path, std::string_view packed,
                                              const AccessPoint& from, PointsBuilder* found) {
  return std::make_unique<Zstd>(path, packed, from, found);
}

}  // namespace antdt::data
