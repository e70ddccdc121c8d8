// Members of domains in tests: the groups that the driver of a member makes of a generation's
// collective.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/collective/testing.h"
#include "trainer/loop/domains/domain_links.h"

namespace antdt::trainer {

// In the order of their first ranks; the ranks ascend.
using DomainsOfTest = std::vector<std::pair<std::string, std::vector<std::uint32_t>>>;

// What a member of one of these domains has; members of others are not to have it.
class LinksOfTest {
 public:
  LinksOfTest(Collective& all, const DomainsOfTest& domains) {
    std::vector<std::uint32_t> leaders;
    for (const auto& [name, ranks] : domains) {
      links_.domains.push_back(name);
      leaders.push_back(ranks.front());
      if (std::ranges::find(ranks, all.rank()) == ranks.end()) continue;
      links_.own = name;
      within_ = group(all, ranks);
      if (ranks.size() > 1) links_.within = within_.get();
    }
    const bool leads = std::ranges::find(leaders, all.rank()) != leaders.end();
    if (leads && leaders.size() > 1) across_ = group(all, leaders);
    links_.across = across_.get();
  }
  [[nodiscard]] const DomainLinks& links() const { return links_; }
  // The same, with messages of expected lengths, as in the steps of a job.
  [[nodiscard]] DomainLinks in_steps() {
    DomainLinks links = links_;
    links.expected = &expected_;
    return links;
  }
  // In which gradients are summed.
  [[nodiscard]] Collective& within() const { return *within_; }

 private:
  static std::unique_ptr<Collective> group(Collective& all,
                                           const std::vector<std::uint32_t>& ranks) {
    auto made = all.group(ranks);
    if (!made) throw std::runtime_error(made.error().message);
    return std::move(*made);
  }
  std::unique_ptr<Collective> within_, across_;
  DomainLinks links_;
  ExpectedBytes expected_;
};

inline OptionsOf with_groups(const Layout& layout) {
  return [layout](std::uint32_t rank) {
    CollectiveOptions options = layout.options_of(rank);
    options.groups = true;
    return options;
  };
}

}  // namespace antdt::trainer
