#include "trainer/loop/collective_options.h"

#include <utility>

#include "trainer/collective/listen_address.h"

namespace antdt::trainer {
namespace {

Result<Backend> backend_of(const TrainerConfig& config) {
  if (config.collective == "tcp") return Backend::kTcp;
  if (config.collective == "shm") return Backend::kShm;
  // NCCL sums what is in devices' memory; all else is host memory's.
  if (config.collective == "auto" || config.collective == "nccl") {
    return config.slows_links ? Backend::kTcp : Backend::kAuto;
  }
  return fail(
      ErrorKind::kUsage,
      "trainer.collective = \"{}\" is not known to this worker: install the same release of "
      "AntDT on all hosts",
      config.collective);
}

}  // namespace

Result<CollectiveOptions> collective_options(const TrainerConfig& config,
                                             std::shared_ptr<const InjectedLink> link,
                                             std::string domain) {
  ANTDT_TRY(auto options, listen_options(config.hosts, config.interface, config.ports));
  options.encrypt = config.encrypt;
  options.groups = config.sync == SyncStrategy::kDsSync || config.sync == SyncStrategy::kGaia;
  ANTDT_TRY(options.backend, backend_of(config));
  options.send_delay = [link = std::move(link)](std::uint32_t rank, std::size_t bytes) {
    return link->delay(rank, bytes);
  };
  options.domain = std::move(domain);
  return options;
}

}  // namespace antdt::trainer
