#include "antdtd/processes/shim_launcher.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/process/v2/environment.hpp>
#include <boost/process/v2/impl/environment.ipp>  // Boost 1.81 does not include it in its header
#include <boost/process/v2/process.hpp>
#include <boost/process/v2/stdio.hpp>
#include <cerrno>

#include "core/os/pipe.h"
#include "core/os/spawn.h"

namespace antdt::antdtd {
namespace {

namespace process = boost::process::v2;

}  // namespace

Result<LaunchedShim> launch_shim(const std::string& program,
                                 const std::vector<std::string>& arguments,
                                 const std::vector<std::string>& environment) {
  Pipe status;
  const OwnedFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null.is_open() || !status.open()) {
    return fail_errno(ErrorKind::kIo, errno, "opening what is needed to start " + program);
  }
  fcntl(status.read.get(), F_SETFL, O_NONBLOCK);
  try {
    boost::asio::io_context context;
    process::process_stdio io;
    // These are descriptors and not nullptr, because Boost 1.81 closes what it opens for a nullptr
    // while the binding is still in use.
    io.in = null.get();
    io.out = status.write.get();
    io.err = null.get();
    process::process shim(context, program, arguments, std::move(io),
                          process::process_environment(environment));
    // The Boost object would end the process in its destructor. The shim must outlive even the
    // agent; it is watched by its pid.
    const pid_t pid = shim.detach().id();
    return LaunchedShim{pid, status.read.release()};
  } catch (const std::exception& error) {
    return fail(ErrorKind::kIo, "starting {}: {}", program, error.what());
  }
}

Result<LaunchedFileService> launch_file_service(const UserIdentity& user,
                                                const std::string& program,
                                                const std::string& run_dir,
                                                const std::vector<std::string>& environment) {
  std::array<int, 2> ends{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return fail_errno(ErrorKind::kIo, errno, "opening what is needed to start " + program);
  }
  OwnedFd ours(ends[0]);
  const OwnedFd theirs(ends[1]);
  constexpr int kBuffer = 4 * 1024 * 1024;  // or as much as the kernel allows
  ::setsockopt(ours.get(), SOL_SOCKET, SO_SNDBUF, &kBuffer, sizeof(kBuffer));
  ::setsockopt(theirs.get(), SOL_SOCKET, SO_SNDBUF, &kBuffer, sizeof(kBuffer));
  Spawn what;
  what.user = user;
  what.program = program;
  what.arguments = {"--serve-files", run_dir};
  what.environment = environment;
  what.standard_input = theirs.get();
  ANTDT_TRY(const Spawned service, spawn(what));
  return LaunchedFileService{service.pid, std::move(ours)};
}

Result<pid_t> launch_kill_marked(const UserIdentity& user, const std::string& program,
                                 const std::vector<std::string>& marks) {
  Spawn what;
  what.user = user;
  what.program = program;
  what.environment.emplace();  // it needs none
  what.arguments = {"--kill-marked", "--"};
  what.arguments.insert(what.arguments.end(), marks.begin(), marks.end());
  ANTDT_TRY(const Spawned helper, spawn(what));
  return helper.pid;
}

}  // namespace antdt::antdtd
