// antdt-trainer: a worker that trains one of the built-in models.
//
// Everything it needs to know comes from its agent: the environment names the
// agent's socket, the agent hands over the job's configuration.
#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>

#include "cmd/antdt-trainer/work.h"
#include "core/os/process.h"
#include "trainer/client/client.h"

namespace {

using namespace antdt;

std::atomic<bool> g_stop = false;  // a signal handler can reach nothing else

extern "C" void on_terminate(int /*signal*/) { g_stop = true; }

void set_up_signals() {
  ignore_sigpipe();
  struct sigaction action {};
  action.sa_handler = on_terminate;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  // Without its parent nobody would see this process's end.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
}

int exit_code_of(const Error& error) {
  switch (error.kind) {
    case ErrorKind::kUsage:
    case ErrorKind::kCorrupt:
      return 2;
    case ErrorKind::kAborted:
      return 76;  // a victim: it cannot take part in the training as it goes on
    default:
      return 1;
  }
}

Result<int> run(const Clock& clock) {
  trainer::TimeAccount account(clock, trainer::process_start(clock.now()));
  ANTDT_TRY(const auto environment, client::Environment::from_process());
  ANTDT_TRY(const auto client, client::Client::connect(environment));
  auto code = work(*client, account, clock, g_stop);
  // Where the member never lived, its end has not been told yet.
  if (!code) client->bye({0, account.seconds(), code.error().message});
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "A worker of AntDT's that trains one of the built-in models. It is started by antdt run.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  set_up_signals();
  keep_freed_memory();
  const SteadyClock clock;
  const auto code = run(clock);
  if (!code) fmt::print(stderr, "antdt-trainer: {}\n", code.error().message);
  std::fflush(nullptr);
  // Everything is said and written; LibTorch's own end takes a tenth of a second.
  _exit(code ? *code : exit_code_of(code.error()));
}
