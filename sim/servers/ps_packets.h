// The packets between workers and parameter servers, and between servers.
//
// A socket keeps the order of its packets and duplicates none. Packets are lost when one end goes
// away, or when there is no room.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "core/ids.h"
#include "core/wire/envelope.h"
#include "core/wire/servers/ps_messages.h"

namespace antdt::sim {

using PsAsk = std::variant<wire::PsOpen, wire::PsPut, wire::PsPull, wire::PsPush, wire::PsCommit,
                           wire::PsIdle, wire::PsDecision, wire::PsCopied, wire::PsImage,
                           wire::PsStepPull, wire::PsStepPush>;
using PsReply =
    std::variant<wire::PsOpened, wire::PsPulled, wire::PsStaged, wire::PsIdled, wire::Done,
                 wire::Refused, wire::PsDecided, wire::PsApplied, wire::PsTaken>;

// Where packets reach the process that listens at this end point with this key. Another process may
// listen there later, as over tcp.
[[nodiscard]] inline std::string address_of(const std::string& endpoint, const std::string& key) {
  return endpoint + " by key " + key;
}

// A packet to such an address. The answer returns to the socket from which it came.
struct PsPacket {
  Member from;
  std::uint64_t socket = 0;  // a number among all sockets of the run
  Generation generation;
  std::uint64_t seq = 0;
  PsAsk body;
};
struct PsAnswer {
  std::uint64_t socket = 0;
  std::uint64_t seq = 0;
  PsReply body;
};

// Slices of a checkpoint by their number, as trainer/ps/rows/slice_image.h writes them.
using PsSlices = std::map<std::uint32_t, std::string>;

[[nodiscard]] std::string describe(const PsPacket& packet);
[[nodiscard]] std::string describe(const PsAnswer& answer);

}  // namespace antdt::sim
