#include "trainer/collective/tcp/tcp_link.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace antdt::trainer {
namespace {

bool not_now(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

// What is still to be sent or received of two parts after `done` bytes.
struct Rest {
  std::array<iovec, 2> parts{};
  std::size_t first = 0;
  Rest(std::span<const std::byte> head, std::span<const std::byte> body, std::size_t done) {
    const std::size_t of_head = std::min(done, head.size());
    const std::size_t of_body = done - of_head;
    // The kernel takes no const pointer, but only reads what is sent.
    parts[0] = {const_cast<std::byte*>(head.data()) + of_head, head.size() - of_head};
    parts[1] = {const_cast<std::byte*>(body.data()) + of_body, body.size() - of_body};
    first = parts[0].iov_len == 0 ? 1 : 0;
  }
  [[nodiscard]] msghdr message() {
    msghdr m{};
    m.msg_iov = parts.data() + first;
    m.msg_iovlen = parts.size() - first;
    return m;
  }
};

template <class T>
std::span<std::byte> bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

}  // namespace

TcpLink::TcpLink(std::uint32_t peer, OwnedFd fd, const LinkKeys* keys)
    : peer_(peer), fd_(std::move(fd)) {
  if (keys == nullptr) return;
  sealed_.emplace(Sealed{crypto::Sealer(keys->sent), crypto::Opener(keys->received), {}, 0});
}

// -------------------------------------------------------------------- sending

void TcpLink::queue(std::span<const std::byte> bytes, Duration latency, Duration transfer) {
  Outgoing& message = outgoing_.emplace_back(Outgoing{{bytes.size(), sent_++}, bytes, 0, {}});
  if (latency + transfer <= Duration{}) return;
  taken_until_ = std::max(taken_until_, MonoTime(std::chrono::steady_clock::now())) + transfer;
  message.not_before = taken_until_ + latency;
}

Duration TcpLink::held_back_for() const {
  if (outgoing_.empty() || outgoing_.front().not_before == MonoTime{}) return {};
  return std::max(Duration{}, outgoing_.front().not_before - std::chrono::steady_clock::now());
}

Status TcpLink::write() { return sealed_ ? write_sealed() : write_plain(); }

Result<bool> TcpLink::write_some(std::span<const std::byte> head, std::span<const std::byte> body,
                                 std::size_t& done) {
  Rest rest(head, body, done);
  const msghdr message = rest.message();
  const ssize_t n = sendmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n < 0 && errno == EINTR) return true;
  if (n < 0 && not_now(errno)) return false;
  if (n < 0) return fail(ErrorKind::kIo, "sending to rank {}: {}", peer_, std::strerror(errno));
  done += static_cast<std::size_t>(n);
  return true;
}

Status TcpLink::write_plain() {
  while (!outgoing_.empty() && held_back_for() == Duration{}) {
    Outgoing& o = outgoing_.front();
    ANTDT_TRY(const bool moved, write_some(bytes_of(o.header), o.bytes, o.done));
    if (!moved) return {};
    if (o.done == sizeof(Header) + o.bytes.size()) outgoing_.pop_front();
  }
  return {};
}

// A piece is sealed when the previous one has been sent, so memory for one is enough.
Status TcpLink::write_sealed() {
  while (!outgoing_.empty() && held_back_for() == Duration{}) {
    if (sealed_->piece.empty()) seal_next_piece(outgoing_.front());
    ANTDT_TRY(const bool moved, write_some(sealed_->piece, {}, sealed_->sent));
    if (!moved) return {};
    if (sealed_->sent < sealed_->piece.size()) continue;
    sealed_->piece.clear();
    sealed_->sent = 0;
    if (outgoing_.front().done == outgoing_.front().bytes.size()) outgoing_.pop_front();
  }
  return {};
}

void TcpLink::seal_next_piece(Outgoing& message) {
  const std::size_t count = std::min(message.bytes.size() - message.done, kPieceBytes);
  const std::size_t header = message.done == 0 ? sizeof(Header) : 0;
  sealed_->piece.resize(header + crypto::kSealBytes + count);
  const std::span<std::byte> all(sealed_->piece);
  if (header > 0) std::memcpy(all.data(), &message.header, header);
  sealed_->sealer.seal(all.first(header), message.bytes.subspan(message.done, count),
                       all.subspan(header + crypto::kSealBytes),
                       all.subspan(header, crypto::kSealBytes));
  message.done += count;
}

// ------------------------------------------------------------------ receiving

void TcpLink::expect(std::span<std::byte> bytes) {
  into_ = bytes;
  opened_ = read_ = 0;
}

Result<bool> TcpLink::read() {
  ANTDT_TRY(const bool whole, sealed_ ? read_sealed() : read_plain());
  if (whole) ++received_;
  return whole;
}

Result<bool> TcpLink::read_some(std::span<std::byte> head, std::span<std::byte> body,
                                std::size_t& done) {
  Rest rest(head, body, done);
  msghdr message = rest.message();
  const ssize_t n = recvmsg(fd_.get(), &message, MSG_DONTWAIT);
  if (n > 0) {
    done += static_cast<std::size_t>(n);
    return true;
  }
  if (n == 0) return fail(ErrorKind::kIo, "rank {} has closed the connection", peer_);
  if (errno == EINTR) return true;
  if (not_now(errno)) return false;
  return fail(ErrorKind::kIo, "receiving from rank {}: {}", peer_, std::strerror(errno));
}

Result<bool> TcpLink::read_plain() {
  const std::span<std::byte> header = std::span(prefix_).first(sizeof(Header));
  while (read_ < sizeof(Header) + into_.size()) {
    const bool had_header = read_ >= sizeof(Header);
    ANTDT_TRY(const bool moved, read_some(header, into_, read_));
    if (!moved) return false;
    if (!had_header && read_ >= sizeof(Header)) ANTDT_RETURN_IF_ERROR(check_header());
  }
  return true;
}

Result<bool> TcpLink::read_sealed() {
  while (true) {
    const bool first = opened_ == 0;
    const std::size_t header = first ? sizeof(Header) : 0;
    const std::span<std::byte> prefix =
        std::span(prefix_).subspan(sizeof(Header) - header, header + crypto::kSealBytes);
    const std::span<std::byte> piece =
        into_.subspan(opened_, std::min(into_.size() - opened_, kPieceBytes));
    while (read_ < prefix.size() + piece.size()) {
      const bool had_header = !first || read_ >= sizeof(Header);
      ANTDT_TRY(const bool moved, read_some(prefix, piece, read_));
      if (!moved) return false;
      if (!had_header && read_ >= sizeof(Header)) ANTDT_RETURN_IF_ERROR(check_header());
    }
    ANTDT_RETURN_IF_ERROR(open_piece(piece, first));
    opened_ += piece.size();
    read_ = 0;
    if (opened_ == into_.size()) return true;
  }
}

Status TcpLink::open_piece(std::span<std::byte> piece, bool first) {
  const std::span<const std::byte> prefix(prefix_);
  const auto header = prefix.first(first ? sizeof(Header) : 0);
  if (sealed_->opener.open(header, piece, prefix.last(crypto::kSealBytes))) return {};
  return fail(ErrorKind::kIo,
              "what came from rank {} as part of message {} is not what it sent: it was changed, "
              "repeated or left out on the way",
              peer_, received_);
}

Status TcpLink::check_header() const {
  Header header;
  std::memcpy(&header, prefix_.data(), sizeof(header));
  if (header.bytes == into_.size() && header.number == received_) return {};
  return fail(ErrorKind::kCorrupt,
              "rank {} sent {} bytes as message {} where {} as message {} were due: it does not "
              "run the same operations",
              peer_, header.bytes, header.number, into_.size(), received_);
}

}  // namespace antdt::trainer
