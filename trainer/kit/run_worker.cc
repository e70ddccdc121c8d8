// The main() of a worker. Its agent tells it everything: the environment names the agent's socket,
// and the agent passes on the job's configuration.
#include <antdt/kit.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>

#include "core/os/fs.h"
#include "core/os/process.h"
#include "trainer/client/client.h"
#include "trainer/kit/maker.h"
#include "trainer/kit/work.h"

namespace antdt {
namespace {

std::atomic<bool> g_stop = false;  // a signal handler cannot reach anything else

extern "C" void on_terminate(int /*signal*/) { g_stop = true; }

void set_up_signals() {
  ignore_sigpipe();
  struct sigaction action {};
  action.sa_handler = on_terminate;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  // Without its parent, nobody would notice the end of this process.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
}

int exit_code_of(const Error& error) {
  switch (error.kind) {
    case ErrorKind::kUsage:
    case ErrorKind::kCorrupt:
      return 2;
    case ErrorKind::kAborted:
      return 76;  // like a worker that another's failure has ended: it cannot take part in the
                  // training as it goes on
    default:
      return 1;
  }
}

Result<int> run(const Clock& clock, const Registry& registry) {
  trainer::TimeAccount account(clock, trainer::process_start(clock.now()));
  ANTDT_TRY(const auto environment, client::Environment::from_process());
  ANTDT_TRY(const auto client, client::Client::connect(environment));
  auto code = work(*client, account, clock, g_stop, registry);
  // If there was no member, its end has not been reported yet.
  if (!code) client->bye({0, account.seconds(), code.error().message});
  return code;
}

Result<int> check(const std::string& job, const Registry& registry) {
  ANTDT_TRY(const std::string config, read_file(job));
  ANTDT_RETURN_IF_ERROR(trainer::check_job(registry, config));
  return 0;
}

Result<int> be_worker(const Registry& registry) {
  set_up_signals();
  keep_freed_memory();
  const SteadyClock clock;
  return run(clock, registry);
}

// Everything is sent and written, so the process ends without LibTorch's own end, which takes a
// tenth of a second.
[[noreturn]] void leave(const std::string& program, const Result<int>& code) {
  if (!code) fmt::print(stderr, "{}: {}\n", program, code.error().message);
  std::fflush(nullptr);
  _exit(code ? *code : exit_code_of(code.error()));
}

}  // namespace

int run_worker(int argc, char** argv, const Registry& registry) {
  CLI::App app("A worker of AntDT. It is started by antdt run.");
  std::string job;
  bool describe = false;
  app.add_option("--check", job,
                 "say whether it could work for the job of this effective configuration (JSON)");
  app.add_flag("--describe", describe, "print the names that job.toml may use, as JSON");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  if (describe) {
    fmt::print("{}\n", trainer::described(registry));
    return 0;
  }
  const std::string called = argv[0];
  leave(called.substr(called.rfind('/') + 1),
        job.empty() ? be_worker(registry) : check(job, registry));
}

}  // namespace antdt
