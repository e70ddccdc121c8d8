// antdt inject: injects faults into a running job.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/schema/units.h"
#include "core/wire/drill_messages.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/operate/running_job.h"
#include "launcher/commands/show/runs.h"
#include "launcher/config/job_config.h"
#include "launcher/config/overrides.h"

namespace antdt::cli {

namespace {

struct InjectOptions {
  std::string job;
  std::vector<std::string> keys;
  std::string duration = "0s";
  bool clear = false;
};

// Problems with the rule, without the table that was made of what the user wrote.
tl::unexpected<Error> in_words_of_the_user(Error problem, const std::string& made) {
  std::string& text = problem.message;
  for (std::size_t at = text.find(made); at != std::string::npos; at = text.find(made, at)) {
    text.erase(at, made.size());
  }
  return tl::unexpected<Error>(std::move(problem));
}

// The rule as job.json has it, checked as in job.toml.
Result<std::string> rule_of(const std::string& run_dir, const std::vector<std::string>& keys) {
  ANTDT_TRY(launcher::JobConfig config, launcher::load_effective(run_dir));
  config.inject.clear();
  const std::string here = std::filesystem::current_path().string() + "/job.toml";
  ANTDT_TRY(const std::string table, launcher::inline_table("inject", keys));
  const std::string added = fmt::format("inject=[{}]", table);
  auto with_rule = launcher::load_text(launcher::to_toml(config), here, {added});
  if (!with_rule) return in_words_of_the_user(with_rule.error(), "--set " + added + ": ");
  config = std::move(*with_rule);
  launcher::JobConfig defaults = config;
  defaults.inject.assign(1, {});
  const auto before = nlohmann::json::parse(launcher::to_json(defaults)).at("inject").at(0);
  auto rules = nlohmann::json::parse(launcher::to_json(config)).at("inject");
  // The rest is as it is by default, and people read the rules in events.
  for (auto& rule : rules) {
    for (const auto& [key, value] : before.items()) {
      if (rule.at(key) == value) rule.erase(key);
    }
  }
  return rules.dump();
}

Status inject(const InjectOptions& options) {
  if (options.clear != options.keys.empty()) {
    return fail(
        ErrorKind::kUsage,
        "write what is to be injected as keys of [[inject]], such as workers=w1 slowdown=3, or "
        "--clear");
  }
  ANTDT_TRY(const auto duration, schema::parse_duration(options.duration));
  ANTDT_TRY(RunningJob job, reach(options.job));
  wire::InjectRules order;
  order.rules = "[]";
  if (!options.clear) {
    ANTDT_TRY(order.rules, rule_of(job.run_dir, options.keys));
  }
  order.who = operator_name();
  order.duration_ms = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
  ANTDT_RETURN_IF_ERROR(give(job, order));
  if (options.clear) {
    fmt::print("nothing is injected beside what job.toml says\n");
  } else {
    fmt::print("{} is injected{}\n", fmt::join(options.keys, ", "),
               order.duration_ms == 0 ? "" : " for " + options.duration);
  }
  return {};
}

}  // namespace

void add_inject(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<InjectOptions>();
  CLI::App* command = app.add_subcommand(
      "inject", "Slow processes of a running job down, or kill them, for a drill");
  command->add_option("RUN", options->job, kJobHelp)->required();
  command->add_option("KEY=VALUE", options->keys,
                      "keys of one [[inject]] of job.toml, values as there; they replace the "
                      "injection that this command made before");
  command->add_option("--duration", options->duration, "for how long; 0s: to the job's end")
      ->type_name("TIME")
      ->capture_default_str();
  command->add_flag("--clear", options->clear, "end the injection made by this command");
  command->callback([options, &exit_code] {
    if (const auto done = inject(*options); !done) exit_code = report(done.error());
  });
}

}  // namespace antdt::cli
