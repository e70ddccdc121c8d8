#include "antdtd/shim/out_of_memory.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <csignal>

#include "core/result.h"

namespace antdt::antdtd {
namespace {

// In lower case. C++, Python, CUDA, glibc and the system report errors with these words.
constexpr std::array<std::string_view, 13> kComplaints = {
    "std::bad_alloc",
    "cannot allocate memory",
    // the message of the CUDA runtime and of PyTorch; also "outofmemoryerror" below
    "out of memory",
    "outofmemoryerror",
    "memoryerror",
    "cuda_error_out_of_memory",
    // libraries of CUDA, which take memory for their handles
    "cublas_status_alloc_failed",
    "cudnn_status_alloc_failed",
    "cudnn_status_internal_error_device_allocation_failed",  // from cuDNN 9 on
    "cudnn_status_internal_error_host_allocation_failed",
    "unable to allocate",     // numpy
    "can't allocate memory",  // PyTorch's allocator for the CPU
    "memory exhausted",
};
constexpr std::size_t kLongestLine = 300;

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

bool complains(std::string_view line) {
  const std::string text = lower(line);
  return std::any_of(kComplaints.begin(), kComplaints.end(), [&text](std::string_view complaint) {
    return text.find(complaint) != std::string::npos;
  });
}

// A program that cannot get memory exits or aborts by itself. If others ended it, it had survived
// what it reported before.
bool ended_by_others(int signal) {
  return signal == SIGKILL || signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
}

std::string_view trimmed(std::string_view line) {
  while (!line.empty() && std::isspace(static_cast<unsigned char>(line.front())) != 0) {
    line.remove_prefix(1);
  }
  while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back())) != 0) {
    line.remove_suffix(1);
  }
  return line.substr(0, kLongestLine);
}

}  // namespace

std::optional<std::uint64_t> oom_kills(std::string_view memory_events) {
  constexpr std::string_view kName = "oom_kill ";
  while (!memory_events.empty()) {
    const std::size_t end = std::min(memory_events.find('\n'), memory_events.size());
    const std::string_view line = memory_events.substr(0, end);
    memory_events.remove_prefix(std::min(end + 1, memory_events.size()));
    std::uint64_t count = 0;
    if (!line.starts_with(kName)) continue;
    const auto parsed = std::from_chars(line.data() + kName.size(), line.data() + end, count);
    if (parsed.ec == std::errc()) return count;
  }
  return std::nullopt;
}

// The last such line counts, because the program may have survived an earlier one.
std::string memory_complaint(std::string_view last_lines) {
  while (!last_lines.empty()) {
    const std::size_t newline = last_lines.find_last_of('\n');
    const std::string_view line =
        newline == std::string_view::npos ? last_lines : last_lines.substr(newline + 1);
    if (complains(line)) return std::string(trimmed(line));
    last_lines =
        newline == std::string_view::npos ? std::string_view{} : last_lines.substr(0, newline);
  }
  return {};
}

std::string oom_evidence(const ExitStatus& status, std::string_view memory_events) {
  if (!status.error.empty() || (status.code == 0 && status.signal == 0)) return {};
  const auto kills = oom_kills(memory_events);
  if (kills && *kills > 0) {
    return fmt::format("cgroup: the kernel killed {} for want of memory",
                       *kills == 1 ? "1 process" : fmt::format("{} processes", *kills));
  }
  if (ended_by_others(status.signal)) return {};
  const std::string complaint = memory_complaint(status.last_lines);
  return complaint.empty() ? "" : "said: " + complaint;
}

}  // namespace antdt::antdtd
