#include "antdtd/files/file_frames.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>

#include "core/wire/file_messages.h"

namespace antdt::antdtd {
namespace {

constexpr std::size_t kParts = 4;
// Enough for a chunk with its frames, and for a list of many files.
constexpr std::uint64_t kMostBytes = 16ULL * 1024 * 1024;
static_assert(kMostBytes > 2 * wire::kMaxFileChunk);

}  // namespace

// ------------------------------------------------------------------- writing

FrameWriter::FrameWriter(wire::Packet packet)
    : packet_(std::move(packet)),
      lengths_{static_cast<std::uint32_t>(packet_.peer.size()),
               static_cast<std::uint32_t>(packet_.envelope.size()),
               static_cast<std::uint32_t>(packet_.body.size())} {}

std::size_t FrameWriter::size() const {
  return sizeof(lengths_) + packet_.peer.size() + packet_.envelope.size() + packet_.body.size();
}

FrameWriter::Outcome FrameWriter::write(int socket) {
  while (written_ < size()) {
    std::array<iovec, kParts> parts{iovec{lengths_.data(), sizeof(lengths_)},
                                    iovec{packet_.peer.data(), packet_.peer.size()},
                                    iovec{packet_.envelope.data(), packet_.envelope.size()},
                                    iovec{packet_.body.data(), packet_.body.size()}};
    std::size_t gone = written_;
    for (iovec& part : parts) {
      const std::size_t skip = std::min(gone, part.iov_len);
      part.iov_base = static_cast<char*>(part.iov_base) + skip;
      part.iov_len -= skip;
      gone -= skip;
    }
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const ssize_t put = ::sendmsg(socket, &message, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno == EAGAIN ? Outcome::kPart : Outcome::kFailed;
    written_ += static_cast<std::size_t>(put);
  }
  return Outcome::kAll;
}

// ------------------------------------------------------------------- reading

std::string* FrameReader::part(std::size_t number) {
  return number == 1 ? &packet_.peer : number == 2 ? &packet_.envelope : &packet_.body;
}

std::pair<char*, std::size_t> FrameReader::room() {
  if (reads_ == 0 || broken_) {
    return {reinterpret_cast<char*>(lengths_.data()) + have_, sizeof(lengths_) - have_};
  }
  std::string& into = *part(reads_);
  return {into.data() + have_, into.size() - have_};
}

// Empty parts are complete at once.
void FrameReader::taken(std::size_t bytes) {
  if (broken_) return;
  have_ += bytes;
  if (reads_ == 0) {
    if (have_ < sizeof(lengths_)) return;
    begin_packet();
  }
  while (!broken_ && reads_ < kParts && have_ == part(reads_)->size()) {
    ++reads_;
    have_ = 0;
  }
}

void FrameReader::begin_packet() {
  have_ = 0;
  broken_ = std::uint64_t{lengths_[0]} + lengths_[1] + lengths_[2] > kMostBytes;
  if (broken_) return;
  for (std::size_t i = 0; i < lengths_.size(); ++i) part(i + 1)->resize(lengths_[i]);
  reads_ = 1;
}

Result<std::optional<wire::Packet>> FrameReader::next() {
  if (broken_) {
    return fail(ErrorKind::kCorrupt, "a frame of {} bytes between an agent and a file service",
                std::uint64_t{lengths_[0]} + lengths_[1] + lengths_[2]);
  }
  if (reads_ < kParts) return std::nullopt;
  reads_ = 0;
  return std::exchange(packet_, {});
}

}  // namespace antdt::antdtd
