#include "antdtd/shim/shim_spawn.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "core/os/pipe.h"
#include "core/os/spawn.h"

namespace antdt::antdtd {
namespace {

// A name without a slash may be a program that is installed beside this one, as antdt-trainer is;
// otherwise it is looked up in PATH.
std::string installed_here(const std::string& name) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error || name.find('/') != std::string::npos) return name;
  const std::string path = self.parent_path() / name;
  return access(path.c_str(), X_OK) == 0 ? path : name;
}

// A process of another user than the agent's cannot open that file, so it was given a descriptor.
OwnedFd open_procs(const std::string& cgroup, int given) {
  if (given >= 0 || cgroup.empty()) return OwnedFd(given);
  return OwnedFd(open((cgroup + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
}

// What the error of a worker that did not start lacks: why its directory is not there.
Error with_advice(Error error, const std::string& directory) {
  if (!directory.empty() && access(directory.c_str(), X_OK) != 0) {
    error.message +=
        "; with [cluster], the directory of job.toml must exist under this path on every host";
  }
  return error;
}

}  // namespace

Result<SpawnedWorker> spawn_worker(const std::vector<std::string>& command,
                                   const std::string& working_directory, const std::string& cgroup,
                                   int cgroup_procs_fd) {
  const OwnedFd procs = open_procs(cgroup, cgroup_procs_fd);
  const int no_cgroup = !cgroup.empty() && !procs.is_open() ? errno : 0;
  Pipe out;
  Pipe err;
  if (!out.open() || !err.open()) {
    return fail_errno(ErrorKind::kIo, errno, "making pipes for " + command.front());
  }
  Spawn what;
  what.program = installed_here(command.front());
  what.arguments.assign(command.begin() + 1, command.end());
  what.standard_output = out.write.get();
  what.standard_error = err.write.get();
  what.directory = working_directory;
  what.group = ChildGroup::kSession;
  what.dies_with_us = true;
  what.cgroup_procs = procs.get();
  const Result<Spawned> worker = spawn(what);
  if (!worker) return tl::unexpected(with_advice(worker.error(), what.directory));
  for (const int fd : {out.read.get(), err.read.get()}) fcntl(fd, F_SETFL, O_NONBLOCK);
  return SpawnedWorker{worker->pid, out.read.release(), err.read.release(),
                       no_cgroup != 0 ? no_cgroup : worker->cgroup_error};
}

}  // namespace antdt::antdtd
