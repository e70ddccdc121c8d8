// What a member of a domain keeps beside its parameters: which of them the other domains know, and
// what it has received of each of the others in part. Pure.
//
// `values` are the parameters. A message of a domain has what its replica has gained and not sent
// (values - known), all of it or what is significant (update.h). Received changes are added to
// values and known. Those that have arrived since the domain's last whole message are also summed
// in its *part*: the updates of records of which this replica may lack some elements. If that
// domain is lost, withdrawing the part leaves none of them, so the records can be trained again.
//
// States:
//
//     settled ── exchange ──> in a step ── applied ──> pending ── exchange ──> in a step ...
//        ^                        └─────── restore ───> what was before the exchange
//        └── settle (replicas were made equal), or applied in a step without an exchange
//
// In a step without an exchange there is one domain only, which holds the model alone.
// All members of a domain call the same with the same bits, so they go on with the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "trainer/sync/gaia/update.h"

namespace antdt::sync::gaia {

class DomainReplica {
 public:
  // Replicas are equal: nothing is pending, and no domain's updates are here in part. Forgets what
  // was kept for restore().
  void settle();

  // An exchange begins: what is now is kept until applied() or restore(). Once in a step.
  void begin(std::span<const float> values);
  // Replaces `out` by this domain's message, after which what is in it is known. `offered` are the
  // values that may be sent: the values, or known ones where an element is to wait. Returns how
  // many elements were significant.
  std::uint64_t encode(const Stamp& stamp, std::span<const float> offered, float threshold,
                       std::vector<std::byte>& out);
  // A message of another domain, which read_message() has checked.
  void receive(const std::string& domain, const Message& message, std::span<float> values);
  // Takes back what is here in part of all domains but these.
  void withdraw_all_but(std::span<const std::string> domains, std::span<float> values);

  // The step was applied to the values.
  void applied();
  // What was before begin() is back, to the bit, unless it is kept no more.
  void restore(std::span<float> values);

  // Between begin() and applied() or restore(): the values of begin().
  [[nodiscard]] std::span<const float> before() const { return kept_.values; }
  [[nodiscard]] std::span<const float> known() const { return known_; }
  [[nodiscard]] bool settled() const { return !pending_; }

 private:
  struct Kept {
    bool pending = false;
    std::vector<float> values, known;
    std::map<std::string, std::vector<float>> parts;
  };
  bool pending_ = false;  // false: known_ and parts_ have no meaning; values are known to all
  bool in_step_ = false;  // whether kept_ has a meaning
  std::vector<float> known_;
  std::map<std::string, std::vector<float>> parts_;  // by domain
  Kept kept_;
  Encoder encoder_;
};

}  // namespace antdt::sync::gaia
