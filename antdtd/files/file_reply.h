// Answers of the file service: with the request's peer, job and number.
#pragma once

#include <utility>

#include "core/result.h"
#include "core/wire/packet.h"

namespace antdt::antdtd {

[[nodiscard]] wire::Packet file_reply(const wire::Packet& to, const wire::Envelope& envelope,
                                      const auto& message) {
  wire::Envelope of_reply;
  of_reply.job = envelope.job;
  of_reply.seq = envelope.seq;
  wire::Packet packet = wire::make_packet(std::move(of_reply), message);
  packet.peer = to.peer;
  return packet;
}

// Refused, with the error's message and a code for its kind.
[[nodiscard]] wire::Packet file_refusal(const wire::Packet& to, const wire::Envelope& envelope,
                                        const Error& error);

}  // namespace antdt::antdtd
