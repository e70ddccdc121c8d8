// Facts of a launching host and three hosts on which nothing is wrong, for tests that spoil one.
#pragma once

#include <cstdlib>
#include <limits>
#include <string>

#include "launcher/doctor/facts.h"

namespace antdt::launcher {

inline wire::FileHostTold healthy_host() {
  wire::FileHostTold told;
  told.software = "1.2.3";
  told.user = "ada";
  told.clock_synchronized = true;
  told.shm_bytes = 8ULL << 30;
  told.shm_free = 7ULL << 30;
  told.open_files = 65536;
  told.open_files_hard = 65536;
  told.memlock_bytes = std::numeric_limits<std::uint64_t>::max();
  told.huge_pages = "madvise";
  told.cgroup = "/sys/fs/cgroup/system.slice/antdtd.service";
  return told;
}

inline DirectoryFacts healthy_directory(const std::string& identity, bool journal) {
  DirectoryFacts directory{"run directory", "/home/ada/runs", journal, "", {}};
  directory.told.directory = "/home/ada/runs";
  directory.told.identity = identity;
  directory.told.free_bytes = 100ULL << 30;
  directory.told.sync_us = 900;
  directory.told.worst_sync_us = 2000;
  directory.told.bytes_per_second = 400'000'000;
  return directory;
}

// Index 0 is the launching host; 1, 2 and 3 are hosta, hostb and hostc, at 10.0.0.1 to 10.0.0.3.
inline Facts healthy() {
  Facts facts;
  facts.user = "ada";
  facts.ports = "29400-29999";
  facts.copies = 2;
  facts.keys = {{"/k/job.key", true, false, false, 0600, ""},
                {"/k/agents/cluster.pub", false, false, false, 0644, ""}};
  facts.store = {
      {"10.0.0.1:2379", "", 900}, {"10.0.0.2:2379", "", 800}, {"10.0.0.3:2379", "", 700}};
  HostFacts here;
  here.name = "this host";
  here.here = true;
  here.told = healthy_host();
  here.directories = {healthy_directory("own", true)};
  facts.hosts.push_back(here);
  for (const std::string number : {"1", "2", "3"}) {
    HostFacts host;
    host.name = "10.0.0." + number + ":7700";
    host.reach.addresses = {"10.0.0." + number};
    host.reach.resolve_us = 300;
    host.welcome.emplace();
    host.welcome->host = std::string("host") + "xabc"[number[0] - '0'];
    host.welcome->user = "ada";
    host.welcome->address = "10.0.0." + number;
    host.told = healthy_host();
    host.clock = ClockFacts{1500, 400};
    host.directories = {healthy_directory("of-" + number, false)};
    facts.hosts.push_back(host);
  }
  for (std::size_t from = 1; from <= 3; ++from) {
    for (std::size_t to = 1; to <= 3; ++to) {
      if (from == to) continue;
      LinkFacts link;
      link.from = from;
      link.to = to;
      link.told = {200, 450'000'000, 400'000};  // 9 Gbit/s
      facts.links.push_back(link);
    }
  }
  return facts;
}

inline LinkFacts& link_of(Facts& facts, std::size_t from, std::size_t to) {
  for (LinkFacts& link : facts.links) {
    if (link.from == from && link.to == to) return link;
  }
  std::abort();
}

}  // namespace antdt::launcher
