// A collective whose operations on memory of accelerators are NCCL's. All else, which is in host
// memory and small, goes through another collective.
//
// docs/operations/nccl.md says what is promised.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "core/accelerator/find_library.h"
#include "core/result.h"
#include "trainer/collective/collective.h"
#include "trainer/nccl/communicator.h"
#include "trainer/nccl/load/cuda_runtime.h"
#include "trainer/nccl/load/library.h"

namespace antdt::nccl {

// The CUDA runtime of this process, the device it uses, and NCCL.
struct Backend {
  std::shared_ptr<CudaRuntime> cuda;
  int device = 0;
  std::string identity;     // of the device, among those of the host
  Result<Library> library;  // or why NCCL cannot be used: kUsage
  // A communicator could not be ended: this process can form no other.
  std::atomic<bool> is_stuck = false;
};

struct BackendOptions {
  std::string nccl_library = {};    // a file; "": searched for (find_library.h)
  std::string cudart_library = {};  // likewise
  int device = 0;
  accelerator::Environment environment = accelerator::own_environment();
};

// kUsage if there is no CUDA runtime or no such device; kIo if the device cannot be used. That NCCL
// is missing, not known to work, or told by the environment to do what AntDT cannot work with, is
// no error here. Messages say how to mend it.
[[nodiscard]] Result<std::shared_ptr<Backend>> load_backend(const BackendOptions& options);

// kUsage if NCCL_COMM_ID is set. NCCL adds what its configuration files on the host say to the
// environment when it makes the first id, so that is a second time to ask.
[[nodiscard]] Status check_meeting_place(const accelerator::Environment& environment);

// Where a member runs, as the others are told it.
struct Place {
  std::string host;     // its name
  std::string machine;  // equal for the processes of one host, and nowhere else
};
[[nodiscard]] Place own_place();

struct NcclOptions {
  // What load_backend returned. A member without CUDA or NCCL says so to the others.
  Result<std::shared_ptr<Backend>> backend;
  // Whether the group fails if it cannot use NCCL. Otherwise it does the same operations through
  // host memory and the inner collective, which is slower; a member without CUDA then has no
  // device(). Equal on all members.
  bool required = false;
  bool encrypt = false;  // cluster.encrypt
  communicator::Patience patience = {};
  Place place = own_place();
  // Told why the group does without NCCL.
  std::function<void(const std::string& why)> on_fallback = {};
};

// Begins to listen, by `inner`. connect() connects the inner collective, gathers over it what each
// member has, and forms the communicator. If NCCL is required and they cannot use it, the error
// names hosts, and is kUsage for a member that keeps the others from it (agreement.h), and kIo for
// the others: a member that does not hold the training state is no reason for kUsage on one that
// does. kInternal if an earlier communicator of this process is stuck.
[[nodiscard]] Result<std::unique_ptr<trainer::CollectiveBuilder>> prepare_nccl(
    const trainer::Seat& seat, const trainer::CollectiveFactory& inner, NcclOptions options);

}  // namespace antdt::nccl
