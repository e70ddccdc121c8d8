// How the members of one host come to share memory.
//
// Each listens on an abstract unix socket, of which the name is random. They connect and prove to
// each other that they are members, as over tcp (greeting.h). Over each of these connections, which
// stay open, both then send their eventfd and the CPUs on which they may run; the first member adds
// the memory. A process that cannot prove that it is a member gets none of these.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/os/owned_fd.h"
#include "core/result.h"
#include "trainer/collective/handshake.h"
#include "trainer/collective/shm/bell.h"
#include "trainer/collective/shm/mates.h"

namespace antdt::trainer::shm {

class Meeting {
 public:
  // Begins to listen. kIo.
  [[nodiscard]] static Result<Meeting> listen(std::shared_ptr<Bell> bell);

  // Of the socket, without the zero byte that makes it abstract.
  [[nodiscard]] const std::string& name() const { return name_; }

  struct Timeouts {
    Duration connect{};    // to meet all
    Duration operation{};  // one wait of an operation, later
  };
  // Meets the members `ranks` of this host, in ascending order, of which the own is one; `names` is
  // by rank. kRefused if one is not a member or has another rank; kIo if one cannot be reached in
  // time; kCorrupt if one hands over something else; kAborted. Used once.
  [[nodiscard]] Result<std::unique_ptr<Mates>> meet(const Handshake::Self& self,
                                                    const std::vector<std::uint32_t>& ranks,
                                                    std::span<const std::string> names,
                                                    const Timeouts& timeouts);

 private:
  Meeting(std::shared_ptr<Bell> bell, OwnedFd listener, std::string name)
      : bell_(std::move(bell)), listener_(std::move(listener)), name_(std::move(name)) {}

  std::shared_ptr<Bell> bell_;
  OwnedFd listener_;
  std::string name_;
};

}  // namespace antdt::trainer::shm
