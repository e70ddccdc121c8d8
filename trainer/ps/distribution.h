// What a home has decided and not every server has acknowledged.
//
// Each other server is told of it in order, once; what it has not acknowledged since
// it was last looked at is told again.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "core/result.h"
#include "core/wire/ps_messages.h"
#include "trainer/ps/node_image.h"

namespace antdt::ps {

class Distribution {
 public:
  // To one server: what is far behind is not said again whole each time.
  static constexpr std::size_t kAtOnce = 64;

  struct Tell {
    std::uint32_t server = 0;
    wire::PsDecision decision;
  };

  // Of server `own` of so many.
  Distribution(std::uint32_t own, std::uint32_t servers);

  // Their numbers are in a row.
  void add(const wire::PsDecision& decision);
  // That server has applied those up to `number`. Of no other server: nothing.
  void acknowledged(std::uint32_t server, std::uint64_t number);
  // This one did not get onto its way: it is said again with what is next.
  void no_room(std::uint32_t server, std::uint64_t number);
  // What was acknowledged by nobody since the last look is lost; what is on its way
  // behind something that was acknowledged is not.
  void look();
  // What is to be said now; it counts as said.
  [[nodiscard]] std::vector<Tell> unsaid();

  [[nodiscard]] DistributionImage image() const;
  // Into one that has begun; all that is not acknowledged is unsaid.
  [[nodiscard]] Status restore(const DistributionImage& image);

 private:
  struct Peer {
    std::uint32_t server = 0;
    std::uint64_t said = 0;                 // newest decision
    std::uint64_t acknowledged = 0;         // up to here
    std::uint64_t acknowledged_before = 0;  // when it was last looked at
  };

  std::vector<Peer> peers_;
  std::deque<wire::PsDecision> decisions_;  // not acknowledged by all
};

}  // namespace antdt::ps
