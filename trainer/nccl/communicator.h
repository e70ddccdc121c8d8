// One communicator of NCCL, with the thread that makes all its calls (communicator_machine.h says
// which, and when).
//
// The thread polls the communicator, also while nobody waits for it, and aborts it when that is
// wanted or an error was found: it is the watchdog as well. Callers wait for its answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "core/clock.h"
#include "core/result.h"
#include "trainer/nccl/abi.h"
#include "trainer/nccl/communicator_machine.h"
#include "trainer/nccl/load/cuda_runtime.h"
#include "trainer/nccl/load/library.h"

namespace antdt::nccl {

// What is enqueued in a stream.
struct Operation {
  enum class Kind : std::uint8_t { kSum, kSend, kReceive };
  Kind kind{};
  void* data = nullptr;  // on the device
  std::size_t count = 0;
  DataType type{};
  int peer = 0;  // of kSend and kReceive
  Stream stream = nullptr;
};

class Communicator {
 public:
  struct Parts {
    Library library;
    std::shared_ptr<CudaRuntime> cuda;
    int device = 0;
  };
  explicit Communicator(Parts parts, communicator::Patience patience = {});
  // Closes it in order if it works, and aborts it otherwise; waits no longer than the patience.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Each blocks until it is done, failed, or was aborted, and no longer than the patience says. One
  // thread at a time. After an error every further call fails at once with that error. Errors:
  // kAborted after abort(); kIo if a new group may mend it; kInternal if this process cannot use
  // the device any more (faults.h).
  //
  // form: all members with the same id at the same moment.
  [[nodiscard]] Status form(const UniqueId& id, std::uint32_t rank, std::uint32_t size);
  // Returns when the operation is in its stream; until then nothing else may be put there.
  [[nodiscard]] Status enqueue(const Operation& operation);
  // Returns when the streams that were used have done all they had. After an abort no work of the
  // communicator runs any more once one of these calls has returned kAborted.
  [[nodiscard]] Status finish();

  // Closes it, as the destructor does; afterwards only abort() and is_stuck() may be called.
  [[nodiscard]] Status close();

  // Returns at once. From any thread, any number of times.
  void abort();

  // The library or the device did not end what it was told to end: its thread is given up, and this
  // process should end.
  [[nodiscard]] bool is_stuck() const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace antdt::nccl
