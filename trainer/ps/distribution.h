// The decisions of a home that some server has not acknowledged yet.
//
// Each other server is sent the decisions in order, once. What it has not acknowledged
// between two ticks is sent again.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "core/result.h"
#include "core/wire/servers/ps_messages.h"
#include "trainer/ps/replica/node_image.h"

namespace antdt::ps {

class Distribution {
 public:
  // How many are sent to one server at a time, so that a server that is far behind does not get all
  // at once.
  static constexpr std::size_t kAtOnce = 64;

  struct Tell {
    std::uint32_t server = 0;
    wire::PsDecision decision;
  };

  // For the home that is server `own` of `servers` servers.
  Distribution(std::uint32_t own, std::uint32_t servers);

  // Decisions come with consecutive numbers.
  void add(const wire::PsDecision& decision);
  // That server has applied the decisions up to `number`. Numbers of unknown servers are ignored.
  void acknowledged(std::uint32_t server, std::uint64_t number);
  // This message could not be sent; it is sent again with the next ones.
  void no_room(std::uint32_t server, std::uint64_t number);
  // To be called at each tick. If a server acknowledged nothing since the last tick, what was
  // sent to it counts as lost; if it acknowledged something, the rest is still on its way.
  void look();
  // The messages to send now; they count as sent.
  [[nodiscard]] std::vector<Tell> unsaid();

  [[nodiscard]] DistributionImage image() const;
  // Takes over a state; everything that is not acknowledged counts as not sent.
  [[nodiscard]] Status restore(const DistributionImage& image);

 private:
  struct Peer {
    std::uint32_t server = 0;
    std::uint64_t said = 0;                 // newest decision that was sent
    std::uint64_t acknowledged = 0;         // decisions up to here are acknowledged
    std::uint64_t acknowledged_before = 0;  // its value at the last tick
  };

  std::vector<Peer> peers_;
  std::deque<wire::PsDecision> decisions_;  // decisions that are not acknowledged by all
};

}  // namespace antdt::ps
