#include "antdtd/shim_launcher.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/process/v2/environment.hpp>
#include <boost/process/v2/impl/environment.ipp>  // left out of its header in 1.81
#include <boost/process/v2/process.hpp>
#include <boost/process/v2/stdio.hpp>
#include <cerrno>
#include <utility>

namespace antdt::antdtd {
namespace {

namespace process = boost::process::v2;

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

}  // namespace

Result<LaunchedShim> launch_shim(const std::string& program,
                                 const std::vector<std::string>& arguments,
                                 const std::vector<std::string>& environment) {
  std::array<int, 2> ends{-1, -1};
  const int piped = pipe2(ends.data(), O_CLOEXEC);
  Fd status(ends[0]);
  const Fd tell(ends[1]);
  const Fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (piped != 0 || null.get() < 0) {
    return fail_errno(ErrorKind::kIo, errno, "opening what is needed to start " + program);
  }
  fcntl(status.get(), F_SETFL, O_NONBLOCK);
  try {
    boost::asio::io_context context;
    process::process_stdio io;
    // Descriptors, not nullptr: Boost 1.81 closes what it opens for a nullptr
    // while the binding is still in use.
    io.in = null.get();
    io.out = tell.get();
    io.err = null.get();
    process::process shim(context, program, arguments, std::move(io),
                          process::process_environment(environment));
    // The object would end the process with itself. The shim is to outlive even
    // the agent, and is watched by its pid.
    const pid_t pid = shim.detach().id();
    return LaunchedShim{pid, status.release()};
  } catch (const std::exception& error) {
    return fail(ErrorKind::kIo, "starting {}: {}", program, error.what());
  }
}

}  // namespace antdt::antdtd
