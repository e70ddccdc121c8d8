// antdt-server: a parameter server of a job.
//
// All its settings come from its agent: the environment names the agent's socket, and the job
// daemon says over it what to serve.
#include <fmt/format.h>
#include <sys/prctl.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <memory_resource>

#include "core/clock.h"
#include "core/loop.h"
#include "core/os/forks/huge_pages.h"
#include "core/os/process.h"
#include "core/transport/socket.h"
#include "trainer/client/environment.h"
#include "trainer/ps_server/server_agent.h"

namespace {

using namespace antdt;

int exit_code_of(const Error& error) {
  switch (error.kind) {
    case ErrorKind::kUsage:
    case ErrorKind::kCorrupt:
      return 2;
    case ErrorKind::kAborted:
      return 76;
    default:
      return 1;
  }
}

Result<int> run(const Clock& clock) {
  ANTDT_TRY(const auto environment, client::Environment::from_process());
  EventLoop loop(clock);
  std::unique_ptr<ps::ServerAgent> agent;
  // This comes before the sockets, whose threads must leave signals to the loop.
  ANTDT_RETURN_IF_ERROR(loop.watch_signals({SIGTERM, SIGINT}, [&](int) {
    if (agent) agent->stop();
  }));
  transport::Context context;
  ANTDT_TRY(agent, ps::ServerAgent::start(loop, context, environment));
  loop.run();
  auto outcome = agent->outcome();
  agent.reset();  // destroyed before the context of its sockets
  if (!outcome) return fail(ErrorKind::kInternal, "the loop ended by itself");
  return std::move(*outcome);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "A parameter server of AntDT's. It is started by antdt run, with sync = \"ps-...\".");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  ignore_sigpipe();
  raise_open_files_limit();
  keep_freed_memory();
  // Without its parent, nobody would notice the end of this process.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::pmr::set_default_resource(&HugePages::of_process());  // for the rows
  const SteadyClock clock;
  const auto code = run(clock);
  if (!code) fmt::print(stderr, "antdt-server: {}\n", code.error().message);
  return code ? *code : exit_code_of(code.error());
}
