// What a worker program is made of, by its job's configuration.
#pragma once

#include <atomic>

#include "core/clock.h"
#include "core/result.h"
#include "trainer/client/client.h"
#include "trainer/loop/time_account.h"

namespace antdt {

// Builds the data, the model and the member of a collective or of parameter
// servers, in the order of cost, and lives its life: answers its exit code. A
// failure before the member lived has not been told to the job.
[[nodiscard]] Result<int> work(client::Client& client, trainer::TimeAccount& account,
                               const Clock& clock, const std::atomic<bool>& stop);

}  // namespace antdt
