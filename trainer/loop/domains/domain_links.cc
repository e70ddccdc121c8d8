#include "trainer/loop/domains/domain_links.h"

#include <algorithm>
#include <cstring>
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

// What leaders have told one another first: of each message its size, and its first bytes.
struct Heads {
  std::vector<std::uint64_t> sizes;  // by domain
  std::size_t most = 0;              // so many bytes of each message are there, or all of them
  std::vector<std::byte> all;        // of each domain: the size, then `most` bytes

  [[nodiscard]] std::size_t block() const { return sizeof(std::uint64_t) + most; }
  [[nodiscard]] std::span<const std::byte> of(std::size_t place) const {
    return std::span(all).subspan(place * block() + sizeof(std::uint64_t),
                                  std::min<std::size_t>(most, sizes[place]));
  }
};

// What is expected after messages of which the longest had so many bytes: more than these, because
// a latency between domains costs more than some bytes, and never more than `most`, whatever size a
// leader claims. After long messages it shrinks slowly.
std::size_t expected_after(std::uint64_t longest, std::size_t expected, std::size_t most) {
  if (longest >= most) return most;
  return std::min<std::size_t>(
      std::max<std::size_t>(longest + longest / 4, expected - expected / 64), most);
}

Result<Heads> exchange_heads(const DomainLinks& links, std::span<const std::byte> own,
                             std::size_t most) {
  Heads heads;
  heads.most = links.expected == nullptr ? 0 : links.expected->bytes;
  std::vector<std::byte> mine(heads.block());
  const std::uint64_t size = own.size();
  std::memcpy(mine.data(), &size, sizeof size);
  std::ranges::copy(own.first(std::min(own.size(), heads.most)), mine.begin() + sizeof size);
  heads.all.resize(mine.size() * links.domains.size());
  ANTDT_RETURN_IF_ERROR(links.across->allgather(mine, heads.all));
  heads.sizes.resize(links.domains.size());
  for (std::size_t i = 0; i < heads.sizes.size(); ++i) {
    std::memcpy(&heads.sizes[i], &heads.all[i * heads.block()], sizeof size);
  }
  if (links.expected != nullptr) {
    links.expected->bytes =
        expected_after(*std::ranges::max_element(heads.sizes), links.expected->bytes, most);
  }
  return heads;
}

// Completes the messages, whose sizes fit.
Status exchange_rests(const DomainLinks& links, const Heads& heads, std::span<const std::byte> own,
                      DomainMessages& out) {
  std::vector<std::size_t> sizes, begins;
  std::size_t total = 0;
  for (std::size_t i = 0; i < out.parts.size(); ++i) {
    std::ranges::copy(heads.of(i), out.parts[i].begin());
    begins.push_back(total);
    sizes.push_back(heads.sizes[i] - heads.of(i).size());
    total += sizes.back();
  }
  if (total == 0) return {};
  std::vector<std::byte> rests(total);
  const std::size_t place = links.place();
  std::ranges::copy(own.subspan(own.size() - sizes[place]),
                    rests.begin() + static_cast<std::ptrdiff_t>(begins[place]));
  ANTDT_RETURN_IF_ERROR(links.across->allgather_parts(sizes, rests));
  for (std::size_t i = 0; i < out.parts.size(); ++i) {
    std::ranges::copy(std::span(rests).subspan(begins[i], sizes[i]),
                      out.parts[i].begin() + static_cast<std::ptrdiff_t>(heads.of(i).size()));
  }
  return {};
}

template <class T>
Status mean_over_leaders(const DomainLinks& links, std::span<T> values) {
  if (links.domains.size() < 2 || values.empty()) return {};
  if (links.across != nullptr) ANTDT_RETURN_IF_ERROR(links.across->allreduce_mean(values));
  return pass_within(links, std::as_writable_bytes(values));
}

}  // namespace

std::size_t DomainLinks::place() const {
  return static_cast<std::size_t>(std::ranges::find(domains, own) - domains.begin());
}

Status exchange_messages(const DomainLinks& links, std::span<const std::byte> own, std::size_t most,
                         DomainMessages& out) {
  Heads heads;
  if (links.across != nullptr) {
    ANTDT_TRY(heads, exchange_heads(links, own, most));
  } else {
    heads.sizes.resize(links.domains.size());
  }
  ANTDT_RETURN_IF_ERROR(pass_within(links, std::as_writable_bytes(std::span(heads.sizes))));
  for (std::size_t i = 0; i < heads.sizes.size(); ++i) {
    if (heads.sizes[i] <= most) continue;
    return fail(
        ErrorKind::kCorrupt,
        "domain '{}' says that its updates have {} bytes, and {} is the most that there can "
        "be: the domains train different models",
        links.domains[i], heads.sizes[i], most);
  }
  out.bytes.resize(std::reduce(heads.sizes.begin(), heads.sizes.end()));
  out.parts.clear();
  std::size_t begin = 0;
  for (const std::uint64_t size : heads.sizes) {
    out.parts.push_back(std::span<std::byte>(out.bytes).subspan(begin, size));
    begin += size;
  }
  if (links.across != nullptr) ANTDT_RETURN_IF_ERROR(exchange_rests(links, heads, own, out));
  return pass_within(links, out.bytes);
}

Status pass_replicas(const DomainLinks& links, std::span<const float> own,
                     std::vector<float>& guest) {
  guest.resize(own.size());
  const std::span<std::byte> received = std::as_writable_bytes(std::span(guest));
  if (links.across != nullptr) {
    const std::size_t count = links.domains.size(), place = links.place();
    std::vector<std::size_t> to(count, 0), from(count, 0);
    to[(place + 1) % count] = own.size_bytes();
    from[(place + count - 1) % count] = own.size_bytes();
    ANTDT_RETURN_IF_ERROR(links.across->alltoall_parts(to, std::as_bytes(own), from, received));
  }
  return pass_within(links, received);
}

Status mean_of_domains(const DomainLinks& links, std::span<float> values) {
  return mean_over_leaders(links, values);
}
Status mean_of_domains(const DomainLinks& links, std::span<double> values) {
  return mean_over_leaders(links, values);
}

}  // namespace antdt::trainer
