// How a worker of this job connects to the other members of its group.
#pragma once

#include <memory>

#include "core/result.h"
#include "trainer/collective/options.h"
#include "trainer/injected/injected_link.h"
#include "trainer/loop/trainer_config.h"

namespace antdt::trainer {

// `link` holds messages back as fault injections say. Members of one machine can stand for those of
// several: a job with an [[inject]] that slows links, and not between domains alone, uses tcp under
// "auto", and members of different domains share no memory. `domain` is that of this member. kUsage
// if none of the cluster's hosts is this machine, or if trainer.collective is not known.
[[nodiscard]] Result<CollectiveOptions> collective_options(const TrainerConfig& config,
                                                           std::shared_ptr<const InjectedLink> link,
                                                           std::string domain);

}  // namespace antdt::trainer
