#include "ctl/job/newest_image.h"

#include "core/wire/packet.h"

namespace antdt::ctl {

Result<std::optional<JobImage>> newest_image(const shard_server::JournalContent& journal) {
  const shard_server::JournalEntry* newest = nullptr;  // the last one counts
  for (const auto* entries : {&journal.snapshot, &journal.records}) {
    for (const shard_server::JournalEntry& entry : *entries) {
      if (entry.kind == kImageRecord) newest = &entry;
    }
  }
  if (newest == nullptr || newest->bytes.empty()) return std::nullopt;
  ANTDT_TRY(JobImage image, wire::decode<JobImage>(newest->bytes));
  return std::optional(std::move(image));
}

std::set<std::string> evicted_hosts(const JobImage& image) {
  std::set<std::string> evicted;
  for (const HostState& host : image.lifecycle.hosts) {
    if (host.closed) evicted.insert(host.host);
  }
  return evicted;
}

}  // namespace antdt::ctl
