#include "trainer/c_api/settings.h"

#include <pthread.h>
#include <sys/prctl.h>

#include <csignal>
#include <cstddef>
#include <cstdlib>

#include "core/crypto/secret.h"
#include "core/role_protocol.h"
#include "core/schema/job_reader.h"
#include "trainer/c_api/alone/local_link.h"
#include "trainer/c_api/data_progress.h"
#include "trainer/c_api/handle.h"

namespace antdt::capi {
namespace {

template <class T>
void take(T& setting, T said) {
  if (said != T{}) setting = said;
}

// What the program says of its data, as far as it can be compared. With format "index" what it says
// identifies them takes the place of what builds the index: the members compare it.
Result<wire::DataIdentity> data_of(const Settings& settings, const std::string& format) {
  wire::DataIdentity data;
  data.train_records = settings.records;
  data.eval_records = settings.eval_records;
  data.detail = fmt::format("{} records to train on and {} to evaluate on, as the program says",
                            settings.records, settings.eval_records);
  if (settings.fingerprint.empty()) return data;
  if (format != "index") {
    return fail(
        ErrorKind::kUsage,
        "antdt_open: options.fingerprint is for a job whose program reads its own data ([data] "
        "format = \"index\"), and this one has format = \"{}\", whose files AntDT compares "
        "itself: leave it NULL",
        format);
  }
  data.built_by = settings.fingerprint;
  data.detail += fmt::format(", fingerprint {}", settings.fingerprint);
  return data;
}

Result<Connection> connect_to_agent(const Settings& settings, bool member) {
  ANTDT_TRY(const auto environment, client::Environment::from_process());
  if (!speaks(environment.protocol, Protocol::kAntdt)) {
    return fail(ErrorKind::kUsage,
                "this worker was started with roles.worker.protocol = \"{}\", and uses libantdt: "
                "write protocol = \"antdt\" in job.toml",
                environment.protocol);
  }
  ProgramProgress::of_this_process().ends();  // its link would be taken for the worker's
  Connection made{.in_job = true};
  ANTDT_TRY(made.client, client::Client::connect(environment, settings.timeout));
  const std::string& json = made.client->config_json();
  ANTDT_TRY(made.config, trainer::parse_trainer_config(json));
  if (member && on_servers(made.config.sync)) {
    return fail(ErrorKind::kUsage,
                "trainer.sync is \"{}\", and a program that owns its loop is a member of an "
                "all-reduce: write sync = \"allreduce\" in job.toml, without [roles.server]",
                made.config.sync);
  }
  std::string format;
  schema::JobReader job(json);
  job.read("data.format", format);
  ANTDT_RETURN_IF_ERROR(job.status());
  ANTDT_TRY(made.data, data_of(settings, format));
  // Without its parent nobody would see this process's end.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  return made;
}

Result<Connection> world_of_one(const Settings& settings) {
  if (settings.records == 0) {
    return fail(ErrorKind::kUsage,
                "antdt_open: ANTDT_SOCKET is not set, so this is a world of one and no job, and "
                "options.records is 0: say how many records there are to train on, or start the "
                "program as the command of a role with 'antdt run job.toml'");
  }
  ANTDT_TRY(const auto secret, crypto::Secret::random());
  ANTDT_TRY(auto link,
            LocalLink::open({settings.records, settings.eval_records, settings.epochs,
                             settings.micro_batch, settings.accumulation, settings.seed,
                             (settings.flags & ANTDT_NO_SHUFFLE) == 0, secret.for_wire()}));
  Connection made{.in_job = false};
  const client::Environment self{"", "world-of-one", {{'w', 0}, Attempt{1}}, "antdt"};
  ANTDT_TRY(made.client, client::Client::connect(self, std::move(link), settings.timeout));
  made.config.hang_after = std::chrono::hours(24);
  ANTDT_TRY(made.data, data_of(settings, "index"));
  return made;
}

}  // namespace

Result<Settings> Settings::of(const antdt_options* given) {
  Settings settings;
  if (given == nullptr) return settings;
  // The first two fields are the same in every version.
  constexpr std::size_t kBegins = offsetof(antdt_options, abi_version) + sizeof(given->abi_version);
  const auto options = copy_in("antdt_open", "options", given);
  if (!options || options->abi_version != ANTDT_ABI_VERSION) {
    return fail(
        ErrorKind::kUsage,
        "antdt_open: the program was built for version {} of the interface with options of {} "
        "bytes, and this library has version {} with {}: begin options with "
        "ANTDT_OPTIONS_INIT, and build with the antdt.h of the library that is installed",
        kBegins <= given->struct_size ? given->abi_version : 0, given->struct_size,
        ANTDT_ABI_VERSION, sizeof(antdt_options));
  }
  constexpr std::uint32_t kKnown = ANTDT_STATE_ON_REQUEST | ANTDT_ONLY_IN_A_JOB | ANTDT_NO_SHUFFLE;
  if ((options->flags & ~kKnown) != 0) {
    return fail(ErrorKind::kUsage, "antdt_open: options.flags is {:#x}, and only {:#x} are known",
                options->flags, kKnown);
  }
  settings.flags = options->flags;
  if (options->timeout_ms > 0) settings.timeout = std::chrono::milliseconds(options->timeout_ms);
  settings.records = options->records;
  settings.eval_records = options->eval_records;
  if (options->fingerprint != nullptr) settings.fingerprint = options->fingerprint;
  if (options->device != nullptr) settings.device.name = options->device;
  settings.device.max_micro_batch = options->max_micro_batch;
  take(settings.epochs, options->epochs);
  take(settings.micro_batch, options->micro_batch);
  take(settings.accumulation, options->accumulation);
  settings.seed = options->seed;
  settings.read_ahead = options->read_ahead;
  return settings;
}

Result<Connection> connect(const Settings& settings, bool member) {
  if (std::getenv("ANTDT_SOCKET") != nullptr) return connect_to_agent(settings, member);
  if ((settings.flags & ANTDT_ONLY_IN_A_JOB) == 0) return world_of_one(settings);
  return fail(ErrorKind::kUsage,
              "antdt_open: ANTDT_SOCKET is not set, so there is no job: start the program as the "
              "command of a role with 'antdt run job.toml'");
}

struct SignalsBlocked::Before {
  sigset_t mask{};
};

SignalsBlocked::SignalsBlocked() : before_(std::make_unique<Before>()) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before_->mask);
}
SignalsBlocked::~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_->mask, nullptr); }

}  // namespace antdt::capi
