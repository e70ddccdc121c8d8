#include "core/metrics/event_file.h"

#include <array>
#include <bit>

namespace antdt::metrics {
namespace {

// The wire types of protocol buffers that occur here.
constexpr std::uint8_t kVarint = 0;
constexpr std::uint8_t kFixed64 = 1;
constexpr std::uint8_t kBytes = 2;
constexpr std::uint8_t kFixed32 = 5;

// Little-endian, whatever the machine is.
template <class T>
void put_fixed(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof value; ++i) {
    out.push_back(static_cast<char>((value >> (8 * i)) & 0xFFU));
  }
}

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(0x80U | (value & 0x7FU)));
  out.push_back(static_cast<char>(value));
}

void put_key(std::string& out, std::uint8_t field, std::uint8_t type) {
  put_varint(out, static_cast<std::uint64_t>(field) << 3U | type);
}

void put_bytes(std::string& out, std::uint8_t field, std::string_view bytes) {
  put_key(out, field, kBytes);
  put_varint(out, bytes.size());
  out += bytes;
}

// Event.wall_time.
std::string event_at(double unix_seconds) {
  std::string event;
  put_key(event, 1, kFixed64);
  put_fixed(event, std::bit_cast<std::uint64_t>(unix_seconds));
  return event;
}

void put_step(std::string& event, std::int64_t step) {
  put_key(event, 2, kVarint);  // Event.step
  put_varint(event, static_cast<std::uint64_t>(step));
}

// Checksums of data that contains checksums would be weak, so TensorFlow masks them.
std::uint32_t masked_crc32c(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xA282EAD8U;
}

std::string framed(std::string_view event) {
  std::string record;
  put_fixed(record, static_cast<std::uint64_t>(event.size()));
  put_fixed(record, masked_crc32c(record));
  record += event;
  put_fixed(record, masked_crc32c(event));
  return record;
}

constexpr std::array<std::uint32_t, 256> crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1U) ^ ((value & 1U) * 0x82F63B78U);
    table[byte] = value;
  }
  return table;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static constexpr auto kTable = crc_table();
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc = kTable[(crc ^ static_cast<std::uint8_t>(byte)) & 0xFFU] ^ (crc >> 8U);
  }
  return ~crc;
}

std::string event_file_head(double unix_seconds) {
  std::string event = event_at(unix_seconds);
  put_bytes(event, 3, "brain.Event:2");  // Event.file_version
  return framed(event);
}

std::string event_record(const ScalarPoint& point) {
  std::string summary;
  for (const auto& [tag, number] : point.values) {
    std::string value;
    put_bytes(value, 1, tag);     // Summary.Value.tag
    put_key(value, 2, kFixed32);  // Summary.Value.simple_value
    put_fixed(value, std::bit_cast<std::uint32_t>(static_cast<float>(number)));
    put_bytes(summary, 1, value);
  }
  std::string event = event_at(point.unix_seconds);
  put_step(event, point.step);
  put_bytes(event, 5, summary);
  return framed(event);
}

std::string event_restart(double unix_seconds, std::int64_t step) {
  std::string log;
  put_key(log, 1, kVarint);  // SessionLog.status
  put_varint(log, 1);        // START
  std::string event = event_at(unix_seconds);
  put_step(event, step);
  put_bytes(event, 7, log);  // Event.session_log
  return framed(event);
}

}  // namespace antdt::metrics
