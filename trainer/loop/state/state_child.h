// A child process that writes the training state as it was at the fork.
//
// The parent goes on at once: a fork copies the page table, and pages that the parent changes while
// the child lives are copied one by one. The parent has other threads (the client's, OpenBLAS's),
// and any of them may hold a lock at that moment that is never released in the child. So the child
// takes no locks: it uses names and addresses that were prepared before, system calls and XXH3; it
// allocates no memory, and no handler of pthread_atfork runs.
//
// It writes Reports of a fixed size to a pipe, which does not split them.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/os/owned_fd.h"
#include "core/result.h"
#include "trainer/loop/engine.h"

namespace antdt::trainer {

// The reports of the child, in order: any number of kWritten, a kFile after each file, and at the
// end kDone or kFailed. If the pipe ends without these, the child was killed.
struct ChildReport {
  enum Kind : std::uint64_t { kWritten = 1, kFile, kDone, kFailed };
  std::uint64_t kind = 0;
  std::uint64_t file = 0;   // index for kFile and kFailed; past the last file: the directory
  std::uint64_t value = 0;  // kWritten: bytes on the disk; kFile: XXH3; kFailed: errno
};

// A process, and the end of the pipe through which it reports.
struct StateChild {
  pid_t pid = 0;
  OwnedFd reports;
};

// Starts the child. It makes `directory` (and its parent, if only that is missing), writes `files`
// into it, syncs each, and ends; it also ends with the thread that started it. If it cannot finish,
// it removes what it wrote. kIo: there is no child.
[[nodiscard]] Result<StateChild> write_in_child(const std::string& directory,
                                                const std::vector<StateFile>& files);

}  // namespace antdt::trainer
