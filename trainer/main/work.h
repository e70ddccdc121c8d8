// Makes a worker from its job's configuration.
#pragma once

#include <atomic>

#include "core/clock.h"
#include "core/result.h"
#include "trainer/client/client.h"
#include "trainer/loop/accounts/time_account.h"
#include "trainer/main/run.h"

namespace antdt::trainer {

// Builds the data, the model and the member of a collective or of parameter servers, the cheapest
// first, runs it, and returns its exit code. An error has not been reported to the job. A member of
// a collective that gave up has left its engine undestroyed: the process is to end.
[[nodiscard]] Result<int> work(client::Client& client, TimeAccount& account, const Clock& clock,
                               const std::atomic<bool>& stop, const WorkerProgram& program);

}  // namespace antdt::trainer
