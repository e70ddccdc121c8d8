// What the journal of a job that does not run now says of it last.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "core/result.h"
#include "ctl/job/job_image.h"
#include "shard_server/journal/journal.h"

namespace antdt::ctl {

// Empty if the journal does not know the job; kCorrupt.
[[nodiscard]] Result<std::optional<JobImage>> newest_image(
    const shard_server::JournalContent& journal);

// The end points of the agents of hosts that an operator evicted. An eviction outlives the job
// daemon, and `antdt run --resume`.
[[nodiscard]] std::set<std::string> evicted_hosts(const JobImage& image);

}  // namespace antdt::ctl
