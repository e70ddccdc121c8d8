#include "trainer/nccl/agreement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "core/accelerator/versions.h"

namespace antdt::nccl {
namespace {

// Numbers in this machine's byte order, like the tensors that go over the same links.
struct Wire {
  std::uint64_t magic = 0;
  std::int32_t version = 0;
  std::uint32_t unused = 0;
  std::array<char, 128> host{};
  std::array<char, 128> machine{};
  std::array<char, 64> device{};
  std::array<char, 560> trouble{};
  UniqueId id{};
};
static_assert(sizeof(Wire) == kSaysBytes);
constexpr std::uint64_t kMagic = 0x314c43434e544e41;  // "ANTNCCL1" as bytes

template <std::size_t N>
void put(std::array<char, N>& field, const std::string& text) {
  text.copy(field.data(), N - 1);
}
template <std::size_t N>
std::string get(const std::array<char, N>& field) {
  return {field.data(), ::strnlen(field.data(), N)};
}

using HostsBy = std::map<int, std::set<std::string>>;

std::string different_versions(const HostsBy& hosts) {
  std::vector<std::string> parts;
  for (const auto& [version, names] : hosts) {
    parts.push_back(
        fmt::format("{} on {}", accelerator::version_text(version), fmt::join(names, ", ")));
  }
  return fmt::format(
      "the hosts have different releases of NCCL, which cannot work together: {}. Install the same "
      "release on all",
      fmt::join(parts, "; "));
}

}  // namespace

SaysBytes encode(const MemberSays& says) {
  Wire wire;
  wire.magic = kMagic;
  wire.version = says.version;
  put(wire.host, says.host);
  put(wire.machine, says.machine);
  put(wire.device, says.device);
  put(wire.trouble, says.trouble);
  wire.id = says.id;
  SaysBytes bytes{};
  std::memcpy(bytes.data(), &wire, sizeof(wire));
  return bytes;
}

Result<std::vector<MemberSays>> decode(std::span<const std::byte> bytes) {
  std::vector<MemberSays> members;
  for (std::size_t at = 0; at + kSaysBytes <= bytes.size(); at += kSaysBytes) {
    Wire wire;
    std::memcpy(&wire, bytes.data() + at, sizeof(wire));
    if (wire.magic != kMagic) {
      return fail(ErrorKind::kCorrupt,
                  "rank {} says about NCCL what this release does not understand: install the same "
                  "release of AntDT on all hosts",
                  members.size());
    }
    members.push_back({wire.version, get(wire.host), get(wire.machine), get(wire.device),
                       get(wire.trouble), wire.id});
  }
  return members;
}

std::string obstacle(const std::vector<MemberSays>& members, bool encrypt) {
  std::map<std::string, std::set<std::string>> troubles;  // hosts by trouble
  HostsBy versions;
  std::set<std::string> machines;
  std::set<std::pair<std::string, std::string>> devices;
  for (const MemberSays& member : members) {
    if (!member.trouble.empty()) troubles[member.trouble].insert(member.host);
    versions[member.version].insert(member.host);
    machines.insert(member.machine);
  }
  if (!troubles.empty()) {
    std::vector<std::string> parts;
    for (const auto& [trouble, hosts] : troubles) {
      parts.push_back(fmt::format("{}: {}", fmt::join(hosts, ", "), trouble));
    }
    return fmt::format("{}", fmt::join(parts, "; "));
  }
  if (versions.size() > 1) return different_versions(versions);
  if (encrypt && machines.size() > 1) {
    return "NCCL neither encrypts nor authenticates its connections, and cluster.encrypt is true. "
           "Take trainer.collective = \"tcp\", or set cluster.encrypt = false in a network that "
           "nobody else can read or write";
  }
  for (const MemberSays& member : members) {
    if (!devices.emplace(member.machine, member.device).second) {
      return fmt::format(
          "two members on {} use the device {}, and NCCL hangs if they do. Give each worker a "
          "device of its own (roles.worker.resources.devices in job.toml)",
          member.host, member.device);
    }
  }
  return "";
}

}  // namespace antdt::nccl
