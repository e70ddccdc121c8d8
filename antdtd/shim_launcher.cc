#include "antdtd/shim_launcher.h"

#include <fcntl.h>

#include <boost/asio/io_context.hpp>
#include <boost/process/v2/environment.hpp>
#include <boost/process/v2/impl/environment.ipp>  // left out of its header in 1.81
#include <boost/process/v2/process.hpp>
#include <boost/process/v2/stdio.hpp>
#include <cerrno>

#include "core/pipe.h"

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
    // Descriptors, not nullptr: Boost 1.81 closes what it opens for a nullptr
    // while the binding is still in use.
    io.in = null.get();
    io.out = status.write.get();
    io.err = null.get();
    process::process shim(context, program, arguments, std::move(io),
                          process::process_environment(environment));
    // The object would end the process with itself. The shim is to outlive even
    // the agent, and is watched by its pid.
    const pid_t pid = shim.detach().id();
    return LaunchedShim{pid, status.read.release()};
  } catch (const std::exception& error) {
    return fail(ErrorKind::kIo, "starting {}: {}", program, error.what());
  }
}

}  // namespace antdt::antdtd
