#include "bench/replicas/ways.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace antdt::bench::replicas {
namespace {

using synchronisation::Mixing;

std::vector<Way> all_ways() {
  return {{"all-reduce", Mixing::kAll},
          {"ds-sync", Mixing::kDsSync},
          {"fixed-groups", Mixing::kFixedGroups},
          {"none", Mixing::kNone},
          {"parameters", Mixing::kDsSync, Rule::kParameters},
          {"moments", Mixing::kDsSync, Rule::kMoments},
          {"changed-rows", Mixing::kDsSync, Rule::kChangedRows},
          {"scaled-rows", Mixing::kDsSync, Rule::kScaledRows}};
}

}  // namespace

Result<std::vector<Way>> ways_of(std::span<const std::string> names) {
  std::vector<Way> ways = all_ways();
  for (const std::string& name : names) {
    if (std::ranges::find(ways, name, &Way::name) != ways.end()) continue;
    std::vector<std::string> known;
    for (const Way& way : ways) known.push_back(way.name);
    return fail(ErrorKind::kUsage, "'{}' is no way to mix replicas: use {}", name,
                fmt::join(known, ", "));
  }
  std::erase_if(ways, [&](const Way& way) {
    return way.mixing != Mixing::kAll && std::ranges::find(names, way.name) == names.end();
  });
  return ways;
}

}  // namespace antdt::bench::replicas
