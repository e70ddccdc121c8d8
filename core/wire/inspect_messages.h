// What `antdt doctor` asks a host before a job fails there: between the launcher and the file
// service of that host's agent, which runs with the rights of the user (antdtd/inspect). The
// connection is that of core/wire/file_messages.h, and an older host answers Refused.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/wire/message.h"

namespace antdt::wire {

// The most files in a FileHost; a longer list is refused.
inline constexpr std::size_t kMostFilesAsked = 1000;
// The most that one FileLink may order.
inline constexpr std::uint32_t kMostLinkMs = 2000;
inline constexpr std::uint64_t kMostLinkBytes = 4ULL << 30;
// A secret of a FilePort: the first half proves the one that connects, the second the one that
// listens.
inline constexpr std::size_t kPortSecretBytes = 64;

// What is this host? Costs no measurable time.
struct FileHost {
  std::vector<std::string> files;  // absolute paths that the job reads or executes
  ANTDT_MESSAGE("file-host") { v("files", m.files); }
};
struct FileFact {
  std::string path;
  std::uint64_t bytes = 0;
  std::string error;  // why it cannot be read; "": it can
  ANTDT_PART {
    v("path", m.path);
    v("bytes", m.bytes);
    v("error", m.error);
  }
};
// Limits are those that the agent's processes get. The largest number stands for "unlimited".
struct FileHostTold {
  std::string software;         // the version of the programs that are installed
  bool agent_replaced = false;  // the agent still runs a program that was replaced since
  std::string user;             // as whom processes run here
  bool clock_synchronized = false;
  std::uint64_t shm_bytes = 0;  // /dev/shm: its size, and what is free; 0: there is none
  std::uint64_t shm_free = 0;
  std::uint64_t open_files = 0;
  std::uint64_t open_files_hard = 0;
  std::uint64_t memlock_bytes = 0;
  bool infiniband = false;   // there is a device for which memory must be locked
  std::string huge_pages;    // "always", "madvise", "never"; "": unknown
  std::string cgroup;        // the cgroup below which workers get theirs; "": none
  std::string cgroup_error;  // why there is none
  std::uint32_t devices = 0;
  std::string driver;        // the version of the NVIDIA driver; "": not found
  std::string nccl;          // the file of the NCCL library; "": not found
  std::string nccl_version;  // as far as names of files say it; "": unknown
  std::string cudart;        // the same of the CUDA runtime
  std::string cudart_version;
  std::vector<FileFact> files;
  ANTDT_MESSAGE("file-host-told") {
    v("software", m.software);
    v("agent_replaced", m.agent_replaced);
    v("user", m.user);
    v("clock_synchronized", m.clock_synchronized);
    v("shm_bytes", m.shm_bytes);
    v("shm_free", m.shm_free);
    v("open_files", m.open_files);
    v("open_files_hard", m.open_files_hard);
    v("memlock_bytes", m.memlock_bytes);
    v("infiniband", m.infiniband);
    v("huge_pages", m.huge_pages);
    v("cgroup", m.cgroup);
    v("cgroup_error", m.cgroup_error);
    v("devices", m.devices);
    v("driver", m.driver);
    v("nccl", m.nccl);
    v("nccl_version", m.nccl_version);
    v("cudart", m.cudart);
    v("cudart_version", m.cudart_version);
    v("files", m.files);
  }
};

// What time is it there? Wall clock, since 1970.
struct FileClock {
  ANTDT_MESSAGE("file-clock") {}
};
struct FileClockTold {
  std::int64_t unix_us = 0;
  ANTDT_MESSAGE("file-clock-told") { v("unix_us", m.unix_us); }
};

// How is the disk of the run directory that this connection was attached with? If it is missing,
// the nearest existing directory above it is looked at, where a run would make it; no other
// directory can be named. `probe` is the name of a link that the first host makes there with a
// random identity in it, so hosts with the same answer share the directory; "": not asked.
struct FileDisk {
  std::string probe;
  bool measure = false;  // writes and syncs a file of at most 32 MiB, and removes it
  ANTDT_MESSAGE("file-disk") {
    v("probe", m.probe);
    v("measure", m.measure);
  }
};
struct FileDiskTold {
  std::string directory;   // that was looked at
  std::string error;       // why nothing can be written there; "": it can
  std::string filesystem;  // the kind of a network filesystem; "": a local one
  std::string identity;
  std::uint64_t free_bytes = 0;
  std::uint32_t sync_us = 0;  // a write of 4 KiB with its fsync: median, worst; 0: not measured
  std::uint32_t worst_sync_us = 0;
  std::uint64_t bytes_per_second = 0;  // of a large file, with its fsync; 0: not measured
  ANTDT_MESSAGE("file-disk-told") {
    v("directory", m.directory);
    v("error", m.error);
    v("filesystem", m.filesystem);
    v("identity", m.identity);
    v("free_bytes", m.free_bytes);
    v("sync_us", m.sync_us);
    v("worst_sync_us", m.worst_sync_us);
    v("bytes_per_second", m.bytes_per_second);
  }
};

// Listen on a tcp port for one peer that proves that it knows the secret. The port is closed after
// some seconds.
struct FilePort {
  std::string address;  // of this host, as others reach it
  std::string ports;    // "29400-29999"; "": any
  std::string secret;   // kPortSecretBytes bytes
  ANTDT_MESSAGE("file-port") {
    v("address", m.address);
    v("ports", m.ports);
    v("secret", m.secret);
  }
};
struct FilePortOpen {
  std::uint32_t port = 0;
  ANTDT_MESSAGE("file-port-open") { v("port", m.port); }
};

// Connect to another host's FilePort, and measure the link.
struct FileLink {
  std::string address;  // "10.0.0.2:29400"
  std::string secret;
  std::uint32_t send_ms = 0;     // sends for this long
  std::uint64_t most_bytes = 0;  // and no more than this
  ANTDT_MESSAGE("file-link") {
    v("address", m.address);
    v("secret", m.secret);
    v("send_ms", m.send_ms);
    v("most_bytes", m.most_bytes);
  }
};
struct FileLinkTold {
  std::uint32_t round_trip_us = 0;  // the median of some messages of one byte
  std::uint64_t bytes = 0;          // that arrived
  std::uint64_t took_us = 0;        // until the last of them was acknowledged
  ANTDT_MESSAGE("file-link-told") {
    v("round_trip_us", m.round_trip_us);
    v("bytes", m.bytes);
    v("took_us", m.took_us);
  }
};

}  // namespace antdt::wire
