#include <unistd.h>

#include <array>
#include <cstdlib>

#include "core/os/fs.h"
#include "trainer/nccl/nccl_collective.h"

namespace antdt::nccl {
namespace {

// A number as NCCL reads it: "01" and "0x1" are 1. One that is not set is 0 for a worker, whose job
// daemon adds that to its environment.
Status check_environment(const accelerator::Environment& environment) {
  const std::string blocking = environment("NCCL_COMM_BLOCKING");
  if (std::strtoll(blocking.c_str(), nullptr, 0) != 0) {
    return fail(
        ErrorKind::kUsage,
        "NCCL_COMM_BLOCKING={} is set: a call of NCCL could then wait for a lost member for "
        "ever, and not be aborted. Remove it from the job's environment",
        blocking);
  }
  return check_meeting_place(environment);
}

Result<Library> load_nccl(const BackendOptions& options) {
  ANTDT_RETURN_IF_ERROR(check_environment(options.environment));
  return load_library(accelerator::nccl_candidates(options.nccl_library, options.environment),
                      options.environment);
}

}  // namespace

Status check_meeting_place(const accelerator::Environment& environment) {
  const std::string at = environment("NCCL_COMM_ID");
  if (at.empty()) return {};
  return fail(
      ErrorKind::kUsage,
      "NCCL_COMM_ID={} is set: all generations of a job would then meet at one address, and "
      "so would strangers. Remove it from the job's environment, and from the configuration "
      "files of NCCL on the host (/etc/nccl.conf, ~/.nccl.conf, NCCL_CONF_FILE)",
      at);
}

Result<std::shared_ptr<Backend>> load_backend(const BackendOptions& options) {
  auto backend = std::make_shared<Backend>();
  ANTDT_TRY(backend->cuda, load_cuda_runtime(accelerator::cudart_candidates(options.cudart_library,
                                                                            options.environment)));
  ANTDT_TRY(const int devices, backend->cuda->devices());
  if (options.device >= devices) {
    return fail(ErrorKind::kUsage,
                "there is no device {}: this process sees {} (CUDA_VISIBLE_DEVICES={}). A worker "
                "gets devices by roles.worker.resources.gpus in job.toml",
                options.device, devices, options.environment("CUDA_VISIBLE_DEVICES"));
  }
  backend->device = options.device;
  ANTDT_TRY(backend->identity, backend->cuda->identity(options.device));
  backend->library = load_nccl(options);
  return backend;
}

Place own_place() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) name[0] = '?';
  const auto boot = read_file("/proc/sys/kernel/random/boot_id");
  return {name.data(), std::string(name.data()) + "/" + boot.value_or("").substr(0, 36)};
}

}  // namespace antdt::nccl
