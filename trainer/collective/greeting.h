// How the members of a group find one another: of each pair that is to be connected the lower
// rank dials, and both prove that they are members of this generation (handshake.h).
//
// Whoever can reach a member's port may dial it, as often as it likes. What that costs the
// members is bounded: a connection that has not proved anything is one of kMostStrangers, of
// which the oldest makes room; one that has said something wrong is closed at once. A member
// says who it is with its first bytes, and dials again if its connection was closed before it
// was answered, so that it gets in between any number of strangers.
#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/os/owned_fd.h"
#include "core/result.h"
#include "trainer/collective/handshake.h"

namespace antdt::trainer {

class Greeting {
 public:
  // Connections that have proved nothing yet, at most.
  static constexpr std::size_t kMostStrangers = 128;

  struct Met {
    OwnedFd fd;
    LinkKeys keys;
  };
  // `listener` does not block. What makes `wake` readable ends it.
  Greeting(Handshake::Self self, const OwnedFd& listener, const OwnedFd& wake)
      : self_(std::move(self)), listener_(listener), wake_(wake) {}

  // Connections to all `peers`, by rank. kRefused when one that was dialled does not know
  // this member, or is none; kIo when one cannot be reached or does not come in time; kAborted.
  [[nodiscard]] Result<std::map<std::uint32_t, Met>> meet(const std::vector<std::uint32_t>& peers,
                                                          std::span<const std::string> addresses,
                                                          Duration timeout);

 private:
  struct Half {  // of a connection that is being made
    OwnedFd fd;
    Handshake handshake;
    bool dialled = false;
    bool said = false;  // of a dialled one: the hello is sent
    [[nodiscard]] bool is_stranger() const {
      return !dialled && handshake.state() == Handshake::State::kListening;
    }
  };
  struct Redial {
    MonoTime at;
    Duration pause{};  // that came before it
  };
  enum class Progress : std::uint8_t { kGoesOn, kMet, kTurnedAway };

  [[nodiscard]] Status dial(std::uint32_t peer);
  [[nodiscard]] Status dial_again();
  [[nodiscard]] Status accept_some();
  // False if there is none.
  bool drop_oldest_stranger();
  [[nodiscard]] Result<Progress> go_on(Half& half);
  [[nodiscard]] Status say_hello(Half& half);
  [[nodiscard]] Result<Progress> on_silence(const Half& half, int error);
  [[nodiscard]] Result<Progress> on_state(Half& half, const std::string& reply);
  [[nodiscard]] bool expects(const Handshake& member);
  [[nodiscard]] Status wait(MonoTime until);
  [[nodiscard]] Status time_is_over() const;
  [[nodiscard]] std::string missing() const;

  const Handshake::Self self_;
  const OwnedFd& listener_;
  const OwnedFd& wake_;
  std::vector<std::uint32_t> peers_;
  std::span<const std::string> addresses_;
  std::vector<Half> halves_;
  std::map<std::uint32_t, Redial> redials_;  // by peer
  std::set<crypto::Nonce> heard_;            // of members, each once
  std::map<std::uint32_t, Met> met_;
  std::vector<pollfd> polled_;
  int not_accepted_ = 0;  // errno: who dials cannot be taken now
  std::string odd_;       // what one that is no member said of itself
};

}  // namespace antdt::trainer
