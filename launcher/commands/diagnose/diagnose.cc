// antdt diagnose: writes one archive about a run, for a bug report.
#include <fmt/format.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <memory>
#include <string_view>

#include "core/os/fs.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/diagnose/host_facts.h"
#include "launcher/commands/diagnose/run_parts.h"
#include "launcher/commands/show/runs.h"
#include "launcher/commands/usage.h"
#include "launcher/diagnose/bug_report.h"
#include "launcher/diagnose/secret_words.h"
#include "launcher/diagnose/tar.h"
#include "launcher/start/run_directory.h"

namespace antdt::cli {
namespace {

constexpr Duration kReadingPatience = std::chrono::seconds(60);
constexpr std::size_t kLongestTop = 40;  // the archive's format bounds the names in it

struct DiagnoseOptions {
  std::string run;
  std::string out;
  std::size_t lines = 1'000;
};

// The secrets of this command's own environment: the job's processes may have got the same ones.
launcher::Redactor knowing_own_secrets() {
  launcher::Redactor redactor;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t sign = text.find('=');
    if (sign == std::string_view::npos || !launcher::names_secret(text.substr(0, sign))) continue;
    redactor.forget(std::string(text.substr(sign + 1)));
  }
  return redactor;
}

launcher::BugReport read_report(const std::string& run_dir, const std::string& version,
                                std::size_t lines) {
  const auto control = launcher::read_control(run_dir);
  const std::string state_dir = control ? control->state_dir : run_dir;
  launcher::ReportSources sources = read_run_parts(run_dir, lines);
  sources.parts.insert(sources.parts.begin(), {{"versions.txt", version_facts(version)},
                                               {"host.txt", host_facts({run_dir, state_dir})}});
  return launcher::bug_report(sources, knowing_own_secrets());
}

Status diagnose(const DiagnoseOptions& options, const std::string& version) {
  ANTDT_TRY(const std::string run_dir, find_job(options.run));
  const auto report = within(kReadingPatience, [run_dir, version, lines = options.lines] {
    return read_report(run_dir, version, lines);
  });
  if (!report) {
    return fail(ErrorKind::kUnreachable,
                "{} could not be read within {:.0f} s: look at the disk (or "
                "the network) that it lies on",
                run_dir, to_seconds(kReadingPatience));
  }
  const std::string name = std::filesystem::path(run_dir).filename().string();
  const std::string out = options.out.empty() ? name + ".diagnose.tar" : options.out;
  ANTDT_TRY(const std::string archive,
            launcher::tar_of(name.substr(0, kLongestTop) + ".diagnose", report->files,
                             static_cast<std::uint64_t>(std::time(nullptr))));
  ANTDT_RETURN_IF_ERROR(write_file_atomic(out, archive, 0600));
  fmt::print("{}: {} files, {} bytes, readable only by you\nleft out:\n", out, report->files.size(),
             archive.size());
  for (const std::string& line : report->left_out) fmt::print("  {}\n", line);
  fmt::print(
      "A secret that has no usual name or form is not recognized, so look through it before "
      "you send it: tar xOf '{}' | less\n",
      out);
  return {};
}

}  // namespace

void add_diagnose(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<DiagnoseOptions>();
  CLI::App* command = app.add_subcommand(
      "diagnose", "Write an archive about a run for a bug report, without secrets");
  command->add_option("RUN", options->run, kJobHelp)->required();
  command
      ->add_option("--out", options->out,
                   "the archive's file (default: RUN.diagnose.tar in the working directory)")
      ->type_name("FILE");
  command->add_option("--lines", options->lines, "the last N lines of each log")
      ->type_name("N")
      ->check(at_least_one())
      ->capture_default_str();
  command->callback([options, &app, &exit_code] {
    if (const auto done = diagnose(*options, app.version()); !done)
      exit_code = report(done.error());
  });
}

}  // namespace antdt::cli
