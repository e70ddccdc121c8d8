// How long the messages of a step take, in seconds, if links within domains and links between them
// are not alike: with each message over the link of its two ends, in rounds as
// trainer/collective/tcp makes them. A message arrives when its last byte has; a link takes one
// message at a time. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "launcher/plan/link_cost.h"
#include "launcher/plan/measured.h"

namespace antdt::launcher::plan {

// The leaders of groups, by rank, and the links between them.
class Paths {
 public:
  Paths(const DomainLinks& links, std::vector<Group> groups);
  // Of all groups of the job, of those of one domain, or of the first one of each domain.
  [[nodiscard]] static Paths of_job(const DomainLinks& links) { return {links, links.groups}; }
  [[nodiscard]] static Paths of_domain(const DomainLinks& links, std::uint32_t domain);
  [[nodiscard]] static Paths of_leaders(const DomainLinks& links);

  [[nodiscard]] std::uint32_t members() const { return static_cast<std::uint32_t>(groups_.size()); }
  [[nodiscard]] std::uint32_t workers() const;
  // Until a message has left the sender, and until it arrives.
  [[nodiscard]] double sending_s(std::uint32_t from, std::uint32_t to, double bytes) const;
  [[nodiscard]] double arriving_s(std::uint32_t from, std::uint32_t to, double bytes) const;

 private:
  [[nodiscard]] const Link& link(std::uint32_t from, std::uint32_t to) const {
    return groups_[from].domain == groups_[to].domain ? within_ : between_;
  }

  std::vector<Group> groups_;
  Link within_, between_;
};

// As the functions of these names in link_cost.h. Around the ring a message waits for the one
// before it, on its link, and for the part that it adds to, so only those hops take long that are
// between domains.
[[nodiscard]] double sum_s(const Paths& paths, double bytes);
[[nodiscard]] double gather_s(const Paths& paths, double bytes);
[[nodiscard]] double allreduce_s(const Paths& paths, const ModelSize& model,
                                 const AllReduceStep& step);
// With the slowest link in each round, unless all members of a group of two are in one domain.
[[nodiscard]] double ds_sync_s(const DomainLinks& links, const ModelSize& model);

// Bytes of a message between domains that has this part of the elements, relative to a dense one.
// It has a list of two-byte indices, or a bitmap, or all (trainer/sync/gaia/update.h).
[[nodiscard]] double bytes_of_elements(double share);

struct GaiaStep {
  double share = 1;  // of the bytes, in a message that is not whole
  double whole_every = 50;
  double rows_of_worker = 0;  // of the table, in its batch
};
// The sum within each domain, messages between all domains and what others of a domain are passed
// of them, and the slots of all members.
[[nodiscard]] double gaia_s(const DomainLinks& links, const ModelSize& model, const GaiaStep& step);
// What filtering, checking and applying such messages costs each member, if no trial measured it.
[[nodiscard]] double gaia_work_s(const DomainLinks& links, const ModelSize& model,
                                 const GaiaStep& step);

}  // namespace antdt::launcher::plan
