// Which processes an agent hears, and which it passes messages to. Pure.
#pragma once

#include <optional>

#include "antdtd/processes/supervision.h"
#include "core/wire/worker_messages.h"

namespace antdt::antdtd {

// What a process is told whose messages this agent does not take; none: it takes them.
[[nodiscard]] std::optional<wire::Refused> refusal_of(const ProcessKey& key,
                                                      const Supervision& supervision);
// Whether a message of the job daemon is passed on to it. Of a process that has ended the job
// daemon hears, or has heard, that it ended.
[[nodiscard]] bool hears_job_daemon(const ProcessKey& key, const Supervision& supervision);

}  // namespace antdt::antdtd
