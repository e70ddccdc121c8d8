// What facts mean for a job: pure, so that each threshold has a test with made-up facts. The
// thresholds are explained in docs/operations/doctor.md.
#pragma once

#include "launcher/doctor/facts.h"
#include "launcher/doctor/finding.h"

namespace antdt::launcher {

// Everything, in the order of the subjects.
[[nodiscard]] Findings judge(const Facts& facts);

void judge_keys(const Facts& facts, Findings& findings);
// Name, port and agent of a host, as they are seen from this host.
void judge_reach(const HostFacts& host, const Facts& facts, Findings& findings);
// Limits, memory, cgroup, accelerators and files of a host.
void judge_host(const HostFacts& host, Findings& findings);
void judge_devices(const HostFacts& host, Findings& findings);
void judge_disks(const HostFacts& host, Findings& findings);
// What several hosts must have in common: clocks, versions, directories.
void judge_together(const Facts& facts, Findings& findings);
void judge_store(const Facts& facts, Findings& findings);
void judge_links(const Facts& facts, Findings& findings);

// The bandwidth that a measurement found, in megabits a second; 0 if it failed.
[[nodiscard]] double megabits(const LinkFacts& link);

}  // namespace antdt::launcher
