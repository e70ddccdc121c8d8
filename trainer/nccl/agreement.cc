#include "trainer/nccl/agreement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "core/accelerator/versions.h"

namespace antdt::nccl {
namespace {

// Numbers in this machine's byte order, like the tensors that go over the same links.
struct Wire {
  std::uint64_t magic = 0;
  std::int32_t version = 0;
  std::uint32_t holds_state = 0;  // 0 or 1
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

// Whom `is_at_fault` finds.
template <class F>
Obstacle found(std::string why, const std::vector<MemberSays>& members, F is_at_fault) {
  Obstacle obstacle{std::move(why)};
  for (const MemberSays& member : members) obstacle.at_fault.push_back(is_at_fault(member));
  return obstacle;
}

// Who has another value than most of those that hold the training state, or, if none holds it, than
// most members.
template <class T>
Obstacle differing(std::string why, const std::vector<MemberSays>& members, T MemberSays::*value) {
  const bool is_held = std::ranges::any_of(members, &MemberSays::holds_state);
  const auto counts = [&](const MemberSays& m) { return m.holds_state || !is_held; };
  const auto counted_with_it = [&](const MemberSays& member) -> std::ptrdiff_t {
    if (!counts(member)) return 0;
    return std::ranges::count_if(members, [&](const MemberSays& other) {
      return counts(other) && other.*value == member.*value;
    });
  };
  // The first of those with as many.
  const T most = (*std::ranges::max_element(members, {}, counted_with_it)).*value;
  return found(std::move(why), members,
               [&](const MemberSays& member) { return member.*value != most; });
}

Obstacle troubles_of(const std::vector<MemberSays>& members) {
  std::map<std::string, std::set<std::string>> hosts_by;
  for (const MemberSays& member : members) {
    if (!member.trouble.empty()) hosts_by[member.trouble].insert(member.host);
  }
  if (hosts_by.empty()) return {};
  std::vector<std::string> parts;
  for (const auto& [trouble, hosts] : hosts_by) {
    parts.push_back(fmt::format("{}: {}", fmt::join(hosts, ", "), trouble));
  }
  return found(fmt::format("{}", fmt::join(parts, "; ")), members,
               [](const MemberSays& member) { return !member.trouble.empty(); });
}

Obstacle versions_differ(const std::vector<MemberSays>& members) {
  std::map<int, std::set<std::string>> hosts_by;
  for (const MemberSays& member : members) hosts_by[member.version].insert(member.host);
  if (hosts_by.size() < 2) return {};
  std::vector<std::string> parts;
  for (const auto& [version, hosts] : hosts_by) {
    parts.push_back(
        fmt::format("{} on {}", accelerator::version_text(version), fmt::join(hosts, ", ")));
  }
  return differing(
      fmt::format("the hosts have different releases of NCCL, which cannot work together: {}. "
                  "Install the same release on all",
                  fmt::join(parts, "; ")),
      members, &MemberSays::version);
}

Obstacle crosses_hosts(const std::vector<MemberSays>& members) {
  const auto elsewhere = [&](const MemberSays& m) { return m.machine != members[0].machine; };
  if (std::ranges::none_of(members, elsewhere)) return {};
  return differing(
      "NCCL neither encrypts nor authenticates its connections, and cluster.encrypt is true. "
      "Take trainer.collective = \"tcp\", or set cluster.encrypt = false in a network that "
      "nobody else can read or write",
      members, &MemberSays::machine);
}

Obstacle share_a_device(const std::vector<MemberSays>& members) {
  const auto device_of = [](const MemberSays& m) { return std::pair(m.machine, m.device); };
  std::map<std::pair<std::string, std::string>, const MemberSays*> owners;
  for (const bool holds_state : {true, false}) {  // who holds the state keeps the device
    for (const MemberSays& member : members) {
      if (member.holds_state == holds_state) owners.try_emplace(device_of(member), &member);
    }
  }
  const auto comes_second = [&](const MemberSays& m) { return owners.at(device_of(m)) != &m; };
  const auto second = std::ranges::find_if(members, comes_second);
  if (second == members.end()) return {};
  return found(
      fmt::format(
          "two members on {} use the device {}, and NCCL hangs if they do. Give each worker a "
          "device of its own (roles.worker.resources.gpus in job.toml)",
          second->host, second->device),
      members, comes_second);
}

}  // namespace

SaysBytes encode(const MemberSays& says) {
  Wire wire;
  wire.magic = kMagic;
  wire.version = says.version;
  wire.holds_state = says.holds_state ? 1 : 0;
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
    members.push_back({wire.version, wire.holds_state != 0, get(wire.host), get(wire.machine),
                       get(wire.device), get(wire.trouble), wire.id});
  }
  return members;
}

Obstacle obstacle(const std::vector<MemberSays>& members, bool encrypt) {
  Obstacle first = troubles_of(members);
  if (first.why.empty()) first = versions_differ(members);
  if (first.why.empty() && encrypt) first = crosses_hosts(members);
  if (first.why.empty()) first = share_a_device(members);
  return first;
}

}  // namespace antdt::nccl
