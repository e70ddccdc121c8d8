#include "launcher/commands/run/torchrun_job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <nlohmann/json.hpp>

#include "launcher/config/agent_address.h"

namespace antdt::cli {
namespace {

constexpr std::uint32_t kMostWorkers = 100'000;

std::optional<std::uint32_t> number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Result<std::uint32_t> each_host(const std::string& text, std::uint32_t cpus) {
  if (text == "auto" || text == "cpu") return std::max(1U, cpus);
  const auto count = number(text);
  if (text == "gpu") {
    return fail(
        ErrorKind::kUsage,
        "--nproc-per-node gpu: write how many, since the machine that starts the job need not "
        "be one that has the GPUs");
  }
  if (!count || *count == 0 || *count > kMostWorkers) {
    return fail(ErrorKind::kUsage,
                "--nproc-per-node {}: write a number from 1 on, \"cpu\" or \"auto\"", text);
  }
  return *count;
}

Status check_nodes(const TorchrunFlags& flags) {
  const std::size_t hosts = std::max<std::size_t>(1, flags.hosts.size());
  if (!flags.nnodes.empty()) {
    const std::size_t colon = flags.nnodes.find(':');
    const auto least = number(flags.nnodes.substr(0, colon));
    const auto most = colon == std::string::npos
                          ? least
                          : number(std::string_view(flags.nnodes).substr(colon + 1));
    if (!least || !most || *least == 0 || *least > *most) {
      return fail(ErrorKind::kUsage, "--nnodes {}: write a number, or two as in 1:4", flags.nnodes);
    }
    if (hosts < *least || hosts > *most) {
      return fail(
          ErrorKind::kUsage,
          "--nnodes {}: {} {} named. AntDT starts the workers of all hosts by itself: run this "
          "command once and name the hosts, as in --hosts h1,h2 (each runs antdtd)",
          flags.nnodes, hosts, hosts == 1 ? "host is" : "hosts are");
    }
  }
  if (!flags.node_rank.empty() && flags.node_rank != "0") {
    return fail(ErrorKind::kUsage,
                "--node-rank {}: AntDT starts the workers of all hosts by itself: run this command "
                "once, on one host, and name the others in --hosts",
                flags.node_rank);
  }
  return {};
}

// Consists of letters, digits, '-', '_' and '.', as a job's name must.
std::string name_of(const std::string& script) {
  std::string name = script.substr(script.find_last_of('/') + 1);
  if (name.ends_with(".py")) name.resize(name.size() - 3);
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_' && c != '.')
      c = '-';
  }
  return name.empty() || std::isalnum(static_cast<unsigned char>(name.front())) == 0 ? "job-" + name
                                                                                     : name;
}

// A JSON string is also a TOML string.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}
std::string list_of(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ", ") + quoted(text);
  return "[" + list + "]";
}

// What is no host is reported with the other problems of the job.
std::vector<std::string> with_ports(std::vector<std::string> hosts) {
  for (std::string& host : hosts) host = launcher::agent_end_point(host).value_or(host);
  return hosts;
}

std::vector<std::string> command_of(const TorchrunFlags& flags, const std::string& python) {
  std::vector<std::string> command;
  if (!flags.no_python) command = {python, "-u"};
  if (flags.module) command.emplace_back("-m");
  command.insert(command.end(), flags.script.begin(), flags.script.end());
  return command;
}

}  // namespace

Result<TorchrunJob> torchrun_job(const TorchrunFlags& flags, const std::string& python,
                                 std::uint32_t cpus) {
  if (flags.script.empty()) {
    return fail(ErrorKind::kUsage,
                "which script? antdt torchrun --nproc-per-node 4 train.py, as with torchrun");
  }
  if (flags.script.front().starts_with("-")) {
    return fail(
        ErrorKind::kUsage,
        "{} is no flag of antdt torchrun, and no script; antdt torchrun --help lists the flags",
        flags.script.front());
  }
  if (flags.module && flags.no_python) {
    return fail(ErrorKind::kUsage,
                "-m runs a module of Python, and --no-python no Python: write one");
  }
  TorchrunJob job;
  ANTDT_TRY(job.each_host, each_host(flags.nproc_per_node, cpus));
  ANTDT_RETURN_IF_ERROR(check_nodes(flags));
  const std::size_t count = job.each_host * std::max<std::size_t>(1, flags.hosts.size());
  const std::uint32_t n = flags.max_restarts;
  std::string& toml = job.job_toml;
  toml = fmt::format("# Made by antdt torchrun.\nschema = 1\n\n[job]\nname = {}\n",
                     quoted(name_of(flags.script.front())));
  if (!flags.hosts.empty()) {
    toml += fmt::format("\n[cluster]\nhosts = {}\n", list_of(with_ports(flags.hosts)));
  }
  toml += fmt::format(
      "\n[roles.worker]\ncount = {}\ncommand = {}\nprotocol = \"torchrun\"\nrestart = \"{}\"\n",
      count, list_of(command_of(flags, python)), n == 0 ? "never" : "gang");
  toml += fmt::format(
      "\n[failure.budgets]\nprogram = {0}\noom = {0}\nsignal = {0}\nhang = {0}\nhost = {0}\n"
      "collective = {0}\n",
      n);
  if (!flags.not_needed.empty()) {
    job.notes.push_back(fmt::format(
        "{} {} not needed: AntDT chooses where the workers meet, and keeps the output of each in "
        "RUN/logs (antdt logs RUN)",
        fmt::join(flags.not_needed, ", "), flags.not_needed.size() == 1 ? "is" : "are"));
  }
  return job;
}

std::vector<std::string> with_dashes(std::vector<std::string> arguments) {
  constexpr std::string_view kWithoutValue[] = {
      "--standalone", "-m", "--module", "--no-python", "--json", "--detach", "--dry-run"};
  if (arguments.empty() || arguments.front() != "torchrun") return arguments;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    std::string& word = arguments[i];
    if (word == "--") {  // the script follows
      arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    }
    if (!word.starts_with("-")) break;
    const std::size_t equals = std::min(word.find('='), word.size());
    std::replace(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals), '_', '-');
    const bool alone = std::ranges::find(kWithoutValue, word) != std::end(kWithoutValue);
    if (equals == word.size() && !alone) ++i;  // skips the flag's value
  }
  return arguments;
}

}  // namespace antdt::cli
