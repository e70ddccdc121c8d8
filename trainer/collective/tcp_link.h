// One member's connection to another: messages both ways, plain or sealed.
//
// Messages arrive in the order in which they were sent, and both ends know beforehand how long
// each is. A header says number and length, so that members that disagree find out. On the wire
//
//   plain:   header, bytes
//   sealed:  header, seal, up to kPieceBytes of the bytes; seal, the next ones; ...
//
// where each piece is sealed with the key of its direction (core/crypto/seal.h), the first
// together with the header, which is readable: what is missing, changed, repeated or in another
// order ends the connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/crypto/seal.h"
#include "core/os/owned_fd.h"
#include "core/result.h"
#include "trainer/collective/handshake.h"

namespace antdt::trainer {

class TcpLink {
 public:
  // Small enough to stay in a core's own cache while it is encrypted and sent.
  static constexpr std::size_t kPieceBytes = 64UL * 1024;

  // Null `keys`: what is sent is readable. `fd` does not block.
  TcpLink(std::uint32_t peer, OwnedFd fd, const LinkKeys* keys);

  [[nodiscard]] std::uint32_t peer() const { return peer_; }
  [[nodiscard]] int fd() const { return fd_.get(); }

  // The bytes are read until waits_to_write() is false.
  void queue(std::span<const std::byte> bytes);
  [[nodiscard]] bool waits_to_write() const { return !outgoing_.empty(); }
  // Sends what the kernel takes now. kIo.
  [[nodiscard]] Status write();

  // The next message, of just so many bytes: read() until it answers true, which it does as soon
  // as all is there; false where there is nothing more now. kIo.
  void expect(std::span<std::byte> bytes);
  [[nodiscard]] Result<bool> read();

 private:
  struct Header {
    std::uint64_t bytes = 0;
    std::uint64_t number = 0;  // of the connection's messages in this direction
  };
  struct Outgoing {
    Header header;
    std::span<const std::byte> bytes;
    std::size_t done = 0;  // plain: header included; sealed: of the bytes
  };
  // What goes over the wire before bytes: of a message's first piece the header comes first.
  static constexpr std::size_t kPrefixBytes = sizeof(Header) + crypto::kSealBytes;
  struct Sealed {
    crypto::Sealer sealer;
    crypto::Opener opener;
    std::vector<std::byte> piece;  // that is on its way
    std::size_t sent = 0;          // of it
  };

  // Each moves bytes once: false where the kernel has none, or no room, now.
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
  std::uint64_t sent_ = 0;
  // The message that arrives.
  std::span<std::byte> into_;
  std::size_t opened_ = 0;  // sealed: bytes of it that are there, as whole pieces
  std::size_t read_ = 0;    // plain: of it with its header; sealed: of the piece with its prefix
  std::array<std::byte, kPrefixBytes> prefix_{};
  std::uint64_t received_ = 0;
};

}  // namespace antdt::trainer
