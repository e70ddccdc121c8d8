// antdt bench: measures how fast the parts are on this machine.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "bench/antdt/client.h"
#include "bench/antdt/ps.h"
#include "bench/antdt/shards.h"
#include "launcher/commands/bench/stragglers.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/usage.h"
#include "launcher/start/paths.h"

namespace antdt::cli {

namespace {

void add_shards(CLI::App& bench, int& exit_code) {
  struct Options {
    bench::ShardsOptions shards;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* command =
      bench.add_subcommand("shards", "The shard service of a job daemon, its journal on");
  command->add_option("--clients", options->shards.clients, "client processes")
      ->check(CLI::Range(1, 4096));
  command->add_option("--batch", options->shards.batch, "shards a request")
      ->check(CLI::Range(1, 1'000'000));
  command->add_option("--seconds", options->shards.seconds, "how long to measure")
      ->check(CLI::Range(0.01, 3600.0));
  command->add_option("--shards", options->shards.shards, "shards of the data set")
      ->check(at_least_one());
  command->add_flag("--through-agent", options->shards.through_agent,
                    "clients speak to an agent, which relays");
  command->add_flag("--echo", options->shards.echo,
                    "against a server that does nothing: the limit here");
  command
      ->add_option("--set", options->shards.set,
                   "KEY=VALUE: change the job, as with antdt run: cluster.store puts the journal "
                   "into etcd")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  command
      ->add_option("--dir", options->shards.directory,
                   "where the journal is; default the temporary directory")
      ->type_name("DIR");
  command->add_flag("--json", options->json, "print JSON");
  command->callback([options, &exit_code] {
    const auto result = bench::bench_shards(options->shards);
    if (!result) {
      exit_code = report(result.error());
    } else if (options->json) {
      fmt::print("{}\n", bench::to_json(options->shards, *result));
    } else {
      fmt::print("{}", bench::to_table(options->shards, *result));
    }
  });
}

// A client of the bench. The bench starts it; by itself it is of no use.
void add_shards_client(CLI::App& bench, int& exit_code) {
  const auto options = std::make_shared<bench::ClientOptions>();
  CLI::App* command = bench.add_subcommand("shards-client")->group("");
  command->add_option("--batch", options->batch);
  command->add_option("--shard-records", options->shard_records);
  command->add_option("--start-ns", options->start_ns);
  command->add_option("--seconds", options->seconds);
  command->callback([options, &exit_code] {
    const auto result = bench::run_client(*options);
    if (result) {
      fmt::print("{}", bench::to_line(*result));
    } else {
      exit_code = report(result.error());
    }
  });
}

void add_ps_options(CLI::App& command, bench::PsOptions& options) {
  command.add_option("--workers", options.workers, "worker processes")->check(CLI::Range(1, 1024));
  command.add_option("--servers", options.servers, "server processes")->check(CLI::Range(1, 64));
  command.add_option("--keys", options.keys, "keys drawn for a batch")
      ->check(CLI::Range(1, 1'000'000));
  command.add_option("--rows", options.rows, "rows of the table")->check(at_least_one());
  command.add_option("--dim", options.dim, "floats a row")->check(CLI::Range(1, 4096));
  command.add_option("--rule", options.rule, "what a gradient does to a row")
      ->check(CLI::IsMember({"sgd", "adagrad", "adam", "ftrl", "sum"}));
  command
      .add_option_function<std::string>(
          "--sync",
          [&options](const std::string& name) { options.sync = *by_name<SyncStrategy>(name); },
          "the consistency")
      ->check(CLI::IsMember({"ps-bsp", "ps-ssp", "ps-asp"}));
  command.add_flag("--pull-only", options.pull_only, "push nothing");
  command.add_flag("--pin", options.pin, "each server has one core");
  command.add_option("--seconds", options.seconds, "how long to measure")
      ->check(CLI::Range(0.01, 3600.0));
}

void add_ps(CLI::App& bench, int& exit_code) {
  struct Options {
    bench::PsOptions ps;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* command =
      bench.add_subcommand("ps", "Parameter servers: rows pulled and pushed in a second");
  add_ps_options(*command, options->ps);
  command->add_flag("--json", options->json, "print JSON");
  command->callback([options, &exit_code] {
    const auto result = bench::bench_ps(options->ps);
    if (!result) {
      exit_code = report(result.error());
    } else {
      fmt::print("{}{}",
                 options->json ? bench::to_json(options->ps, *result)
                               : bench::to_table(options->ps, *result),
                 options->json ? "\n" : "");
    }
  });
}

// The processes of the bench. The bench starts them; by themselves they are of no use.
void add_ps_processes(CLI::App& bench, int& exit_code) {
  for (const std::string role : {"ps-server", "ps-worker"}) {
    const auto options = std::make_shared<bench::PsOptions>();
    CLI::App* command = bench.add_subcommand(role)->group("");
    add_ps_options(*command, *options);
    command->add_option("--dir", options->directory);
    command->add_option("--index", options->index);
    command->add_option("--start-ns", options->start_ns);
    command->callback([options, role, &exit_code] {
      if (role == "ps-server") {
        const auto served = bench::run_ps_server(*options);
        if (!served) exit_code = report(served.error());
        return;
      }
      const auto said = bench::run_ps_worker(*options);
      if (said) {
        fmt::print("{}", *said);
      } else {
        exit_code = report(said.error());
      }
    });
  }
}

struct AllreduceOptions {
  std::string ranks = "4";
  std::string bytes = "4194304";
  std::string seconds = "2";
  bool json = false;
};

// The collective is only built with the trainer, as a program of its own. This process executes it.
int allreduce(const AllreduceOptions& options) {
  const auto program =
      launcher::find_program("antdt-bench-allreduce", launcher::program_directory(), ".");
  if (!program) {
    return report({ErrorKind::kUsage, program.error().message +
                                          "; it is built with the trainer (-DANTDT_TRAINER=ON)"});
  }
  std::vector<std::string> command = {*program,      "--ranks",   options.ranks,  "--bytes",
                                      options.bytes, "--seconds", options.seconds};
  if (options.json) command.emplace_back("--json");
  std::vector<char*> argv;
  for (std::string& part : command) argv.push_back(part.data());
  argv.push_back(nullptr);
  ::execv(argv[0], argv.data());
  return report(fail_errno(ErrorKind::kIo, errno, "cannot start " + *program).value());
}

void add_allreduce(CLI::App& bench, int& exit_code) {
  const auto options = std::make_shared<AllreduceOptions>();
  CLI::App* command =
      bench.add_subcommand("allreduce", "The ring all-reduce between processes of this machine");
  command->add_option("--ranks", options->ranks, "processes")->check(at_least_one());
  command->add_option("--bytes", options->bytes, "bytes that each call reduces")
      ->check(at_least_one());
  command->add_option("--seconds", options->seconds, "how long to measure")
      ->check(CLI::PositiveNumber);
  command->add_flag("--json", options->json, "print JSON");
  command->callback([options, &exit_code] { exit_code = allreduce(*options); });
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("bench", "Measure parts on this machine");
  command->require_subcommand(1);
  add_shards(*command, exit_code);
  add_shards_client(*command, exit_code);
  add_allreduce(*command, exit_code);
  add_ps(*command, exit_code);
  add_ps_processes(*command, exit_code);
  add_bench_stragglers(*command, exit_code);
}

}  // namespace antdt::cli
