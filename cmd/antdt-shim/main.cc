// antdt-shim: the parent of one worker. antdtd starts it; people do not.
#include <getopt.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <string_view>

#include "antdtd/files/file_service.h"
#include "antdtd/shim/process_tree.h"
#include "antdtd/shim/shim.h"

namespace {

constexpr int kUsageError = 2;
constexpr const char* kUsage =
    "Usage: antdt-shim --process-dir DIR --log-prefix PATH [--log-bytes N]\n"
    "                  [--orphan-timeout-ms N] [--working-directory DIR] [--cgroup DIR]\n"
    "                  [--cgroup-procs-fd N] [--release-orphans] [--cpus LIST]\n"
    "                  [--numa-node N] [--device-claim PATH...]\n"
    "                  [--agent-lock PATH --agent-log PATH --agent-patience-ms N\n"
    "                   --agent-hung-ms N --agent-argument ARGUMENT...]\n"
    "                  -- PROGRAM [ARGUMENT...]\n"
    "       antdt-shim --kill-marked -- NAME=VALUE...\n"
    "       antdt-shim --serve-files RUN\n"
    "Keeps one process of a job for antdtd, or serves the files of a run to it over the socket\n"
    "that is its standard input. See docs/agent.md.\n";

bool parse_number(std::string_view text, std::uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

bool parse_ms(std::string_view text, antdt::Duration& value) {
  std::uint64_t ms = 0;
  if (!parse_number(text, ms)) return false;
  value = std::chrono::milliseconds(ms);
  return true;
}

bool parse_descriptor(std::string_view text, int& value) {
  std::uint64_t number = 0;
  if (!parse_number(text, number) || number < 3 || number > 1'000'000) return false;
  value = static_cast<int>(number);
  return true;
}

bool parse_node(std::string_view text, int& value) {
  std::uint64_t number = 0;
  if (!parse_number(text, number) || number > 1023) return false;
  value = static_cast<int>(number);
  return true;
}

bool parse(int argc, char** argv, antdt::antdtd::ShimOptions& options, bool& kill_marked) {
  const option known[] = {{"process-dir", required_argument, nullptr, 'd'},
                          {"log-prefix", required_argument, nullptr, 'l'},
                          {"log-bytes", required_argument, nullptr, 'b'},
                          {"orphan-timeout-ms", required_argument, nullptr, 'o'},
                          {"working-directory", required_argument, nullptr, 'w'},
                          {"cgroup", required_argument, nullptr, 'c'},
                          {"cgroup-procs-fd", required_argument, nullptr, 'f'},
                          {"release-orphans", no_argument, nullptr, 'r'},
                          {"cpus", required_argument, nullptr, 'u'},
                          {"numa-node", required_argument, nullptr, 'n'},
                          {"device-claim", required_argument, nullptr, 'v'},
                          {"kill-marked", no_argument, nullptr, 'm'},
                          {"agent-lock", required_argument, nullptr, 'k'},
                          {"agent-log", required_argument, nullptr, 'g'},
                          {"agent-patience-ms", required_argument, nullptr, 'p'},
                          {"agent-hung-ms", required_argument, nullptr, 'h'},
                          {"agent-argument", required_argument, nullptr, 'a'},
                          {nullptr, 0, nullptr, 0}};
  for (int c = 0; (c = getopt_long(argc, argv, "+", known, nullptr)) != -1;) {
    if (c == 'd') options.process_dir = optarg;
    if (c == 'l') options.log_prefix = optarg;
    if (c == 'b' && !parse_number(optarg, options.log_bytes)) return false;
    if (c == 'o' && !parse_ms(optarg, options.orphan_timeout)) return false;
    if (c == 'p' && !parse_ms(optarg, options.agent.patience)) return false;
    if (c == 'h' && !parse_ms(optarg, options.agent.hung_after)) return false;
    if (c == 'k') options.agent.lock = optarg;
    if (c == 'g') options.agent.log = optarg;
    if (c == 'a') options.agent.command.emplace_back(optarg);
    if (c == 'c') options.cgroup = optarg;
    if (c == 'w') options.working_directory = optarg;
    if (c == 'f' && !parse_descriptor(optarg, options.cgroup_procs_fd)) return false;
    if (c == 'u') options.cpus = optarg;
    if (c == 'n' && !parse_node(optarg, options.numa_node)) return false;
    if (c == 'v') options.device_claims.emplace_back(optarg);
    if (c == 'r') options.keep_orphans = false;
    if (c == 'm') kill_marked = true;
    if (c == '?') return false;
  }
  options.command.assign(argv + optind, argv + argc);
  if (kill_marked) return !options.command.empty();
  return !options.process_dir.empty() && !options.log_prefix.empty() && !options.command.empty();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--serve-files") {
    return antdt::antdtd::serve_files(STDIN_FILENO, argv[2]);
  }
  antdt::antdtd::ShimOptions options;
  bool kill_marked = false;
  if (!parse(argc, argv, options, kill_marked)) {
    std::fputs(kUsage, stderr);
    return kUsageError;
  }
  if (kill_marked) {
    antdt::antdtd::kill_marked(options.command);
    return 0;
  }
  return antdt::antdtd::run_shim(options);
}
