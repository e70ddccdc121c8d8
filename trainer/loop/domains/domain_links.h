// How the members of domains reach one another, and what passes on these links.
//
// Each domain has a leader, its first member. The leaders exchange over the slow links between
// domains, and each passes what it got to its domain, so every byte crosses a slow link once for
// each domain that it is for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "trainer/collective/collective.h"

namespace antdt::trainer {

// How many bytes the leaders expect of each message, so that most exchanges take the time of one
// message, and not of two. What the leaders of a generation know of it is the same. It is never
// more than the longest message that there can be.
struct ExpectedBytes {
  std::size_t bytes = 0;
};

// Valid during one call of an engine.
struct DomainLinks {
  std::string own;                   // name of this member's domain
  std::vector<std::string> domains;  // that take part, ascending by first rank; own among them
  Collective* across = nullptr;      // the leaders of all domains, in that order; null: this member
                                     // is no leader, or its domain is the only one
  Collective* within = nullptr;      // the members of this domain; null: it is alone
  ExpectedBytes* expected = nullptr;  // of the exchanges of updates; null: nothing is expected

  // Where the own domain is among `domains`.
  [[nodiscard]] std::size_t place() const;
};

// One exchange of updates, the same on all members of all domains.
struct UpdateExchange {
  Step step;            // the one before that which begins with the exchange
  bool whole = false;   // everything that is pending is sent
  float threshold = 0;  // of this exchange (sync::gaia::threshold_at)
  bool visits = false;  // before it, a copy of each replica goes to the next domain
};

// The messages of all domains, in the order of DomainLinks::domains. The parts refer to `bytes`.
struct DomainMessages {
  std::vector<std::byte> bytes;
  std::vector<std::span<std::byte>> parts;
};
// Sends the message of this domain, which all of its members have, and replaces `out` by those of
// all domains. The leaders send one another the sizes with as many bytes as are expected, and in a
// second exchange what is longer, if anything is. None may be longer than `most` bytes: otherwise
// kCorrupt, and nothing of it is read. Other errors are those of the collectives.
[[nodiscard]] Status exchange_messages(const DomainLinks& links, std::span<const std::byte> own,
                                       std::size_t most, DomainMessages& out);

// A copy of this domain's replica goes to the domain that follows in DomainLinks::domains, or to
// the first one, and `guest` becomes that of the domain before, on all members. All have the same
// size.
[[nodiscard]] Status pass_replicas(const DomainLinks& links, std::span<const float> own,
                                   std::vector<float>& guest);

// Every element becomes its mean over the domains' leaders, with the same bits on all members of
// all domains. Nothing happens with one domain. After an error `values` may be anything.
[[nodiscard]] Status mean_of_domains(const DomainLinks& links, std::span<float> values);
[[nodiscard]] Status mean_of_domains(const DomainLinks& links, std::span<double> values);

}  // namespace antdt::trainer
