#include "trainer/loop/sharing/share_messages.h"

#include <cstring>
#include <optional>

#include "trainer/data/pieces.h"

namespace antdt::trainer {
namespace {

// Empty if one of the pieces is none of a shard's order.
std::optional<std::uint64_t> records_of(const std::vector<wire::Piece>& pieces) {
  std::uint64_t records = 0;
  for (const wire::Piece& piece : pieces) {
    if (piece.from > piece.to || piece.to > piece.shard_records) return std::nullopt;
    records += piece.to - piece.from;
  }
  return records;
}

}  // namespace

bool ToDesk::is_sound() const {
  return first <= records && part.size() <= kMostPieces && records_of(part) == records;
}

bool FromDesk::answers(const ToDesk& ask) const {
  return member == ask.member && step == ask.step && number == ask.number && greets == ask.greets;
}

bool FromDesk::is_sound(const ToDesk& ask) const {
  if (from >= to) return from == to;
  if (ask.most > 0 && to - from > ask.most) return false;
  return records_of(run) == to - from && (owner != ask.member || to <= ask.records);
}

worker::sharing::Answer FromDesk::answer() const {
  worker::sharing::Answer answer{member, step, number, std::nullopt, last, first};
  if (from < to) answer.run = worker::sharing::Run{owner, from, to};
  return answer;
}

FromDesk to_message(const worker::sharing::Answer& answer, const std::vector<wire::Piece>& part) {
  FromDesk message;
  message.member = answer.member;
  message.step = answer.step;
  message.number = answer.number;
  message.last = answer.last;
  message.first = answer.first;
  if (answer.run) {
    message.owner = answer.run->owner;
    message.from = answer.run->from;
    message.to = answer.run->to;
    message.run = data::cut(part, answer.run->from, answer.run->to);
  }
  return message;
}

ShareKeys share_keys(const crypto::Secret& generation, std::uint32_t group_begin) {
  const auto key = [&](std::string_view direction) {
    crypto::Transcript text("antdt shared steps");
    text << direction << group_begin;
    return generation.derive(text.text());
  };
  return {key("to the desk"), key("from the desk")};
}

std::string sealed(const crypto::Secret& key, std::string body) {
  const crypto::Mac mac = key.mac(body);
  return std::string(reinterpret_cast<const char*>(mac.data()), mac.size()) + body;
}

std::string_view opened(const crypto::Secret& key, std::string_view datagram) {
  crypto::Mac mac{};
  if (datagram.size() <= mac.size()) return {};
  std::memcpy(mac.data(), datagram.data(), mac.size());
  const std::string_view body = datagram.substr(mac.size());
  return crypto::same(mac, key.mac(body)) ? body : std::string_view{};
}

}  // namespace antdt::trainer
