#include "core/transport/zmtp.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace antdt::transport {

namespace {

constexpr std::uint8_t kMore = 1;
constexpr std::uint8_t kLong = 2;
constexpr std::uint8_t kCommand = 4;

constexpr std::size_t kGreetingBytes = 64;
constexpr std::size_t kVersionAt = 10;
constexpr std::size_t kMechanismAt = 12;
constexpr std::size_t kMechanismBytes = 20;

constexpr std::size_t kKeptBytes = std::size_t{256} * 1024;

// A peer that sends heartbeats faster than we read gets no more answers.
constexpr std::size_t kMaxAnswerBytes = 4096;
constexpr std::size_t kPingTtlBytes = 2;
constexpr std::size_t kMaxPingContext = 16;

// The text, padded with zeros.
std::string padded(std::string_view text, std::size_t size) {
  std::string out(text);
  out.resize(size, '\0');
  return out;
}

void append_number(std::string& out, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = bytes; i > 0; --i) out += static_cast<char>(value >> (8 * (i - 1)));
}

std::uint64_t number_in(std::string_view bytes) {
  std::uint64_t value = 0;
  for (const char byte : bytes) value = (value << 8) | static_cast<unsigned char>(byte);
  return value;
}

void append_frame(std::string& out, std::uint8_t flags, std::string_view body) {
  const bool is_long = body.size() > 0xff;
  out += static_cast<char>(flags | (is_long ? kLong : 0));
  append_number(out, body.size(), is_long ? 8 : 1);
  out += body;
}

std::string named(std::string_view name) {
  return static_cast<char>(name.size()) + std::string(name);
}

std::string property(std::string_view name, std::string_view value) {
  std::string out = named(name);
  append_number(out, value.size(), 4);
  return out.append(value);
}

// Takes `size` bytes from the front; empty if there are fewer.
std::optional<std::string_view> take(std::string_view& bytes, std::size_t size) {
  if (bytes.size() < size) return {};
  const std::string_view taken = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return taken;
}

std::optional<std::string_view> take_sized(std::string_view& bytes, std::size_t size_bytes) {
  const auto size = take(bytes, size_bytes);
  if (!size) return {};
  return take(bytes, number_in(*size));
}

bool same_letters(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) {
    const auto small = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    return small(x) == small(y);
  });
}

// For messages to people, because a peer may send any bytes.
std::string printable(std::string_view text) {
  std::string out(text.substr(0, 80));
  std::ranges::replace_if(
      out, [](char c) { return c < ' ' || c > '~'; }, '?');
  return out;
}

}  // namespace

std::string zmtp_opening() {
  std::string out = "\xff" + std::string(8, '\0') + "\x7f";
  out += '\3';
  out += '\0';
  out += padded("NULL", kMechanismBytes);
  out.resize(kGreetingBytes, '\0');
  append_frame(out, kCommand,
               named("READY") + property("Socket-Type", "DEALER") + property("Identity", ""));
  return out;
}

void append_zmtp(std::string& out, const wire::Packet& packet) {
  append_frame(out, kMore, packet.envelope);
  append_frame(out, 0, packet.body);
}

std::optional<wire::Packet> ZmtpReader::next() {
  if (stage_ == Stage::kGreeting && !read_greeting()) return {};
  while (problem_.empty()) {
    const auto frame = next_frame();
    if (!frame) break;
    if (frame->command) {
      on_command(frame->body);
    } else if (stage_ != Stage::kMessages) {
      refuse("it sends messages before READY");
    } else if (on_frame(*frame)) {
      return std::exchange(packet_, {});
    }
  }
  forget_what_was_read();
  return {};
}

// The rest is moved to the front once it is smaller than what was read, so that no byte is moved
// often. The buffer of a large packet is released.
void ZmtpReader::forget_what_was_read() {
  const bool all_read = read_ == bytes_.size();
  if (!problem_.empty() || (all_read && bytes_.capacity() > kKeptBytes)) {
    bytes_ = {};
    read_ = 0;
  } else if (read_ >= bytes_.size() - read_) {
    bytes_.erase(0, read_);
    read_ = 0;
  }
}

void ZmtpReader::refuse(std::string why) {
  if (problem_.empty()) problem_ = std::move(why);
}

std::string ZmtpReader::take_answers() { return std::exchange(answers_, {}); }

// The greeting is checked before all of it is there: a peer with another protocol may wait for us
// and send nothing more.
bool ZmtpReader::read_greeting() {
  const std::string_view all = rest();
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(all[i]); };
  if (!all.empty() && at(0) != 0xff) refuse("it does not speak ZMTP");
  if (all.size() >= kVersionAt && (at(kVersionAt - 1) & 1) == 0) refuse("it does not speak ZMTP");
  if (all.size() > kVersionAt && at(kVersionAt) < 3) {
    refuse(fmt::format("it speaks ZMTP {}, and 3 is needed", at(kVersionAt)));
  }
  if (problem_.empty() && all.size() < kGreetingBytes) return false;
  if (problem_.empty() &&
      all.substr(kMechanismAt, kMechanismBytes) != padded("NULL", kMechanismBytes)) {
    const std::string_view mechanism = all.substr(kMechanismAt, kMechanismBytes);
    refuse(fmt::format("it wants the mechanism '{}', and a local socket has none",
                       printable(mechanism.substr(0, mechanism.find('\0')))));
  }
  if (!problem_.empty()) {
    forget_what_was_read();
    return false;
  }
  read_ += kGreetingBytes;
  stage_ = Stage::kReady;
  return true;
}

std::optional<ZmtpReader::Frame> ZmtpReader::next_frame() {
  std::string_view left = rest();
  if (left.empty()) return {};
  const auto flags = static_cast<std::uint8_t>(left.front());
  const bool has_unknown_flags = (flags & ~(kMore | kLong | kCommand)) != 0;
  if (has_unknown_flags || ((flags & kCommand) != 0 && (flags & kMore) != 0)) {
    refuse(fmt::format("a frame has the flags {:#04x}", flags));
    return {};
  }
  left.remove_prefix(1);
  const auto size_bytes = take(left, (flags & kLong) != 0 ? 8 : 1);
  if (!size_bytes) return {};
  const std::uint64_t size = number_in(*size_bytes);
  if (size > kMaxFrameBytes) {
    refuse(fmt::format("a frame of {} bytes is larger than {} allowed", size, kMaxFrameBytes));
    return {};
  }
  const auto body = take(left, size);
  if (!body) return {};
  read_ = bytes_.size() - left.size();
  return Frame{(flags & kMore) != 0, (flags & kCommand) != 0, *body};
}

void ZmtpReader::on_command(std::string_view body) {
  const auto name = take_sized(body, 1);
  if (!name) return refuse("a command has no name");
  if (*name == "ERROR") {
    const auto reason = take_sized(body, 1);
    refuse(fmt::format("it refuses the connection: {}", reason ? printable(*reason) : ""));
  } else if (stage_ == Stage::kReady) {
    if (*name != "READY") return refuse("its first command is not READY");
    on_ready(body);
  } else if (*name == "PING" && body.size() >= kPingTtlBytes && answers_.size() < kMaxAnswerBytes) {
    append_frame(
        answers_, kCommand,
        named("PONG") + std::string(body.substr(kPingTtlBytes).substr(0, kMaxPingContext)));
  }
  // Other commands are for sockets of other types or of a later version.
}

void ZmtpReader::on_ready(std::string_view properties) {
  std::string type;
  while (!properties.empty()) {
    const auto name = take_sized(properties, 1);
    const auto value = name ? take_sized(properties, 4) : std::nullopt;
    if (!value) return refuse("its READY is cut short");
    if (same_letters(*name, "Socket-Type")) type = *value;
  }
  if (type != "ROUTER") {
    return refuse(fmt::format("its socket is of the type '{}', not ROUTER", printable(type)));
  }
  stage_ = Stage::kMessages;
}

// True when packet_ is complete.
bool ZmtpReader::on_frame(const Frame& frame) {
  ++frames_;
  if (frames_ == 1) packet_.envelope.assign(frame.body);
  if (frames_ == 2) packet_.body.assign(frame.body);
  if (frame.more) return false;
  if (std::exchange(frames_, 0) == 2) return true;
  packet_ = {};
  return false;
}

}  // namespace antdt::transport
