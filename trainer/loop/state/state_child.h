// A child process that writes the training state as it was when the child was made.
//
// The parent goes on at once: a fork copies the table of its pages, and pages that it changes
// while the child lives are copied one by one. The parent has threads (the client's, OpenBLAS's),
// and any of them may hold a lock at that moment that nobody in the child will ever give back.
// So the child calls nothing that takes one: it has names and addresses that were made before,
// and uses system calls and XXH3 alone; no memory is allocated, no handler of pthread_atfork runs.
//
// What it says through the pipe are Reports of one size, which a pipe does not tear apart.
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

// What the child says, in its order: any number of kWritten, a kFile after each file, and at last
// kDone or kFailed. A pipe that ends without these is a child that was killed.
struct ChildReport {
  enum Kind : std::uint64_t { kWritten = 1, kFile, kDone, kFailed };
  std::uint64_t kind = 0;
  std::uint64_t file = 0;   // its index, for kFile and kFailed; past the last: the directory
  std::uint64_t value = 0;  // kWritten: bytes on the disk; kFile: XXH3; kFailed: errno
};

// A process and the end of the pipe that it reports through.
struct StateChild {
  pid_t pid = 0;
  OwnedFd reports;
};

// Makes it: it creates `directory` (and the one above, if that is all that is missing), writes
// `files` into it, each synced, and ends; with its parent's thread at the latest. What it could
// not finish it removes again. kIo: there is no child.
[[nodiscard]] Result<StateChild> write_in_child(const std::string& directory,
                                                const std::vector<StateFile>& files);

}  // namespace antdt::trainer
