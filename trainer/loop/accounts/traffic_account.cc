#include "trainer/loop/accounts/traffic_account.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/check.h"

namespace antdt::trainer {

void TrafficAccount::begin(std::shared_ptr<const LinkLedger> ledger, std::uint32_t rank,
                           const std::vector<Place>& members) {
  end();
  if (!ledger) return;
  ANTDT_CHECK(ledger->members() == members.size() && rank < members.size(),
              "rank {} of {} places, and {} members", rank, members.size(), ledger->members());
  ledger_ = std::move(ledger);
  for (const Place& member : members) lines_.push_back(line_of(members[rank], member));
}

std::size_t TrafficAccount::line_of(const Place& from, const Place& to) {
  std::vector<wire::HostTraffic>& lines = earlier_.hosts;
  const auto find = [&](const std::string& host) {
    return std::ranges::find_if(lines, [&](const wire::HostTraffic& line) {
      return line.to == host && line.to_domain == to.domain && line.from == from.host &&
             line.from_domain == from.domain;
    });
  };
  auto found = find(to.host);
  const bool is_full = lines.size() >= kMostHosts;
  if (found == lines.end() && is_full) found = find("");
  if (found == lines.end()) {
    found = lines.insert(lines.end(), wire::HostTraffic{.from = from.host,
                                                        .to = is_full ? "" : to.host,
                                                        .from_domain = from.domain,
                                                        .to_domain = to.domain});
  }
  return static_cast<std::size_t>(found - lines.begin());
}

void TrafficAccount::end() {
  earlier_ = all_lines();
  ledger_.reset();
  lines_.clear();
}

wire::TrafficSums TrafficAccount::all_lines() const {
  wire::TrafficSums sums = earlier_;
  if (!ledger_) return sums;
  sums.gradients += ledger_->sent_bytes(Traffic::kGradients);
  sums.parameters += ledger_->sent_bytes(Traffic::kParameters);
  sums.slots += ledger_->sent_bytes(Traffic::kSlots);
  sums.healing += ledger_->sent_bytes(Traffic::kHealing);
  sums.other += ledger_->sent_bytes(Traffic::kOther);
  sums.in_memory += ledger_->sent_in_memory();
  for (std::uint32_t peer = 0; peer < ledger_->members(); ++peer) {
    const LinkLedger::Link link = ledger_->of(peer);
    wire::HostTraffic& line = sums.hosts[lines_[peer]];
    line.sent_bytes += link.sent_bytes;
    line.received_bytes += link.received_bytes;
    line.waited_us += static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(link.waited).count());
  }
  return sums;
}

wire::TrafficSums TrafficAccount::sums() const {
  wire::TrafficSums sums = all_lines();
  std::erase_if(sums.hosts, [](const wire::HostTraffic& line) {
    return line.sent_bytes == 0 && line.received_bytes == 0 && line.waited_us == 0;
  });
  return sums;
}

}  // namespace antdt::trainer
