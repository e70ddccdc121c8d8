#include "launcher/slurm/allocation.h"

#include <charconv>
#include <optional>
#include <sstream>
#include <string_view>

namespace antdt::launcher {
namespace {

constexpr std::uint32_t kMostNodes = 65'536;
constexpr std::uint32_t kFirstPort = 20'000;
constexpr std::uint32_t kPorts = 10'000;

// The whole text as a number.
std::optional<std::uint32_t> number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return {};
  return value;
}

// The value in "Key=value" among the words of a line; "" if it is not there.
std::string value_of(const std::string& line, const std::string& key) {
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    if (word.starts_with(key + "=")) return word.substr(key.size() + 1);
  }
  return "";
}

}  // namespace

Result<std::vector<std::uint32_t>> cpus_of_nodes(const std::string& text) {
  std::vector<std::uint32_t> cpus;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t open = part.find("(x");
    const auto each = number(std::string_view(part).substr(0, open));
    std::optional<std::uint32_t> times = 1;
    if (open != std::string::npos) {
      times = part.ends_with(')')
                  ? number(std::string_view(part).substr(open + 2, part.size() - open - 3))
                  : std::nullopt;
    }
    if (!each || *each == 0 || !times || *times == 0 || *times > kMostNodes - cpus.size()) {
      return fail(ErrorKind::kUsage, "SLURM_JOB_CPUS_PER_NODE is '{}', and not as in 4(x2),3",
                  text);
    }
    cpus.insert(cpus.end(), *times, *each);
  }
  return cpus;
}

Result<Allocation> read_allocation(const Variables& variables) {
  Allocation found;
  found.node_list = variables("SLURM_JOB_NODELIST");
  const std::string id = variables("SLURM_JOB_ID");
  if (id.empty() || found.node_list.empty()) {
    return fail(ErrorKind::kUsage,
                "--launcher slurm: this is no allocation of Slurm, since SLURM_JOB_ID and "
                "SLURM_JOB_NODELIST are not set; start it in a script of sbatch, or in salloc");
  }
  const auto job = number(id);
  if (!job) return fail(ErrorKind::kUsage, "SLURM_JOB_ID is '{}', and no number", id);
  found.job = *job;
  ANTDT_TRY(found.cpus, cpus_of_nodes(variables("SLURM_JOB_CPUS_PER_NODE")));
  if (const auto megabytes = number(variables("SLURM_MEM_PER_NODE"))) {
    found.memory_bytes = std::uint64_t{*megabytes} << 20;
  }
  return found;
}

Result<std::string> present_nodes(const std::string& output) {
  std::string list = value_of(output, "NodeList");
  if (!list.empty() && list != "(null)") return list;
  return fail(ErrorKind::kUnreachable, "scontrol show job names no node: {}",
              output.substr(0, 500));
}

Result<std::map<std::string, std::uint32_t>> cpus_by_name(const Allocation& allocation,
                                                          const std::string& names) {
  std::map<std::string, std::uint32_t> cpus;
  std::size_t count = 0;
  std::istringstream words(names);
  for (std::string name; words >> name; ++count) {
    if (count < allocation.cpus.size()) cpus[name] = allocation.cpus[count];
  }
  if (count == allocation.cpus.size()) return cpus;
  return fail(ErrorKind::kUsage,
              "SLURM_JOB_CPUS_PER_NODE counts {} nodes, and SLURM_JOB_NODELIST names {}",
              allocation.cpus.size(), count);
}

Result<std::vector<SlurmNode>> read_nodes(const std::string& output) {
  std::vector<SlurmNode> nodes;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const std::string name = value_of(line, "NodeName");
    if (name.empty()) continue;
    const std::string address = value_of(line, "NodeAddr");
    nodes.push_back({name, address.empty() ? name : address});
  }
  if (!nodes.empty()) return nodes;
  return fail(ErrorKind::kUnreachable, "scontrol show node names no node: {}",
              output.substr(0, 500));
}

std::uint16_t agent_port(std::uint32_t job) {
  return static_cast<std::uint16_t>(kFirstPort + job % kPorts);
}

}  // namespace antdt::launcher
