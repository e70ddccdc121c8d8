// How a worker of this job connects to the other members of its group.
#pragma once

#include <memory>

#include "core/result.h"
#include "trainer/collective/options.h"
#include "trainer/injected/injected_link.h"
#include "trainer/loop/trainer_config.h"

namespace antdt::trainer {

// `link` holds messages back as fault injections say. A job whose [[inject]] slows links keeps them
// under "auto": its members use tcp, so that those of one machine can stand for several. kUsage if
// none of the cluster's hosts is this machine, or if trainer.collective is not known.
[[nodiscard]] Result<CollectiveOptions> collective_options(
    const TrainerConfig& config, std::shared_ptr<const InjectedLink> link);

}  // namespace antdt::trainer
