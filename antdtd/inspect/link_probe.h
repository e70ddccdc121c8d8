// The measurement of a connection between two hosts, for a few seconds and with a bounded amount of
// data. One end listens, the other connects:
//
//   connects                         listens
//   first half of the secret    -->  compared; a stranger's connection is closed
//                               <--  second half: compared, too, before anything is sent
//   'p'                         -->  'p', some times: the round trip
//   'd', then data, then the end of its direction  -->  discarded
//                               <--  how many bytes came, 8 bytes, the lowest first
//
// Both got the secret over their authenticated links, for this one connection. What is sent has no
// meaning, so it is not encrypted.
#pragma once

#include <cstdint>
#include <string>
#include <thread>

#include "core/os/owned_fd.h"
#include "core/result.h"
#include "core/wire/inspect_messages.h"

namespace antdt::antdtd {

// A port that is open for one measurement, in a thread of its own. It is closed after the
// measurement, after some seconds, and with this object.
class LinkListener {
 public:
  // kUsage for a bad secret or range of ports; kIo if no port can be had.
  [[nodiscard]] static Result<LinkListener> open(const wire::FilePort& request);
  LinkListener(LinkListener&&) noexcept = default;
  LinkListener& operator=(LinkListener&&) = delete;
  ~LinkListener();
  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  LinkListener(OwnedFd listening, std::uint16_t port, std::string secret);
  std::uint16_t port_ = 0;
  OwnedFd end_;  // eventfd: the thread is to end
  std::thread thread_;
};

// Connects, proves itself and measures; it takes `send_ms` and a little more, at most some seconds.
// The error says which of these steps failed.
[[nodiscard]] Result<wire::FileLinkTold> measure_link(const wire::FileLink& request);

}  // namespace antdt::antdtd
