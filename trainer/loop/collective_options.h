// How a worker of this job connects to the other members of its group.
#pragma once

#include <memory>

#include "core/result.h"
#include "trainer/collective/options.h"
#include "trainer/injected/injected_link.h"
#include "trainer/loop/trainer_config.h"

namespace antdt::trainer {

// `link` holds messages back as fault injections say. A job whose [[inject]] slows links within a
// domain uses tcp under "auto", so that members of one machine can stand for several; `domain`,
// that of this member, does so between domains. kUsage if none of the cluster's hosts is this
// machine, or if trainer.collective is not known.
[[nodiscard]] Result<CollectiveOptions> collective_options(const TrainerConfig& config,
                                                           std::shared_ptr<const InjectedLink> link,
                                                           std::string domain);

}  // namespace antdt::trainer
