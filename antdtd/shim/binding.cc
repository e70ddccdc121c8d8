#include "antdtd/shim/binding.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>
#include <set>

namespace antdt::antdtd {
namespace {

constexpr std::size_t kMostCpus = 4096;
constexpr std::size_t kBits = std::numeric_limits<unsigned long>::digits;
constexpr std::size_t kMostNodes = 1024;
constexpr int kPreferred = 1;  // MPOL_PREFERRED of the kernel

std::string bind_to_cpus(const std::string& list) {
  std::array<unsigned long, kMostCpus / kBits> allowed{};
  auto* const set = reinterpret_cast<cpu_set_t*>(allowed.data());
  if (sched_getaffinity(0, sizeof(allowed), set) != 0) {
    return fmt::format("its CPUs cannot be read: {}", std::strerror(errno));
  }
  std::array<unsigned long, kMostCpus / kBits> wanted{};
  bool any = false;
  for (const std::uint32_t cpu : parse_cpu_list(list)) {
    const unsigned long bit = allowed.at(cpu / kBits) & (1UL << (cpu % kBits));
    wanted.at(cpu / kBits) |= bit;
    any = any || bit != 0;
  }
  if (!any) {
    return fmt::format("it is not bound to the CPUs {} near its devices: it may use none of them",
                       list);
  }
  if (sched_setaffinity(0, sizeof(wanted), reinterpret_cast<cpu_set_t*>(wanted.data())) == 0) {
    return "";
  }
  return fmt::format("it is not bound to the CPUs {} near its devices: {}", list,
                     std::strerror(errno));
}

// A policy that preferred no other node would end the process when that one is full.
std::string bind_to_node(int node) {
  std::array<unsigned long, kMostNodes / kBits> nodes{};
  const auto at = static_cast<std::size_t>(node);
  if (at >= kMostNodes) return "";
  nodes.at(at / kBits) = 1UL << (at % kBits);
  if (syscall(SYS_set_mempolicy, kPreferred, nodes.data(), kMostNodes + 1) == 0) return "";
  return fmt::format("its memory is not taken from NUMA node {} first: {}", node,
                     std::strerror(errno));
}

}  // namespace

std::string cpu_list(const std::vector<unsigned long>& bits) {
  const auto is_set = [&](std::size_t i) { return ((bits[i / kBits] >> (i % kBits)) & 1UL) != 0; };
  std::string text;
  const std::size_t all = bits.size() * kBits;
  for (std::size_t i = 0; i < all; ++i) {
    if (!is_set(i)) continue;
    std::size_t last = i;
    while (last + 1 < all && is_set(last + 1)) ++last;
    if (!text.empty()) text += ',';
    text += last == i ? fmt::format("{}", i) : fmt::format("{}-{}", i, last);
    i = last;
  }
  return text;
}

std::vector<std::uint32_t> parse_cpu_list(const std::string& text) {
  std::set<std::uint32_t> cpus;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto number = [&](std::uint32_t& value) {
    const auto [next, error] = std::from_chars(at, end, value);
    at = next;
    return error == std::errc() && value < kMostCpus;
  };
  while (at < end) {
    std::uint32_t first = 0;
    if (!number(first)) return {};
    std::uint32_t last = first;
    if (at < end && *at == '-' && (++at, !number(last))) return {};
    for (std::uint32_t cpu = first; cpu <= last; ++cpu) cpus.insert(cpu);
    if (at < end && *at++ != ',') return {};
  }
  return {cpus.begin(), cpus.end()};
}

std::string bind_to(const std::string& cpus, int numa_node) {
  std::string problem = cpus.empty() ? "" : bind_to_cpus(cpus);
  const std::string other = numa_node < 0 ? "" : bind_to_node(numa_node);
  if (!problem.empty() && !other.empty()) problem += "; ";
  return problem + other;
}

}  // namespace antdt::antdtd
