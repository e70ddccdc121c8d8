#include "trainer/loop/domains/domain_links.h"

#include <algorithm>
#include <numeric>

namespace antdt::trainer {
namespace {

// The leader's bytes come to all members of its domain.
Status pass_within(const DomainLinks& links, std::span<std::byte> bytes) {
  if (links.within == nullptr || bytes.empty()) return {};
  std::vector<std::size_t> sizes(links.within->size(), 0);
  sizes.front() = bytes.size();
  return links.within->allgather_parts(sizes, bytes);
}

std::size_t place_of(const DomainLinks& links) {
  return static_cast<std::size_t>(std::ranges::find(links.domains, links.own) -
                                  links.domains.begin());
}

template <class T>
Status mean_over_leaders(const DomainLinks& links, std::span<T> values) {
  if (links.domains.size() < 2 || values.empty()) return {};
  if (links.across != nullptr) ANTDT_RETURN_IF_ERROR(links.across->allreduce_mean(values));
  return pass_within(links, std::as_writable_bytes(values));
}

}  // namespace

Status exchange_messages(const DomainLinks& links, std::span<const std::byte> own, std::size_t most,
                         DomainMessages& out) {
  std::vector<std::uint64_t> said(links.domains.size());
  const std::uint64_t bytes = own.size();
  if (links.across != nullptr) {
    ANTDT_RETURN_IF_ERROR(links.across->allgather(std::as_bytes(std::span(&bytes, 1)),
                                                  std::as_writable_bytes(std::span(said))));
  }
  ANTDT_RETURN_IF_ERROR(pass_within(links, std::as_writable_bytes(std::span(said))));
  for (std::size_t i = 0; i < said.size(); ++i) {
    if (said[i] <= most) continue;
    return fail(
        ErrorKind::kCorrupt,
        "domain '{}' says that its updates have {} bytes, and {} is the most that there can "
        "be: install the same release of AntDT on all hosts",
        links.domains[i], said[i], most);
  }
  const std::vector<std::size_t> sizes(said.begin(), said.end());
  out.bytes.resize(std::reduce(sizes.begin(), sizes.end()));
  out.parts.clear();
  std::size_t begin = 0;
  for (const std::size_t size : sizes) {
    out.parts.push_back(std::span<const std::byte>(out.bytes).subspan(begin, size));
    begin += size;
  }
  if (links.across != nullptr) {
    const std::size_t place = place_of(links);
    const std::size_t at =
        std::reduce(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(place));
    std::ranges::copy(own, out.bytes.begin() + static_cast<std::ptrdiff_t>(at));
    ANTDT_RETURN_IF_ERROR(links.across->allgather_parts(sizes, out.bytes));
  }
  return pass_within(links, out.bytes);
}

Status mean_of_domains(const DomainLinks& links, std::span<float> values) {
  return mean_over_leaders(links, values);
}
Status mean_of_domains(const DomainLinks& links, std::span<double> values) {
  return mean_over_leaders(links, values);
}

}  // namespace antdt::trainer
