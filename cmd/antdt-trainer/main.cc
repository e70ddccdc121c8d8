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
#include <cstdlib>

#include "core/log.h"
#include "trainer/client/client.h"
#include "trainer/collective/listen_address.h"
#include "trainer/collective/ring.h"
#include "trainer/data/dataset.h"
#include "trainer/loop/member.h"
#include "trainer/loop/trainer_config.h"
#include "trainer/tally/tally_engine.h"
#include "trainer/torch/torch_engine.h"

namespace {

using namespace antdt;

std::atomic<bool> g_stop = false;  // a signal handler can reach nothing else

extern "C" void on_terminate(int /*signal*/) { g_stop = true; }

void set_up_signals() {
  std::signal(SIGPIPE, SIG_IGN);
  struct sigaction action {};
  action.sa_handler = on_terminate;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  // Without its parent nobody would see this process's end.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
}

// The data of one split; no reader where the split has no records.
struct Split {
  data::DataSummary summary;
  std::unique_ptr<data::RecordReader> reader;
};

Result<Split> open_split(const std::string& config, data::Split which) {
  Split split;
  ANTDT_TRY(split.summary, data::build_index(config, which));
  if (split.summary.records == 0) return split;
  ANTDT_TRY(split.reader, data::open_reader(config, which));
  return split;
}

// A record to die at, see trainer/tally/README.md.
std::optional<std::uint64_t> poison() {
  const char* record = std::getenv("TALLY_POISON");
  if (record == nullptr) return {};
  return std::strtoull(record, nullptr, 10);
}

Result<std::unique_ptr<trainer::Engine>> make_engine(const trainer::TrainerConfig& config,
                                                     const data::DataShape& shape) {
  if (config.model == "tally") return trainer::make_tally_engine(shape, poison());
  trainer::set_compute_threads(config.threads);
  return trainer::make_torch_engine(config, shape);
}

// Builds what the member needs, in the order of cost, and lives its life.
Result<int> work(client::Client& client, trainer::TimeAccount& account, const Clock& clock) {
  ANTDT_TRY(const trainer::TrainerConfig config,
            trainer::parse_trainer_config(client.config_json(), client.member().worker));
  ANTDT_TRY(const Split train, open_split(client.config_json(), data::Split::kTrain));
  ANTDT_TRY(const Split eval, open_split(client.config_json(), data::Split::kEval));
  if (!train.reader) return fail(ErrorKind::kUsage, "the training data has no records");
  ANTDT_TRY(const auto engine, make_engine(config, train.reader->shape()));
  ANTDT_TRY(const auto ring, trainer::listen_options(config.hosts, config.interface));

  data::Prefetcher prefetcher([&client](std::uint64_t max_records, Duration timeout) {
    return client.take(max_records, timeout);
  });
  const trainer::Injection injection(config.inject);
  trainer::GenerationGuard guard;
  trainer::Member member({clock, client, *engine, prefetcher, account, injection, guard, g_stop},
                         {train.reader.get(),
                          eval.reader.get(),
                          {train.summary.records, eval.summary.records,
                           train.summary.fingerprint + eval.summary.fingerprint,
                           train.summary.detail + eval.summary.detail},
                          [ring](std::uint32_t rank, std::uint32_t size) {
                            return trainer::prepare_ring(rank, size, ring);
                          }});
  return member.run();
}

int exit_code_of(const Error& error) {
  switch (error.kind) {
    case ErrorKind::kUsage:
    case ErrorKind::kCorrupt:
      return 2;
    case ErrorKind::kAborted:
      return 76;  // a victim: its collective broke and was not formed again
    default:
      return 1;
  }
}

Result<int> run(const Clock& clock) {
  trainer::TimeAccount account(clock, trainer::process_start(clock.now()));
  ANTDT_TRY(const auto environment, client::Environment::from_process());
  ANTDT_TRY(const auto client, client::Client::connect(environment));
  auto code = work(*client, account, clock);
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
  const SteadyClock clock;
  const auto code = run(clock);
  if (!code) fmt::print(stderr, "antdt-trainer: {}\n", code.error().message);
  std::fflush(nullptr);
  // Everything is said and written; LibTorch's own end takes a tenth of a second.
  _exit(code ? *code : exit_code_of(code.error()));
}
