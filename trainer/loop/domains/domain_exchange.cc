#include "trainer/loop/domains/domain_exchange.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace antdt::trainer {

namespace gaia = sync::gaia;

Status DomainExchange::exchange(const DomainLinks& links, const UpdateExchange& about,
                                std::span<float> values, const Chooses& chooses) {
  replica_.begin(values);
  if (about.visits) {
    ANTDT_RETURN_IF_ERROR(pass_replicas(links, values, guest_));
    sums_.bytes += values.size_bytes();
  }
  if (about.whole) {
    // Its length says nothing of the messages that follow.
    ExpectedBytes expected = links.expected == nullptr ? ExpectedBytes{} : *links.expected;
    DomainLinks of_whole = links;
    of_whole.expected = &expected;
    return swap_messages(of_whole, about, values, values);
  }
  if (!chooses) return swap_messages(links, about, values, values);
  offered_.assign(replica_.known().begin(), replica_.known().end());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (chooses(i)) offered_[i] = values[i];
  }
  UpdateExchange chosen = about;
  chosen.threshold = 0;
  return swap_messages(links, chosen, values, offered_);
}

Status DomainExchange::swap_messages(const DomainLinks& links, const UpdateExchange& about,
                                     std::span<float> values, std::span<const float> offered) {
  const auto stamp_of = [&](std::size_t place) {
    return gaia::Stamp{static_cast<std::uint32_t>(place), about.step.value + 1, about.whole};
  };
  const std::size_t own = links.place();
  const std::uint64_t significant = replica_.encode(stamp_of(own), offered, about.threshold, own_);
  ANTDT_RETURN_IF_ERROR(
      exchange_messages(links, own_, gaia::dense_bytes(values.size()), messages_));
  std::vector<std::optional<gaia::Message>> received(links.domains.size());
  for (std::size_t i = 0; i < received.size(); ++i) {
    if (i == own) continue;
    ANTDT_TRY(received[i], gaia::read_message(messages_.parts[i], 0, values.size()));
    const gaia::Stamp expected = stamp_of(i), &found = received[i]->stamp;
    if (found.domain == expected.domain && found.clock == expected.clock &&
        found.whole == expected.whole) {
      continue;
    }
    return fail(ErrorKind::kCorrupt,
                "domain '{}' sent the updates of domain {} in step {}{}, not its own of step {}{}",
                links.domains[i], found.domain, found.clock, found.whole ? ", whole" : "",
                expected.clock, expected.whole ? ", whole" : "");
  }
  // Only now, so that nothing is applied of messages of which one is wrong; on all members in the
  // same order.
  for (std::size_t i = 0; i < received.size(); ++i) {
    if (received[i]) replica_.receive(links.domains[i], *received[i], values);
  }
  sums_.messages += 1;
  sums_.whole += about.whole ? 1 : 0;
  sums_.elements += values.size();
  sums_.sent += significant;
  const std::uint64_t others = links.domains.size() - 1;
  sums_.bytes += others * own_.size();
  sums_.dense_bytes += others * gaia::dense_bytes(values.size());
  return {};
}

Status DomainExchange::make_equal(const DomainLinks& links, std::span<float> values,
                                  const AlsoEqual& also) {
  replica_.withdraw_all_but(links.domains, values);
  if (links.domains.size() < 2) return {};
  const UpdateExchange everything{.step = {}, .whole = true};
  ANTDT_RETURN_IF_ERROR(swap_messages(links, everything, values, values));
  std::vector<std::vector<float>> means;
  for (const std::span<float> array : also.means) {
    auto& mean = means.emplace_back(array.begin(), array.end());
    ANTDT_RETURN_IF_ERROR(mean_of_domains(links, std::span(mean)));
  }
  ANTDT_RETURN_IF_ERROR(mean_of_domains(links, also.doubles));
  for (std::size_t i = 0; i < means.size(); ++i) {
    std::ranges::copy(means[i], also.means[i].begin());
  }
  return {};
}

Status DomainExchange::consolidate(const DomainLinks& links, std::span<float> values,
                                   const AlsoEqual& also) {
  replica_.begin(values);
  const Status equal = make_equal(links, values, also);
  if (!equal) {
    replica_.restore(values);
    return equal;
  }
  replica_.settle();
  return {};
}

}  // namespace antdt::trainer
