// antdt doctor: says what will fail before it fails.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "launcher/commands/commands.h"
#include "launcher/commands/doctor/examine.h"
#include "launcher/commands/doctor/quick.h"
#include "launcher/commands/usage.h"
#include "launcher/config/agent_address.h"
#include "launcher/doctor/findings_view.h"
#include "launcher/doctor/judge.h"
#include "launcher/start/paths.h"

namespace antdt::cli {
namespace {

// Four answers, one after the other, are waited for at most.
constexpr Duration kQuickAnswers = std::chrono::milliseconds(200);

struct DoctorOptions {
  std::string job;
  std::vector<std::string> hosts;
  std::string keys;
  std::string run_dir;
  bool json = false;
};

Result<Examination> examination_for(const DoctorOptions& options,
                                    std::optional<std::string>& job_error) {
  Examination wanted;
  if (!options.job.empty()) {
    if (::access(options.job.c_str(), R_OK) != 0) {
      return fail(ErrorKind::kUsage, "{} cannot be read", options.job);
    }
    const auto config = launcher::load(options.job);
    if (config) {
      wanted = examination_of(*config);
    } else {
      job_error = config.error().message;
    }
  }
  if (!options.hosts.empty()) wanted.hosts = options.hosts;
  for (std::string& host : wanted.hosts) {
    ANTDT_TRY(host, launcher::agent_end_point(host));
  }
  if (!options.keys.empty() || wanted.keys.empty()) {
    wanted.keys =
        launcher::absolute_path(options.keys.empty() ? "~/.config/antdt" : options.keys, ".");
  }
  if (!options.run_dir.empty() || wanted.run_dir.empty()) {
    wanted.run_dir =
        launcher::absolute_path(options.run_dir.empty() ? "runs" : options.run_dir, ".");
  }
  return wanted;
}

Result<int> doctor(const DoctorOptions& options) {
  std::optional<std::string> job_error;
  ANTDT_TRY(const Examination wanted, examination_for(options, job_error));
  transport::Context context;
  launcher::Facts facts = examine(context, wanted);
  facts.job_error = std::move(job_error);
  const launcher::Findings findings = launcher::judge(facts);
  if (options.json) {
    fmt::print("{}\n", launcher::findings_json(facts, findings));
  } else {
    for (const std::string& line :
         launcher::finding_lines(findings, wants_colours(STDOUT_FILENO))) {
      fmt::print("{}\n", line);
    }
    for (const std::string& line : launcher::link_lines(facts)) fmt::print("{}\n", line);
    fmt::print("{}\n", launcher::count_line(findings));
  }
  return launcher::has(findings, launcher::Level::kError) ? 1 : 0;
}

}  // namespace

void warn_of_trouble(transport::Context& context, const launcher::JobConfig& config,
                     const launcher::RunOptions& options) {
  Examination wanted = examination_of(config);
  if (!options.run_dir.empty()) wanted.run_dir = launcher::absolute_path(options.run_dir, ".");
  wanted.journal = options.state_dir.empty();
  wanted.whole = false;
  wanted.answers = kQuickAnswers;
  launcher::Findings findings = launcher::judge(examine(context, wanted));
  std::erase_if(findings, [](const launcher::Finding& finding) {
    return finding.level < launcher::Level::kWarning;
  });
  for (const std::string& line : launcher::finding_lines(findings, wants_colours(STDERR_FILENO))) {
    fmt::print(stderr, "{}\n", line);
  }
}

void add_doctor(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<DoctorOptions>();
  CLI::App* command = app.add_subcommand(
      "doctor", "Find problems of hosts, links, disks and keys before they stop a job");
  command->add_option("JOB", options->job, "look at what this job.toml needs, and at its hosts");
  command
      ->add_option("--hosts", options->hosts,
                   "look at the hosts of these agents, instead of the job's")
      ->type_name("HOST:PORT,...")
      ->delimiter(',');
  command->add_option("--keys", options->keys, "your keys, as cluster.keys")->type_name("DIR");
  command
      ->add_option("--run-dir", options->run_dir,
                   "the directory of a run, whose disk is tried on each host (default: runs)")
      ->type_name("DIR");
  command->add_flag("--json", options->json, "print JSON");
  command->callback([options, &exit_code] {
    const auto result = doctor(*options);
    exit_code = result ? *result : report(result.error());
  });
}

}  // namespace antdt::cli
