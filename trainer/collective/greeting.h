// How the members of a group connect. Of each pair that must be connected, the lower rank dials,
// and both prove that they are members of this generation (handshake.h).
//
// meet() may be called again for further peers. A member may then be dialled by one that is ahead
// of it: any member of the generation with a lower rank that is not connected is let in, and
// handed to the caller beside the peers. In these later calls peers may be late by hours. Since a
// member that waits to be dialled has no connection whose end would tell that the dialler is gone,
// it dials, too, says nothing and only watches that connection: it ends with the process, and then
// nobody listens there any more.
//
// Anyone who can reach a member's port may dial it, as often as they like. The cost of that is
// bounded: at most kMostStrangers connections may have proved nothing yet, and the oldest of them
// makes room for a new one; a connection that sent something wrong is closed at once. A member
// identifies itself with its first bytes, and dials again if its connection was closed before it
// was answered, so it gets in among any number of strangers.
#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/os/net.h"
#include "core/os/owned_fd.h"
#include "core/result.h"
#include "trainer/collective/handshake.h"

namespace antdt::trainer {

class Greeting {
 public:
  // The most connections that have proved nothing yet.
  static constexpr std::size_t kMostStrangers = 128;

  struct Met {
    OwnedFd fd;
    LinkKeys keys;
  };
  // Starts to connect to an address; no descriptor if it must be tried again later.
  using Dial = std::function<Result<OwnedFd>(const std::string& address)>;
  enum class Admits : std::uint8_t {
    kPeers,       // only those for which meet() waits
    kAllMembers,  // any member, so that meet() can be called again
  };
  // `listener` must be non-blocking. When `wake` becomes readable, the greeting ends.
  Greeting(Handshake::Self self, const OwnedFd& listener, const OwnedFd& wake,
           Dial dial = start_to_connect, Admits admits = Admits::kPeers)
      : self_(std::move(self)),
        listener_(listener),
        wake_(wake),
        dial_(std::move(dial)),
        admits_(admits) {}

  // Connects to all `peers`; the result is by rank, with the other members that came meanwhile if
  // they are admitted. None of `peers` may have been in an earlier result. kRefused if a peer that
  // was dialled does not know this member, or is not a member; kIo if one cannot be reached or does
  // not come in time; kAborted.
  [[nodiscard]] Result<std::map<std::uint32_t, Met>> meet(const std::vector<std::uint32_t>& peers,
                                                          std::span<const std::string> addresses,
                                                          Duration timeout);

 private:
  struct Half {  // a connection that is being made
    OwnedFd fd;
    Handshake handshake;
    bool dialled = false;
    bool said = false;     // for a dialled one: the hello is sent
    bool watches = false;  // dialled to notice the end of a peer, which dials this member
    [[nodiscard]] bool is_stranger() const {
      return !dialled && handshake.state() == Handshake::State::kListening;
    }
  };
  struct Redial {
    MonoTime at;
    Duration pause{};  // the pause before the next try
  };
  enum class Progress : std::uint8_t { kGoesOn, kMet, kTurnedAway };

  [[nodiscard]] Status dial(std::uint32_t peer);
  [[nodiscard]] Status dial_all();
  void stop_dialling();
  void plan_redial(std::uint32_t peer);
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
  const Dial dial_;
  const Admits admits_;
  std::vector<std::uint32_t> peers_;
  std::span<const std::string> addresses_;
  std::vector<Half> halves_;
  std::map<std::uint32_t, Redial> redials_;  // by peer
  std::set<crypto::Nonce> heard_;            // nonces of members, each used once
  std::map<std::uint32_t, Met> met_;         // in this call of meet()
  std::set<std::uint32_t> connected_;        // in any
  bool has_met_ = false;                     // an earlier call has ended
  std::vector<pollfd> polled_;
  int not_accepted_ = 0;  // errno: why connections cannot be accepted now
  std::string odd_;       // what a peer that is not a member sent about itself
};

}  // namespace antdt::trainer
