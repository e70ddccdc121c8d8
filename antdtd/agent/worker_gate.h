// Which processes an agent accepts messages from, and which it passes messages to. Pure.
#pragma once

#include <optional>

#include "antdtd/processes/supervision.h"
#include "core/wire/worker_messages.h"

namespace antdt::antdtd {

// The refusal for a process whose messages this agent does not accept; empty: it accepts them.
[[nodiscard]] std::optional<wire::Refused> refusal_of(const ProcessKey& key,
                                                      const Supervision& supervision);
// Whether a message of the job daemon is passed on to this process. It is not if the process has
// ended: the job daemon is told of the end, or knows it.
[[nodiscard]] bool hears_job_daemon(const ProcessKey& key, const Supervision& supervision);

}  // namespace antdt::antdtd
