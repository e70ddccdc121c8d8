// Input: the bytes of a local peer (greeting, commands and messages). The way they were cut changes
// nothing, and a packet is written as it was read.
#include "core/transport/zmtp.h"
#include "tests/fuzz/support/fuzz.h"

namespace {

using antdt::transport::ZmtpReader;

struct Parsed {
  std::string packets;  // as they are written
  std::string answers;
  std::string problem;
  bool operator==(const Parsed&) const = default;
};

void hear(ZmtpReader& reader, Parsed& heard) {
  while (const auto packet = reader.next()) {
    antdt::transport::append_zmtp(heard.packets, *packet);
  }
  heard.answers += reader.take_answers();
  heard.problem = reader.problem();
}

Parsed at_once(std::string_view bytes) {
  ZmtpReader reader;
  Parsed heard;
  reader.feed(bytes);
  hear(reader, heard);
  return heard;
}

// Answers are compared apart from packets, because not every one of several simultaneous heartbeats
// is answered.
Parsed in_pieces(std::string_view bytes, std::size_t piece) {
  ZmtpReader reader;
  Parsed heard;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    reader.feed(bytes.substr(0, piece));
    hear(reader, heard);
  }
  return heard;
}

// The peer's part of the handshake, for inputs that do not begin with one.
std::string opening() {
  std::string bytes = antdt::transport::zmtp_opening();
  return bytes.replace(bytes.find("DEALER"), 6, "ROUTER");
}

}  // namespace

ANTDT_FUZZ_TARGET(zmtp)(const std::uint8_t* data, std::size_t size) {
  antdt::fuzz::Input input(data, size);
  const std::size_t how = input.byte();
  const std::string bytes = (how % 2 == 0 ? opening() : "") + std::string(input.rest());
  const Parsed whole = at_once(bytes);
  const Parsed pieces = in_pieces(bytes, 1 + how / 2);
  ANTDT_CHECK(whole.packets == pieces.packets && whole.problem == pieces.problem,
              "cut into pieces of {} bytes it is read otherwise: '{}' and '{}'", 1 + how / 2,
              whole.problem, pieces.problem);
  const Parsed again = at_once(opening() + whole.packets);
  ANTDT_CHECK(again.packets == whole.packets && again.problem.empty(),
              "what was written is read otherwise");
  return 0;
}
