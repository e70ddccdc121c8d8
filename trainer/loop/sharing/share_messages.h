// The datagrams between members that share their steps and the desk of their group.
//
//   mac (32 bytes), body (a msgpack map)
//
//   member -> desk: ToDesk. A greeting, by which a member learns whether datagrams arrive; or an
//     offer; or an offer with an ask.
//   desk -> member: FromDesk. The answer to a greeting or an ask.
//
// The mac is HMAC-SHA-256 over the body with a secret that is derived from the generation's secret,
// the group and the direction. So only members of the generation are heard, and nothing that was
// recorded in another one. A datagram that is repeated within its generation changes nothing: asks
// and answers have step and number. Nothing is encrypted; a datagram names records by their
// positions and contains none of their content. A part of a step may consist of kMostPieces pieces
// of shards, so that the largest message fits one datagram (kMostBytes). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/crypto/secret.h"
#include "core/ids.h"
#include "core/result.h"
#include "core/wire/message.h"
#include "core/wire/shard_messages.h"
#include "trainer/worker/sharing/share_desk.h"

namespace antdt::trainer {

inline constexpr std::size_t kMostPieces = 500;
inline constexpr std::size_t kMostBytes = 65507;  // that a UDP datagram carries

// What a member offers, and the number of its ask; 0: it does not ask yet.
struct ToDesk {
  std::uint32_t member = 0;  // index in the group
  Step step;
  std::uint32_t records = 0;
  std::uint32_t first = 0;
  std::uint32_t most = 0;
  std::uint32_t number = 0;
  std::vector<wire::Piece> part;  // the records of its part
  bool greets = false;            // it only asks whether the desk is there
  ANTDT_MESSAGE("share-offer") {
    v("m", m.member);
    v("s", m.step);
    v("r", m.records);
    v("f", m.first);
    v("b", m.most);
    v("n", m.number);
    v("p", m.part);
    v("g", m.greets);
  }
  [[nodiscard]] worker::sharing::Offered offer() const {
    return {member, step, records, first, most};
  }
  // Whether its numbers agree with the records that it names.
  [[nodiscard]] bool is_sound() const;
};

struct FromDesk {
  std::uint32_t member = 0;
  Step step;
  std::uint32_t number = 0;
  std::uint32_t owner = 0;  // of the run; an empty one: nothing is left
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  bool last = false;
  double first = 0;
  std::vector<wire::Piece> run;  // its records
  bool greets = false;           // the answer to a greeting
  ANTDT_MESSAGE("share-run") {
    v("m", m.member);
    v("s", m.step);
    v("n", m.number);
    v("o", m.owner);
    v("f", m.from);
    v("t", m.to);
    v("l", m.last);
    v("w", m.first);
    v("p", m.run);
    v("g", m.greets);
  }
  [[nodiscard]] worker::sharing::Answer answer() const;
  // Whether it answers this ask.
  [[nodiscard]] bool answers(const ToDesk& ask) const;
  // Whether whoever asked can compute this: the run is no larger than `ask` allows, is in its own
  // part if that is what it names, and has as many records as are named.
  [[nodiscard]] bool is_sound(const ToDesk& ask) const;
};
// `part`: the records of the owner's part; not used without a run.
[[nodiscard]] FromDesk to_message(const worker::sharing::Answer& answer,
                                  const std::vector<wire::Piece>& part);

// The secrets of both directions, of the group that begins at this rank.
struct ShareKeys {
  crypto::Secret to_desk;
  crypto::Secret from_desk;
};
[[nodiscard]] ShareKeys share_keys(const crypto::Secret& generation, std::uint32_t group_begin);

[[nodiscard]] std::string sealed(const crypto::Secret& key, std::string body);
// The body; empty if it was sealed with another key.
[[nodiscard]] std::string_view opened(const crypto::Secret& key, std::string_view datagram);

}  // namespace antdt::trainer
