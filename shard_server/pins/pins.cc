#include "shard_server/pins/pins.h"

#include <algorithm>
#include <span>

namespace antdt::shard_server {

std::uint64_t Pins::records() const {
  std::uint64_t sum = 0;
  for (const PinnedRun& run : runs) sum += run.records;
  return sum;
}

DomainNumber Pins::number_of(std::string_view name) const {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return {};
  return DomainNumber{static_cast<std::uint32_t>(found - names.begin() + 1)};
}

std::string_view Pins::name_of(DomainNumber domain) const {
  if (domain.value == 0 || domain.value > names.size()) return {};
  return names[domain.value - 1];
}

Pins Pins::first(std::uint64_t records) const {
  Pins cut{names, {}};
  for (const PinnedRun& run : runs) {
    if (records == 0) break;
    cut.runs.push_back({std::min(run.records, records), run.domain});
    records -= cut.runs.back().records;
  }
  return cut;
}

void Pins::add(std::uint64_t records, std::string_view domain) {
  if (records == 0) return;
  DomainNumber number = number_of(domain);
  if (number.value == 0) {
    names.emplace_back(domain);
    number.value = static_cast<std::uint32_t>(names.size());
  }
  if (!runs.empty() && runs.back().domain == number) {
    runs.back().records += records;
  } else {
    runs.push_back({records, number});
  }
}

bool Pins::extend(const Pins& earlier) const {
  if (empty() != earlier.empty() || earlier.names.size() > names.size()) return false;
  return std::ranges::equal(earlier.names, std::span(names).first(earlier.names.size())) &&
         first(earlier.records()).runs == earlier.runs;
}

bool Pins::are_possible() const {
  return std::ranges::all_of(
      runs, [&](const PinnedRun& run) { return run.records > 0 && !name_of(run.domain).empty(); });
}

}  // namespace antdt::shard_server
