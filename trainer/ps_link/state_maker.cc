#include "trainer/ps_link/state_maker.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace antdt::ps {
namespace {

// Precedes the bytes of each piece on the pipe.
struct Frame {
  std::uint32_t part;
  std::uint32_t bytes;
  std::uint32_t last;
};

}  // namespace

Status StateMaker::begin(const ServerNode& node) {
  end();
  return child_.begin("copy the server's state", [&](const ChildCopy::Tell& tell) {
    write_state(node, [&](const StatePiece& piece) {
      const Frame frame{piece.part, static_cast<std::uint32_t>(piece.bytes.size()),
                        piece.last ? 1U : 0U};
      tell({reinterpret_cast<const char*>(&frame), sizeof frame});
      tell(piece.bytes);
    });
  });
}

void StateMaker::end() {
  child_.end();
  read_.clear();
  done_ = nullptr;
}

void StateMaker::next(Done done) {
  if (!child_.is_there()) return;
  done_ = std::move(done);
  child_.watch(
      hang_after_, [this] { read_more(); },
      [this] {
        child_.end();
        conclude(fail(ErrorKind::kIo,
                      "the process that copied the server's state did nothing for {:.0f} s "
                      "([failure] hang_after)",
                      to_seconds(hang_after_)));
      });
}

// Reads no more than this frame: the rest stays with the child.
void StateMaker::read_more() {
  Frame frame{};
  std::size_t wanted = sizeof frame;
  if (read_.size() >= sizeof frame) {
    std::memcpy(&frame, read_.data(), sizeof frame);
    wanted += frame.bytes;
  }
  if (wanted > read_.size()) {
    std::array<char, kStatePiece> buffer;
    const std::size_t most = std::min(buffer.size(), wanted - read_.size());
    const ssize_t got = ::read(child_.fd(), buffer.data(), most);
    if (got < 0 && errno == EINTR) return;
    if (got <= 0) {
      return conclude(fail(ErrorKind::kIo, "the process that copied the server's state was ended"));
    }
    read_.append(buffer.data(), static_cast<std::size_t>(got));
    if (read_.size() < sizeof frame) return;
    std::memcpy(&frame, read_.data(), sizeof frame);
  }
  if (read_.size() < sizeof frame + frame.bytes) return;
  conclude(StatePiece{frame.part, read_.substr(sizeof frame), frame.last != 0});
}

void StateMaker::conclude(Result<StatePiece> piece) {
  child_.unwatch();
  read_.clear();
  const Done done = std::exchange(done_, nullptr);
  if (!piece || piece->last) end();
  done(std::move(piece));
}

}  // namespace antdt::ps
