#include "launcher/config/job_config.h"

#include "core/os/fs.h"
#include "launcher/config/checks.h"
#include "launcher/config/config_json.h"
#include "launcher/config/older_job.h"
#include "launcher/config/overrides.h"
#include "launcher/config/problems.h"
#include "launcher/config/toml_reader.h"
#include "launcher/start/paths.h"

namespace antdt::launcher {

Result<JobConfig> load_text(const std::string& text, const std::string& path,
                            const std::vector<std::string>& overrides) {
  toml::parse_result parsed = toml::parse(text, path);
  if (!parsed) {
    const auto& begin = parsed.error().source().begin;
    return fail(ErrorKind::kUsage, "{}:{}:{}: this is not TOML: {}", path, begin.line, begin.column,
                parsed.error().description());
  }
  toml::table root = std::move(parsed).table();
  const std::string absolute = absolute_path(path, ".");
  const std::string directory = absolute.substr(0, absolute.rfind('/'));
  Places places(path);
  Problems problems(places);
  apply_overrides(root, overrides, places, problems);
  rename_older_keys(root, problems);
  nlohmann::ordered_json json = read_by_schema(root, directory, places, problems);

  // A value that could not be read has a problem already. It is replaced by its default, and checks
  // that need it are left out.
  add_missing_keys(json);
  ANTDT_TRY(JobConfig config, config_from_json(json, /*complete=*/false));
  config.job.directory = directory.empty() ? "/" : directory;
  derive(config);
  check(config, problems);
  if (!problems.empty()) return tl::unexpected<Error>(problems.error());
  return config;
}

Result<JobConfig> load(const std::string& path, const std::vector<std::string>& overrides) {
  const auto text = read_file(path);
  if (!text) return fail(ErrorKind::kUsage, "{}", text.error().message);
  return load_text(*text, path, overrides);
}

}  // namespace antdt::launcher
