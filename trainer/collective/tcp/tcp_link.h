// One member's connection to another: messages in both directions, plain or sealed.
//
// Messages arrive in the order in which they were sent, and both ends know in advance how long each
// is. A header has number and length, so that a disagreement between members is found. On the wire
//
//   plain:   header, bytes
//   sealed:  header, seal, up to kPieceBytes of the bytes; seal, the next ones; ...
//
// where each piece is sealed with the key of its direction (core/crypto/seal.h). The first piece
// authenticates the header, which is not encrypted. A piece that is missing, changed, repeated or
// out of order ends the connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/crypto/seal.h"
#include "core/os/owned_fd.h"
#include "core/result.h"
#include "trainer/collective/handshake.h"

namespace antdt::trainer {

class TcpLink {
 public:
  // Small enough to stay in a core's own cache while it is encrypted and sent.
  static constexpr std::size_t kPieceBytes = 64UL * 1024;

  // Null `keys`: messages are plain. `fd` must be non-blocking.
  TcpLink(std::uint32_t peer, OwnedFd fd, const LinkKeys* keys);

  [[nodiscard]] std::uint32_t peer() const { return peer_; }
  [[nodiscard]] int fd() const { return fd_.get(); }

  // The bytes must stay valid until waits_to_write() is false. Fault injection: as on a link that
  // is `latency` long and takes no other message for the time of `transfer`; the message is kept
  // here until it has arrived at the far end of it.
  void queue(std::span<const std::byte> bytes, Duration latency = {}, Duration transfer = {});
  [[nodiscard]] bool waits_to_write() const { return !outgoing_.empty(); }
  // How much longer the next message is kept; 0: it is not, or there is none.
  [[nodiscard]] Duration held_back_for() const;
  // Sends what the kernel accepts now and is not kept. kIo.
  [[nodiscard]] Status write();

  // Expects the next message, of exactly this size. Call read() until it returns true, which it
  // does as soon as the whole message is there; false if there are no more bytes now. kIo.
  void expect(std::span<std::byte> bytes);
  [[nodiscard]] Result<bool> read();

 private:
  struct Header {
    std::uint64_t bytes = 0;
    std::uint64_t number = 0;  // counts the connection's messages in this direction
  };
  struct Outgoing {
    Header header;
    std::span<const std::byte> bytes;
    std::size_t done = 0;  // plain: bytes including the header; sealed: bytes of the message
    MonoTime not_before{};
  };
  // What is sent before the bytes: for a message's first piece, that includes the header.
  static constexpr std::size_t kPrefixBytes = sizeof(Header) + crypto::kSealBytes;
  struct Sealed {
    crypto::Sealer sealer;
    crypto::Opener opener;
    std::vector<std::byte> piece;  // the piece that is being sent
    std::size_t sent = 0;          // bytes of it that were sent
  };

  // Each does one transfer; false if the kernel has no bytes, or no room, now.
  [[nodiscard]] Result<bool> write_some(std::span<const std::byte> head,
                                        std::span<const std::byte> body, std::size_t& done);
  [[nodiscard]] Result<bool> read_some(std::span<std::byte> head, std::span<std::byte> body,
                                       std::size_t& done);
  [[nodiscard]] Status write_plain();
  [[nodiscard]] Status write_sealed();
  void seal_next_piece(Outgoing& message);
  [[nodiscard]] Result<bool> read_plain();
  [[nodiscard]] Result<bool> read_sealed();
  [[nodiscard]] Status open_piece(std::span<std::byte> piece, bool first);
  [[nodiscard]] Status check_header() const;

  std::uint32_t peer_;
  OwnedFd fd_;
  std::optional<Sealed> sealed_;
  std::deque<Outgoing> outgoing_;
  MonoTime taken_until_{};  // fault injection: when the link takes the next message
  std::uint64_t sent_ = 0;
  // The buffer of the message that is arriving.
  std::span<std::byte> into_;
  std::size_t opened_ = 0;  // sealed: bytes of it that have arrived in whole pieces
  // plain: bytes read, with the header; sealed: bytes of the piece, with its prefix
  std::size_t read_ = 0;
  std::array<std::byte, kPrefixBytes> prefix_{};
  std::uint64_t received_ = 0;
};

}  // namespace antdt::trainer
