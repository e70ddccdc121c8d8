#include "antdtd/file_frames.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "core/wire/file_messages.h"

namespace antdt::antdtd {
namespace {

using Lengths = std::array<std::uint32_t, 3>;  // peer, envelope, body
constexpr std::size_t kHeader = sizeof(Lengths);
constexpr std::size_t kRoom = 256UL * 1024;
// A chunk and what is around it; a list of many files.
constexpr std::uint64_t kMostBytes = 16ULL * 1024 * 1024;
static_assert(kMostBytes > 2 * wire::kMaxFileChunk);

}  // namespace

std::string to_frame(const wire::Packet& packet) {
  const Lengths lengths{static_cast<std::uint32_t>(packet.peer.size()),
                        static_cast<std::uint32_t>(packet.envelope.size()),
                        static_cast<std::uint32_t>(packet.body.size())};
  std::string frame(kHeader, '\0');
  std::memcpy(frame.data(), lengths.data(), kHeader);
  frame.reserve(kHeader + packet.peer.size() + packet.envelope.size() + packet.body.size());
  return frame.append(packet.peer).append(packet.envelope).append(packet.body);
}

std::pair<char*, std::size_t> FrameReader::room() {
  if (begin_ > 0 && (begin_ == have_ || begin_ > kMostBytes / 4)) {
    std::memmove(bytes_.data(), bytes_.data() + begin_, have_ - begin_);
    have_ -= begin_;
    begin_ = 0;
  }
  if (bytes_.size() < have_ + kRoom) bytes_.resize(std::max(2 * bytes_.size(), have_ + kRoom));
  return {bytes_.data() + have_, bytes_.size() - have_};
}

Result<std::optional<wire::Packet>> FrameReader::next() {
  if (have_ - begin_ < kHeader) return std::nullopt;
  Lengths lengths{};
  std::memcpy(lengths.data(), bytes_.data() + begin_, kHeader);
  const std::uint64_t size = std::uint64_t{lengths[0]} + lengths[1] + lengths[2];
  if (size > kMostBytes) {
    return fail(ErrorKind::kCorrupt, "a frame of {} bytes between an agent and a file service",
                size);
  }
  if (have_ - begin_ < kHeader + size) return std::nullopt;
  const char* at = bytes_.data() + begin_ + kHeader;
  wire::Packet packet;
  packet.peer.assign(at, lengths[0]);
  packet.envelope.assign(at + lengths[0], lengths[1]);
  packet.body.assign(at + lengths[0] + lengths[1], lengths[2]);
  begin_ += kHeader + size;
  return packet;
}

}  // namespace antdt::antdtd
