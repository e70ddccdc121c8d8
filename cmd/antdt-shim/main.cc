// antdt-shim: the parent of one worker. Started by antdtd, not by people.
#include <getopt.h>

#include <charconv>
#include <cstdio>
#include <string_view>

#include "antdtd/shim.h"

namespace {

constexpr int kUsageError = 2;
constexpr const char* kUsage =
    "Usage: antdt-shim --process-dir DIR --log-prefix PATH [--log-bytes N]\n"
    "                  [--orphan-timeout-ms N] [--working-directory DIR] [--release-orphans]\n"
    "                  -- PROGRAM [ARGUMENT...]\n"
    "Keeps one process of a job for antdtd. See docs/agent.md.\n";

bool parse_number(std::string_view text, std::uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

bool parse(int argc, char** argv, antdt::antdtd::ShimOptions& options) {
  const option known[] = {{"process-dir", required_argument, nullptr, 'd'},
                          {"log-prefix", required_argument, nullptr, 'l'},
                          {"log-bytes", required_argument, nullptr, 'b'},
                          {"orphan-timeout-ms", required_argument, nullptr, 'o'},
                          {"working-directory", required_argument, nullptr, 'w'},
                          {"release-orphans", no_argument, nullptr, 'r'},
                          {nullptr, 0, nullptr, 0}};
  std::uint64_t timeout_ms = 0;
  for (int c = 0; (c = getopt_long(argc, argv, "+", known, nullptr)) != -1;) {
    if (c == 'd') options.process_dir = optarg;
    if (c == 'l') options.log_prefix = optarg;
    if (c == 'b' && !parse_number(optarg, options.log_bytes)) return false;
    if (c == 'o' && !parse_number(optarg, timeout_ms)) return false;
    if (c == 'w') options.working_directory = optarg;
    if (c == 'r') options.keep_orphans = false;
    if (c == '?') return false;
  }
  options.orphan_timeout = std::chrono::milliseconds(timeout_ms);
  options.command.assign(argv + optind, argv + argc);
  return !options.process_dir.empty() && !options.log_prefix.empty() && !options.command.empty();
}

}  // namespace

int main(int argc, char** argv) {
  antdt::antdtd::ShimOptions options;
  if (!parse(argc, argv, options)) {
    std::fputs(kUsage, stderr);
    return kUsageError;
  }
  return antdt::antdtd::run_shim(options);
}
