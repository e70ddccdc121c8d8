#include "trainer/data/content/contents.h"

#include <algorithm>

namespace antdt::data {
namespace {

constexpr std::uint64_t kPiece = PointsBuilder::kSpan;
constexpr std::size_t kPieces = 64;
// What is fetched of a line in advance: the rest follows in order, which the processor foresees.
constexpr std::size_t kExpected = 256;
constexpr std::size_t kCacheLine = 64;

std::string_view without_return(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace

void Contents::add(MappedFile file, Points points) {
  files_.push_back({std::move(file), std::move(points)});
}

Result<std::string_view> Contents::line(std::size_t number, std::uint64_t offset) {
  const File& of = files_.at(number);
  if (offset >= of.points.content_bytes) {
    return fail(ErrorKind::kCorrupt, "{} has no line at byte {}", of.file.path(), offset);
  }
  if (of.points.packing != Packing::kPlain) return packed_line(number, offset);
  const std::string_view rest =
      of.file.bytes().substr(std::min<std::uint64_t>(offset, of.file.bytes().size()));
  return without_return(rest.substr(0, rest.find('\n')));
}

void Contents::expect(std::size_t number, std::uint64_t offset) const {
  const File& of = files_[number];
  if (of.points.packing != Packing::kPlain || offset >= of.file.bytes().size()) return;
  const std::string_view begin = of.file.bytes().substr(offset, kExpected);
  for (std::size_t at = 0; at < begin.size(); at += kCacheLine) {
    __builtin_prefetch(begin.data() + at);
  }
}

Result<std::string_view> Contents::packed_line(std::size_t number, std::uint64_t offset) {
  line_.clear();
  const std::uint64_t end = files_[number].points.content_bytes;
  for (std::uint64_t at = offset; at < end;) {
    ANTDT_TRY(const std::string_view whole, piece(number, at / kPiece));
    const std::string_view text = whole.substr(std::min<std::size_t>(at % kPiece, whole.size()));
    const std::size_t found = text.find('\n');
    const bool ends = found != std::string_view::npos;
    // Most lines lie in one piece, and need no copy.
    if (line_.empty() && ends) return without_return(text.substr(0, found));
    line_ += text.substr(0, found);
    if (ends) break;
    if (line_.size() > kLongestLine) {
      return fail(ErrorKind::kCorrupt, "{} has no line at byte {}", files_[number].file.path(),
                  offset);
    }
    at += text.size();
  }
  return without_return(line_);
}

Result<std::string_view> Contents::piece(std::size_t number, std::uint64_t index) {
  const std::pair key{number, index};
  const auto kept =
      std::find_if(pieces_.begin(), pieces_.end(), [&](const Piece& p) { return p.key == key; });
  if (kept != pieces_.end()) {
    pieces_.splice(pieces_.begin(), pieces_, kept);
    return pieces_.front().text;
  }
  ANTDT_RETURN_IF_ERROR(move_to(number, index));
  while (pieces_.empty() || pieces_.front().key != key) ANTDT_RETURN_IF_ERROR(unpack_next());
  return pieces_.front().text;
}

// Afterwards what is unpacked next is that piece, or one before it.
Status Contents::move_to(std::size_t number, std::uint64_t index) {
  const File& of = files_[number];
  const AccessPoint& from = of.points.before(index * kPiece);
  const bool on_the_way = unpacker_ != nullptr && next_.first == number && next_.second <= index &&
                          next_.second * kPiece >= from.out;
  if (on_the_way) return {};
  ANTDT_TRY(unpacker_, unpack(of.points.packing, of.file.path(), of.file.bytes(), from));
  // To the first piece that begins at the point or behind it.
  next_ = {number, (from.out + kPiece - 1) / kPiece};
  std::string skipped(next_.second * kPiece - from.out, '\0');
  const auto read = unpacker_->read(skipped);
  if (!read) {
    unpacker_.reset();
    return tl::unexpected(read.error());
  }
  return {};
}

Status Contents::unpack_next() {
  const File& of = files_[next_.first];
  const std::uint64_t left = of.points.content_bytes - next_.second * kPiece;
  Piece made{next_, {}};
  // The memory of the piece that was not used for the longest time serves again.
  if (pieces_.size() >= kPieces) {
    made.text = std::move(pieces_.back().text);
    pieces_.pop_back();
  }
  made.text.resize(std::min(kPiece, left));
  const auto read = unpacker_->read(made.text);
  if (!read || *read != made.text.size()) {
    unpacker_.reset();
    if (!read) return tl::unexpected(read.error());
    return fail(ErrorKind::kCorrupt, "{} has less content than was indexed", of.file.path());
  }
  ++next_.second;
  // Piece that was already there, passed again on the way to another.
  pieces_.remove_if([&](const Piece& p) { return p.key == made.key; });
  pieces_.push_front(std::move(made));
  return {};
}

}  // namespace antdt::data
