// The envelope of every message, and the messages that every link uses.
//
// A packet has two frames: an Envelope and a body. The envelope says what the body is, and its
// sender or receiver, so that an agent relays messages without decoding bodies.
// docs/wire-protocol.md describes the conversations; the comments of messages say what a field
// means. Units are in the names; times are durations of the sender's monotonic clock.
#pragma once

#include <cstdint>
#include <string>

#include "core/wire/message.h"

namespace antdt::wire {

// The range of protocol versions that this build supports.
inline constexpr std::uint32_t kMinVersion = 1;
inline constexpr std::uint32_t kMaxVersion = 1;

struct Envelope {
  std::string kind;       // kKind of the body
  std::string job;        // job id; empty if the message concerns no job
  WorkerId worker;        // the worker that sent this, or that it is for
  Attempt attempt;        // its attempt; 0: not about a worker
  Generation generation;  // the generation it belongs to; 0: none
  std::uint64_t seq = 0;  // numbers requests of one (worker, attempt) from 1; the reply repeats it
  ANTDT_PART {
    v("k", m.kind);
    v("j", m.job);
    v("w", m.worker);
    v("a", m.attempt);
    v("g", m.generation);
    v("s", m.seq);
  }
};

// Both frames of a message, and the link over which it came.
struct Packet {
  std::string peer;  // routing id on a ROUTER socket; empty on a DEALER
  std::string user;  // the name of the authenticated key (NameOfKey); empty on ipc
  std::string envelope;
  std::string body;
};

// The first message of a peer that connects.
struct Hello {
  std::uint32_t min_version = kMinVersion;
  std::uint32_t max_version = kMaxVersion;
  std::string software;  // "antdt-jobd 0.1.0", for messages to people
  ANTDT_MESSAGE("hello") {
    v("min_version", m.min_version);
    v("max_version", m.max_version);
    v("software", m.software);
  }
};

// Why a request cannot be granted.
enum class RefusalCode : std::uint8_t {
  kOther,    // a reason that only a newer peer knows
  kVersion,  // no protocol version in common
  kStale,    // from an attempt, an incarnation or a generation that is over
  kUnknown,  // the job, the process or the message is not known here
  kBusy,     // not now
  kInvalid,  // the request cannot be understood, or makes no sense
  kFull,     // there is no room for it
  kUser,     // the job's user may not run anything here
  kIo,       // for files: the disk failed
  kMissing,  // for files: there is no such file
  kCorrupt,  // the content is invalid
};
constexpr auto names_of(RefusalCode) {
  return names("other", "version", "stale", "unknown", "busy", "invalid", "full", "user", "io",
               "missing", "corrupt");
}
constexpr RefusalCode unknown_name(RefusalCode) { return RefusalCode::kOther; }

// The answer to a request that cannot be granted.
struct Refused {
  RefusalCode code = RefusalCode::kOther;
  std::string reason;
  ANTDT_MESSAGE("refused") {
    v("code", m.code);
    v("reason", m.reason);
  }
};

struct Done {
  ANTDT_MESSAGE("done") {}
};

}  // namespace antdt::wire
