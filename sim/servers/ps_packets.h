// What goes between workers and parameter servers, and between these.
//
// A socket keeps the order of what it carries and says nothing twice; what is on
// it is lost when one end goes, or finds no room.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "core/ids.h"
#include "core/wire/envelope.h"
#include "core/wire/ps_messages.h"

namespace antdt::sim {

using PsAsk = std::variant<wire::PsOpen, wire::PsPut, wire::PsPull, wire::PsPush, wire::PsCommit,
                           wire::PsIdle, wire::PsDecision, wire::PsCopied, wire::PsImage>;
using PsReply =
    std::variant<wire::PsOpened, wire::PsPulled, wire::PsStaged, wire::PsIdled, wire::Done,
                 wire::Refused, wire::PsDecided, wire::PsApplied, wire::PsTaken>;

// To an end point. The answer goes back to the socket that it came from.
struct PsPacket {
  Member from;
  std::uint64_t socket = 0;  // of all that there ever were
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
