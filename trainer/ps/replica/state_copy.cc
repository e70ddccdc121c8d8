#include "trainer/ps/replica/state_copy.h"

#include <algorithm>
#include <utility>

#include "core/wire/codec.h"
#include "trainer/ps/rows/slice_image.h"

namespace antdt::ps {
namespace {

void cut_up(std::uint32_t part, std::string_view bytes,
            const std::function<void(const StatePiece&)>& sink) {
  for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kStatePiece))) {
    sink({part, std::string(bytes.substr(0, kStatePiece)), false});
  }
}

bool is_empty(const Store& store, std::uint32_t slice) {
  for (std::uint32_t table = 0; table < store.tables().size(); ++table) {
    if (store.slice(slice, table).rows() > 0) return false;
  }
  return true;
}

}  // namespace

void write_state(const ServerNode& node, const std::function<void(const StatePiece&)>& sink) {
  cut_up(0, wire::encode(node.image()), sink);
  std::uint32_t part = 0;
  const Store* const store = node.store();
  for (std::uint32_t slice = 0; store != nullptr && slice < kSlices; ++slice) {
    if (is_empty(*store, slice)) continue;
    part = slice + 1;
    encode_slice(*store, slice, [&](std::string_view bytes) { cut_up(part, bytes, sink); });
  }
  sink({part, {}, true});
}

Status StateReader::take(ServerNode& node, const wire::PsImage& piece) {
  if (piece.bytes.size() > kStatePiece || piece.part < part_ || piece.part > kSlices) {
    return fail(ErrorKind::kCorrupt, "a piece of {} bytes of part {} behind part {}",
                piece.bytes.size(), piece.part, part_);
  }
  if (piece.part != part_) ANTDT_RETURN_IF_ERROR(read_part(node));
  part_ = piece.part;
  bytes_ += piece.bytes;
  if (part_ == 0 && bytes_.size() > kLongestHead) {
    return fail(ErrorKind::kCorrupt, "a server whose machine has more than {} bytes", kLongestHead);
  }
  if (!piece.last) return {};
  return read_part(node);
}

Status StateReader::read_part(ServerNode& node) {
  const std::string bytes = std::exchange(bytes_, {});
  if (part_ == 0) {
    ANTDT_TRY(const NodeImage image, wire::decode<NodeImage>(bytes));
    return node.restore(image);
  }
  if (node.store() == nullptr) return fail(ErrorKind::kCorrupt, "rows of a server without tables");
  return decode_slice(*node.store(), part_ - 1, bytes);
}

}  // namespace antdt::ps
