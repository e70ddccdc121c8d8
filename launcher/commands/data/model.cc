// antdt model: writes what a run has trained for other programs.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/role_protocol.h"
#include "jobd/disk/checkpoint_check.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/show/runs.h"
#include "launcher/model/model_aside.h"
#include "launcher/model/model_export.h"
#include "launcher/start/run_directory.h"

namespace antdt::cli {

namespace {

using Json = nlohmann::ordered_json;

struct ModelOptions {
  std::string run;
  std::string out;
  std::string checkpoint;  // empty: the newest complete one
  bool json = false;
};

// A checkpoint whose files are open and agree with its MANIFEST.json.
struct Chosen {
  std::string name;
  std::string directory;
  Step step;
  CheckpointFiles files;
};

tl::unexpected<Error> no_checkpoint(const std::string& run_dir, const launcher::JobConfig& job) {
  if (!speaks(job.roles.worker.protocol, Protocol::kAntdt)) {
    return fail(
        ErrorKind::kUsage,
        "the run in {} has no checkpoint: its workers (roles.worker.protocol = \"{}\") keep "
        "their model by themselves",
        run_dir, job.roles.worker.protocol);
  }
  return fail(ErrorKind::kUsage,
              "the run in {} has no checkpoint yet: a job writes one as often as checkpoint.every "
              "says, when it is stopped, and at its end",
              run_dir);
}

tl::unexpected<Error> unknown_checkpoint(const std::string& checkpoints, const std::string& name,
                                         const std::vector<std::string>& names) {
  return fail(ErrorKind::kUsage, "there is no checkpoint '{}' in {}: there is {}", name,
              checkpoints, fmt::join(names, ", "));
}

Result<Chosen> open_whole(const std::string& checkpoints, const std::string& name) {
  const std::string path = checkpoints + "/" + name;
  ANTDT_TRY(const jobd::Manifest manifest, jobd::check_names(path));
  std::vector<std::string> names;
  for (const wire::CheckpointFile& file : manifest.files) names.push_back(file.name);
  ANTDT_TRY(CheckpointFiles files, CheckpointFiles::open(path, names));
  for (std::uint32_t i = 0; i < files.count(); ++i) {
    ANTDT_TRY(const auto found, jobd::sum_file(files.descriptor(i), files.name(i)));
    ANTDT_RETURN_IF_ERROR(jobd::check_sum(manifest.files[i], found));
  }
  return Chosen{name, path, manifest.step, std::move(files)};
}

// The newest complete checkpoint. Newer ones that are damaged, or cannot be read, are reported on
// standard error.
Result<Chosen> newest_whole(const std::string& checkpoints) {
  ANTDT_TRY(std::vector<std::string> all, jobd::checkpoint_names(checkpoints));
  std::vector<std::string> names = all;
  while (!names.empty()) {
    auto chosen = open_whole(checkpoints, names.back());
    if (chosen) return chosen;
    // A running job removes a checkpoint only when there is a newer one, so the search begins
    // again.
    ANTDT_TRY(auto now, jobd::checkpoint_names(checkpoints));
    if (now != all) {
      names = all = std::move(now);
      continue;
    }
    const bool damaged = chosen.error().kind == ErrorKind::kCorrupt;
    fmt::print(stderr, "antdt: checkpoint {}/{} {}: {}\n", checkpoints, names.back(),
               damaged ? "is damaged and passed over" : "is passed over, since it cannot be read",
               chosen.error().message);
    names.pop_back();
  }
  return fail(ErrorKind::kCorrupt, "no checkpoint in {} is whole: there is nothing to export",
              checkpoints);
}

Result<Chosen> choose(const std::string& run_dir, const launcher::JobConfig& job,
                      const std::string& name) {
  const std::string checkpoints = run_dir + "/checkpoints";
  ANTDT_TRY(const std::vector<std::string> names, jobd::checkpoint_names(checkpoints));
  if (names.empty()) return no_checkpoint(run_dir, job);
  if (name.empty()) return newest_whole(checkpoints);
  if (std::ranges::find(names, name) == names.end()) {
    return unknown_checkpoint(checkpoints, name, names);
  }
  auto chosen = open_whole(checkpoints, name);
  if (chosen) return chosen;
  return fail(chosen.error().kind,
              "checkpoint {}/{} {}: {}. Without --checkpoint the newest complete one is exported",
              checkpoints, name,
              chosen.error().kind == ErrorKind::kCorrupt ? "is damaged" : "cannot be read",
              chosen.error().message);
}

Result<ModelContent> content_of(const Chosen& chosen) {
  auto content = content_of(chosen.files);
  if (!content && content.error().kind == ErrorKind::kUsage) {
    content.error().message = chosen.directory + ": " + content.error().message;
  }
  return content;
}

struct Exported {
  std::string place;
  Json index;
};

Result<Exported> export_model(const ModelOptions& options) {
  ANTDT_TRY(const std::string run_dir, find_job(options.run));
  ANTDT_TRY(const launcher::JobConfig job, launcher::load_effective(run_dir));
  ANTDT_RETURN_IF_ERROR(AsideDirectory::check(options.out));
  ANTDT_TRY(const Chosen chosen, choose(run_dir, job, options.checkpoint));
  ANTDT_TRY(const ModelContent content, content_of(chosen));
  const SignalsWait
      signals;  // declared first, so that it outlives the directory that is made aside
  ANTDT_TRY(AsideDirectory aside, AsideDirectory::make_for(options.out));
  ANTDT_RETURN_IF_ERROR(aside.check_room(model_bytes(content)));
  const ModelOrigin origin{job_id(run_dir), job.trainer.model, chosen.name, chosen.step};
  auto index =
      write_model(chosen.files, content, origin, aside.path(), [&] { return signals.any(); });
  if (!index) {
    return fail(index.error().kind, "{}; {} is not there", index.error().message, aside.place());
  }
  ANTDT_RETURN_IF_ERROR(aside.put_in_place());
  return Exported{aside.place(), std::move(*index)};
}

void print(const Exported& exported) {
  const Json& index = exported.index;
  fmt::print("{}: step {} of {}, from checkpoint {}\n", exported.place,
             index["step"].get<std::uint64_t>(), index["job"].get<std::string>(),
             index["checkpoint"].get<std::string>());
  for (const Json& parameter : index["parameters"]) {
    const auto shape = parameter["shape"].get<std::vector<std::uint64_t>>();
    fmt::print("  parameter {}: {}\n", parameter["name"].get<std::string>(),
               fmt::join(shape, " x "));
  }
  for (const Json& table : index["tables"]) {
    fmt::print("  table {}: {} rows of {}\n", table["name"].get<std::string>(),
               table["rows"].get<std::uint64_t>(), table["width"].get<std::uint64_t>());
  }
}

int run(const ModelOptions& options) {
  const auto exported = export_model(options);
  if (!exported) return report(exported.error());
  if (options.json) {
    fmt::print("{}\n", exported->index.dump());
  } else {
    print(*exported);
  }
  return 0;
}

void add_export(CLI::App& model, int& exit_code) {
  const auto options = std::make_shared<ModelOptions>();
  CLI::App* command = model.add_subcommand("export", "Write a run's model as plain arrays");
  command->add_option("RUN", options->run, kJobHelp)->required();
  command->add_option("--out", options->out, "directory to make, which must be new or empty")
      ->required()
      ->type_name("DIR");
  command
      ->add_option("--checkpoint", options->checkpoint,
                   "this one (default: the newest complete one)")
      ->type_name("NAME");
  command->add_flag("--json", options->json, "print JSON: what index.json has");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace

void add_model(CLI::App& app, int& exit_code) {
  CLI::App* model = app.add_subcommand("model", "What a run has trained, for other programs");
  model->require_subcommand(1);
  add_export(*model, exit_code);
}

}  // namespace antdt::cli
