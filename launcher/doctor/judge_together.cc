#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdlib>
#include <map>

#include "launcher/doctor/judge.h"

namespace antdt::launcher {
namespace {

constexpr std::int64_t kClockUs = 1'000'000;

void judge_clock(const HostFacts& host, Findings& findings) {
  if (host.here || !host.clock) return;
  const std::int64_t off = std::abs(host.clock->ahead_us);
  const bool apart = off > kClockUs + static_cast<std::int64_t>(host.clock->uncertain_us);
  Finding finding{Level::kOk,
                  label(host),
                  "clock",
                  "its wall clock beside that of this host",
                  fmt::format("{:.3f} s {} (known to {:.1f} ms)", static_cast<double>(off) / 1e6,
                              host.clock->ahead_us < 0 ? "behind" : "ahead",
                              static_cast<double>(host.clock->uncertain_us) / 1e3),
                  "logs of several hosts are read side by side by their times, and a shared "
                  "filesystem, TLS or Kerberos may refuse a host whose time is wrong; the job "
                  "itself compares no clocks",
                  ""};
  if (apart) {
    finding.level = Level::kWarning;
    finding.advice = "start chronyd, ntpd or systemd-timesyncd on the one that is wrong";
  }
  findings.push_back(std::move(finding));
}

void judge_versions(const Facts& facts, Findings& findings) {
  std::map<std::string, std::vector<std::string>> hosts;  // by version
  for (const HostFacts& host : facts.hosts) {
    if (host.told) hosts[host.told->software].push_back(label(host));
  }
  if (hosts.empty() || facts.hosts.size() < 2) return;
  Finding finding{Level::kOk,
                  "all hosts",
                  "version",
                  "the version of AntDT on each",
                  hosts.begin()->first,
                  "releases work together as far as their protocol versions overlap; what is new "
                  "in one is missing in the other",
                  ""};
  if (hosts.size() > 1) {
    finding.level = Level::kWarning;
    finding.found.clear();
    for (const auto& [version, names] : hosts) {
      finding.found += fmt::format("{}{} on {}", finding.found.empty() ? "" : "; ", version,
                                   fmt::join(names, ", "));
    }
    finding.advice = "install the same release everywhere";
  }
  findings.push_back(std::move(finding));
}

struct Sharing {
  std::map<std::string, std::vector<std::string>> groups;  // hosts by the directory's identity
  std::size_t hosts = 0;
  std::string path;
};

std::string groups_text(const Sharing& sharing) {
  if (sharing.groups.size() == 1) return "all hosts share it";
  if (sharing.groups.size() == sharing.hosts) return "each host has its own";
  std::string text;
  for (const auto& [identity, names] : sharing.groups) {
    text += fmt::format("{}{} {}", text.empty() ? "" : "; ", fmt::join(names, ", "),
                        names.size() == 1 ? "has its own" : "share one");
  }
  return text;
}

void judge_sharing(const Facts& facts, Findings& findings) {
  std::map<std::string, Sharing> found;  // by purpose
  for (const HostFacts& host : facts.hosts) {
    for (const DirectoryFacts& directory : host.directories) {
      if (directory.told.identity.empty()) continue;
      Sharing& sharing = found[directory.purpose];
      sharing.path = directory.path;
      sharing.groups[directory.told.identity].push_back(label(host));
      ++sharing.hosts;
    }
  }
  for (const auto& [purpose, sharing] : found) {
    if (sharing.hosts < 2) continue;
    Finding finding{Level::kOk,
                    "all hosts",
                    "shared directory",
                    fmt::format("who shares the {} {}", purpose, sharing.path),
                    groups_text(sharing),
                    "where hosts share it, checkpoints are written once; where each has its own, "
                    "they are copied to as many hosts as checkpoint.copies says",
                    ""};
    if (sharing.groups.size() > 1 && facts.copies == 1) {
      finding.level = Level::kWarning;
      finding.why =
          "with checkpoint.copies = 1 the loss of one host is the loss of its checkpoints";
      finding.advice = "set checkpoint.copies = 2, or use a directory that all hosts share";
    }
    findings.push_back(std::move(finding));
  }
}

}  // namespace

void judge_together(const Facts& facts, Findings& findings) {
  for (const HostFacts& host : facts.hosts) judge_clock(host, findings);
  judge_versions(facts, findings);
  judge_sharing(facts, findings);
}

}  // namespace antdt::launcher
