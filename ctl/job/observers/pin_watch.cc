#include "ctl/job/observers/pin_watch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace antdt::ctl {
namespace {

constexpr Duration kSayAfter = std::chrono::seconds(5);

}  // namespace

std::vector<PinnedDomain> pinned_domains(const shard_server::Ledger& ledger) {
  std::vector<PinnedDomain> domains;
  if (ledger.phase().number == 0) return domains;
  for (const shard_server::SectionSupply& section : ledger.sections()) {
    const std::string_view name = ledger.domain_name(section.domain());
    if (name.empty()) continue;
    domains.push_back({std::string(name), section.positions().size(),
                       ledger.left_in(section.domain()), ledger.members_in(section.domain())});
  }
  return domains;
}

bool all_wait(const std::vector<PinnedDomain>& domains) {
  return std::ranges::any_of(domains, &PinnedDomain::waits) &&
         std::ranges::all_of(domains, [](const auto& d) { return d.waits() || d.done(); });
}

std::string waiting_text(const std::vector<PinnedDomain>& domains, Epoch epoch,
                         std::string_view run) {
  std::string text;
  for (const PinnedDomain& domain : domains) {
    if (!domain.waits()) continue;
    text += fmt::format(
        "{}epoch {} waits for domain {}: {} of its {} records are left, they may be "
        "trained only there, and no worker is there",
        text.empty() ? "" : "; ", epoch.value + 1, domain.name, domain.left, domain.records);
  }
  if (text.empty()) return text;
  return text + fmt::format(
                    ". Start a host of the domain again, or a worker there (antdt resize "
                    "{0} N); antdt stop {0} ends the job with a checkpoint, from which it "
                    "can be resumed",
                    run);
}

std::string done_text(const std::vector<PinnedDomain>& domains, Epoch epoch) {
  std::vector<std::string_view> done;
  for (const PinnedDomain& domain : domains) {
    if (domain.done() && domain.members > 0) done.emplace_back(domain.name);
  }
  const bool others = std::ranges::any_of(domains, [](const auto& d) { return !d.done(); });
  if (done.empty() || !others) return "";
  return fmt::format(
      "the workers of domain {} wait for the others: its records of epoch {} are "
      "done",
      fmt::join(done, " and of "), epoch.value + 1);
}

std::optional<std::string> PinWatch::look(const std::vector<PinnedDomain>& domains, Epoch epoch,
                                          std::string_view run, MonoTime now) {
  std::vector<Since> still;
  std::vector<PinnedDomain> to_say;
  for (const PinnedDomain& domain : domains) {
    if (!domain.waits()) continue;
    const auto known = std::ranges::find(waits_, domain.name, &Since::domain);
    Since since = known == waits_.end() ? Since{domain.name, now, false} : *known;
    if (!since.said && now - since.begun >= kSayAfter) {
      since.said = true;
      to_say.push_back(domain);
    }
    still.push_back(std::move(since));
  }
  waits_ = std::move(still);
  if (to_say.empty()) return {};
  return waiting_text(to_say, epoch, run);
}

bool PinWatch::changes(bool all_wait) { return std::exchange(all_wait_, all_wait) != all_wait; }

}  // namespace antdt::ctl
