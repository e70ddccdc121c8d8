// The main() of a worker. Its agent tells it everything: the environment names the agent's socket,
// and the agent passes on the job's configuration.
#include "trainer/main/run.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <nlohmann/json.hpp>

#include "core/os/fs.h"
#include "core/os/process.h"
#include "trainer/client/client.h"
#include "trainer/data/index/lost_files.h"
#include "trainer/main/work.h"

namespace antdt::trainer {
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

// Like a worker that another's failure has ended: it cannot take part in the training as it goes
// on.
constexpr int kCannotGoOn = 76;
// Another process on the same host would hardly read it either, and no record is to blame.
constexpr int kDataLost = 74;
// The plans would lead its next attempt to as large a batch, and no record is to blame.
constexpr int kNeverAgain = 93;

int exit_code_of(const Error& error) {
  switch (error.kind) {
    case ErrorKind::kUsage:
    case ErrorKind::kCorrupt:
      return 2;
    case ErrorKind::kAborted:
      return kCannotGoOn;
    case ErrorKind::kTooLarge:
      return kNeverAgain;
    default:
      return 1;
  }
}

Result<int> run(const Clock& clock, const WorkerProgram& program) {
  TimeAccount account(clock, process_start(clock.now()));
  ANTDT_TRY(const auto environment, client::Environment::from_process());
  ANTDT_TRY(const auto client, client::Client::connect(environment));
  auto code = work(*client, account, clock, g_stop, program);
  // If there was no member, its end has not been reported yet.
  if (!code) client->bye({0, account.seconds(), code.error().message});
  return code;
}

Result<int> check(const std::string& job, const WorkerProgram& program) {
  ANTDT_TRY(const std::string config, read_file(job));
  ANTDT_TRY(const auto parts, program.parts(config));
  ANTDT_RETURN_IF_ERROR(check_job(*parts));
  return 0;
}

Result<int> be_worker(const std::string& called, const WorkerProgram& program) {
  set_up_signals();
  data::end_when_a_file_is_lost(called, kDataLost);
  keep_freed_memory();
  const SteadyClock clock;
  return run(clock, program);
}

std::string described(const Names& names) {
  const nlohmann::ordered_json json{{"schema", 1},
                                    {"models", names.models},
                                    {"readers", names.readers},
                                    {"optimizers", names.optimizers},
                                    {"metrics", names.metrics},
                                    {"schedules", names.schedules}};
  return json.dump(2);
}

// Everything is sent and written, so the process ends without LibTorch's own end, which takes a
// tenth of a second.
[[noreturn]] void leave(const std::string& called, const Result<int>& code) {
  if (!code) fmt::print(stderr, "{}: {}\n", called, code.error().message);
  std::fflush(nullptr);
  _exit(code ? *code : exit_code_of(code.error()));
}

}  // namespace

int run_program(int argc, char** argv, const WorkerProgram& program) {
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
    fmt::print("{}\n", described(program.names));
    return 0;
  }
  std::string called = argv[0];
  called.erase(0, called.rfind('/') + 1);
  leave(called, job.empty() ? be_worker(called, program) : check(job, program));
}

}  // namespace antdt::trainer
