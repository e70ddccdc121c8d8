// How much of a step the workers of each domain compute, if records may not leave their domain: in
// proportion to the records that are left there. So all domains end together, a step has as many
// records at the end of an epoch as at its beginning, and it is a sample of all data. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/wire/membership_messages.h"

namespace antdt::ctl {

struct DomainRest {
  std::string domain;
  std::vector<WorkerId> workers;  // the members in it, in rising order
  std::uint64_t records = 0;      // that are left to them
};
// Of all domains with members; empty: records are not pinned, or workers do not wait for one
// another.
using DomainRests = std::vector<DomainRest>;

// Scales `weights` (of `workers`, by index) so that those of each domain add up to its part of the
// rest. Within a domain they keep their proportions; they are equal there if all are 0. A worker of
// no domain gets 0. Returned as they are if there are no domains or nothing is left.
[[nodiscard]] std::vector<double> by_domain(std::span<const WorkerId> workers,
                                            std::vector<double> weights, const DomainRests& rests);

// A domain that would go on for much longer than another one under `plan`; empty: there is none, or
// so little is left that it does not matter.
struct LongerDomain {
  std::string domain;
  WorkerId worker;     // its first one
  double of_rest = 0;  // its part of the records that are left
  double of_plan = 0;  // its part of a step
};
[[nodiscard]] std::optional<LongerDomain> longest_domain(const wire::Plan& plan,
                                                         const DomainRests& rests);

}  // namespace antdt::ctl
