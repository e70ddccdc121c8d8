// Starting antdt-shim. The only file that knows Boost.Process.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/os/owned_fd.h"
#include "core/os/user.h"
#include "core/result.h"

namespace antdt::antdtd {

struct LaunchedShim {
  pid_t pid = 0;  // a child, to be reaped by the caller
  // the shim writes "started <worker's pid>\n" to it or ends; owned by the caller
  int status_fd = -1;
};

struct LaunchedFileService {
  pid_t pid = 0;  // a child, to be reaped by the caller
  OwnedFd socket;
};
// Starts `program` (antdt-shim) as this user, as the file service of a run
// (antdtd/files/file_service.h). It ends when the socket is closed.
[[nodiscard]] Result<LaunchedFileService> launch_file_service(
    const UserIdentity& user, const std::string& program, const std::string& run_dir,
    const std::vector<std::string>& environment);

// Starts `program` (antdt-shim) as this user, as a process that ends the user's processes with
// these marks (antdtd/shim/process_tree.h) and then itself. The pid is that of a child, to be
// reaped by the caller.
[[nodiscard]] Result<pid_t> launch_kill_marked(const UserIdentity& user, const std::string& program,
                                               const std::vector<std::string>& marks);

// Starts `program` with `arguments` (without argv[0]) and exactly `environment`
// ("NAME=value").
[[nodiscard]] Result<LaunchedShim> launch_shim(const std::string& program,
                                               const std::vector<std::string>& arguments,
                                               const std::vector<std::string>& environment);

}  // namespace antdt::antdtd
