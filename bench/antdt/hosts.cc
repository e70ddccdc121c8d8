#include "bench/antdt/hosts.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "core/os/net.h"
#include "core/os/owned_fd.h"
#include "launcher/start/start.h"

namespace antdt::bench {
namespace {

constexpr Duration kStarts = std::chrono::seconds(10);
constexpr Duration kLook = std::chrono::milliseconds(20);

// An address on which nobody listens now.
Result<std::string> free_address() {
  const OwnedFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (bind(fd.get(), any, size) != 0 || getsockname(fd.get(), any, &size) != 0) {
    return fail_errno(ErrorKind::kIo, errno, "a port of 127.0.0.1");
  }
  return fmt::format("127.0.0.1:{}", ntohs(address.sin_port));
}

}  // namespace

Result<std::unique_ptr<BenchHosts>> BenchHosts::start(const std::vector<std::string>& names,
                                                      const std::string& logs) {
  std::unique_ptr<BenchHosts> hosts(new BenchHosts);
  ANTDT_TRY(auto keys, BenchProcess::start({"keygen", "--dir", hosts->keys()}, {},
                                           hosts->directory_ / "keygen.out"));
  ANTDT_TRY([[maybe_unused]] const std::string made, keys.printed());
  ANTDT_TRY(const auto programs, launcher::find_programs());
  for (const std::string& name : names) {
    ANTDT_RETURN_IF_ERROR(
        hosts->start_agent(programs.agent, name, fmt::format("{}/{}.log", logs, name)));
  }
  return hosts;
}

Status BenchHosts::start_agent(const std::string& program, const std::string& name,
                               const std::string& log) {
  ANTDT_TRY(const std::string address, free_address());
  std::vector<std::string> command{program,
                                   "--listen",
                                   address,
                                   "--keys",
                                   keys(),
                                   "--state-dir",
                                   directory_ / (name + "-state"),
                                   "--host-name",
                                   name,
                                   "--socket-dir",
                                   directory_ / name,
                                   "--address",
                                   "127.0.0.1"};
  if (geteuid() == 0) command.emplace_back("--allow-root");
  ANTDT_TRY(auto agent, BenchProcess::start_program(std::move(command), log));
  agents_.push_back(std::move(agent));
  addresses_.push_back(address);
  const SteadyClock clock;
  const MonoTime until = clock.now() + kStarts;
  while (!try_to_connect(address, kLook)) {
    if (agents_.back().ended() || clock.now() > until) {
      return fail(ErrorKind::kUnreachable,
                  "the agent of host {} does not start; the end of {}:\n{}", name, log,
                  launcher::last_lines(log, 5));
    }
    std::this_thread::sleep_for(kLook);
  }
  return {};
}

}  // namespace antdt::bench
