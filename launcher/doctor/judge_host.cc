#include <fmt/format.h>

#include <cerrno>
#include <limits>
#include <system_error>

#include "core/accelerator/versions.h"
#include "launcher/doctor/judge.h"

namespace antdt::launcher {
namespace {

constexpr std::uint64_t kMiB = 1ULL << 20;
constexpr std::uint64_t kGiB = 1ULL << 30;
constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kFewFiles = 256;
constexpr std::uint64_t kEnoughFiles = 1024;
constexpr std::uint64_t kNoShm = kMiB;
constexpr std::uint64_t kEnoughShm = 256 * kMiB;  // a container has 64 MiB if nobody asked for more
constexpr std::uint64_t kLittleSpace = 64 * kMiB;
constexpr std::uint64_t kEnoughSpace = kGiB;
constexpr std::uint32_t kSlowSyncUs = 50'000;
constexpr std::uint64_t kSlowDisk = 50'000'000;  // bytes a second

std::string bytes_text(std::uint64_t bytes) {
  if (bytes == kUnlimited) return "unlimited";
  if (bytes >= kGiB) {
    return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / static_cast<double>(kGiB));
  }
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / static_cast<double>(kMiB));
}

std::string count_text(std::uint64_t count) {
  return count == kUnlimited ? "unlimited" : fmt::to_string(count);
}

Finding shared_memory(const wire::FileHostTold& told) {
  Finding finding{Level::kOk,
                  "",
                  "shared memory",
                  "/dev/shm",
                  told.shm_bytes == 0 ? std::string("there is none")
                                      : fmt::format("{} of {} are free", bytes_text(told.shm_free),
                                                    bytes_text(told.shm_bytes)),
                  "processes that load data (PyTorch's DataLoader) and NCCL hand data over in it, "
                  "and die with SIGBUS where it is full",
                  ""};
  if (told.shm_free >= kEnoughShm) return finding;
  finding.level = told.shm_free < kNoShm ? Level::kError : Level::kWarning;
  finding.advice =
      told.shm_bytes < kEnoughShm
          ? "make it larger: mount -o remount,size=8G /dev/shm; a container needs --shm-size or "
            "--ipc=host"
          : "remove what earlier programs left in /dev/shm: ls -l /dev/shm";
  return finding;
}

Finding open_files(const wire::FileHostTold& told) {
  Finding finding{
      Level::kOk,
      "",
      "open files",
      "the limit of open files of the agent's processes (ulimit -n)",
      fmt::format("{}, at most {}", count_text(told.open_files), count_text(told.open_files_hard)),
      "each connection, data file and log is one; a program that gets no more fails "
      "with \"Too many open files\"",
      ""};
  if (told.open_files >= kEnoughFiles) return finding;
  finding.level = told.open_files < kFewFiles ? Level::kError : Level::kWarning;
  finding.advice =
      "raise it: LimitNOFILE=65536 in the unit of antdtd, or nofile in /etc/security/limits.conf";
  return finding;
}

// Only devices that read memory by themselves need it locked.
Finding locked_memory(const wire::FileHostTold& told) {
  Finding finding{Level::kOk,
                  "",
                  "locked memory",
                  "the limit of locked memory (ulimit -l)",
                  bytes_text(told.memlock_bytes) +
                      (told.infiniband ? "; there is InfiniBand" : "; there is no InfiniBand"),
                  "NCCL over InfiniBand locks its buffers, and fails where it may not",
                  ""};
  if (!told.infiniband || told.memlock_bytes == kUnlimited) return finding;
  finding.level = told.memlock_bytes < kGiB ? Level::kError : Level::kWarning;
  finding.advice =
      "LimitMEMLOCK=infinity in the unit of antdtd, or memlock in /etc/security/limits.conf";
  return finding;
}

Finding huge_pages_of(const wire::FileHostTold& told) {
  const bool never = told.huge_pages == "never";
  return {never ? Level::kNote : Level::kOk,
          "",
          "huge pages",
          "/sys/kernel/mm/transparent_hugepage/enabled",
          told.huge_pages.empty() ? "unknown" : told.huge_pages,
          "a parameter server stands still while it is copied for a checkpoint: 25 to 60 ms for "
          "each GB in small pages, below 1 ms in huge ones",
          never ? "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled" : ""};
}

Finding cgroup_of(const wire::FileHostTold& told) {
  const bool none = told.cgroup.empty();
  return {none ? Level::kNote : Level::kOk,
          "",
          "cgroup",
          "the cgroup in which workers get cgroups of their own",
          none ? "none: " + told.cgroup_error : told.cgroup,
          "without it a worker's memory is not bounded, and one that takes too much may cost "
          "others their lives",
          none ? "start antdtd by its systemd unit (Delegate=yes), or give it --cgroup" : ""};
}

Finding clock_service(const wire::FileHostTold& told) {
  return {told.clock_synchronized ? Level::kOk : Level::kNote,
          "",
          "clock service",
          "whether the kernel's clock is synchronized",
          told.clock_synchronized ? "it is" : "it is not",
          "logs of several hosts are read side by side by their times; the job itself does not "
          "depend on them",
          told.clock_synchronized ? "" : "start chronyd, ntpd or systemd-timesyncd"};
}

std::string library_text(const std::string& path, const std::string& version) {
  if (path.empty()) return "not found";
  return fmt::format("{} ({})", path, version.empty() ? "of unknown version" : version);
}

std::string packages_for(const std::string& cudart) {
  const auto is_of = [&](const char* release) { return cudart.find(release) != std::string::npos; };
  if (is_of(".so.13")) return "the packages nvidia-nccl-cu13 and nvidia-cuda-runtime";
  if (is_of(".so.12")) return "the packages nvidia-nccl-cu12 and nvidia-cuda-runtime-cu12";
  return fmt::format("the packages of the CUDA of your programs ({}; {})", accelerator::kNcclWheels,
                     accelerator::kCudaRuntimeWheels);
}

Finding accelerators_of(const wire::FileHostTold& told) {
  Finding finding{
      Level::kOk,
      "",
      "accelerators",
      "/dev/nvidia*, the driver, and the libraries of NCCL and of the CUDA runtime in the system's "
      "directories and in Python's",
      fmt::format("{} devices, driver {}, NCCL {}, CUDA runtime {}", told.devices,
                  told.driver.empty() ? "not found" : told.driver,
                  library_text(told.nccl, told.nccl_version),
                  library_text(told.cudart, told.cudart_version)),
      "programs for GPUs need a driver that matches them; PyTorch brings an NCCL of its own",
      ""};
  if (told.devices == 0) return finding;
  if (told.driver.empty()) {
    finding.level = Level::kWarning;
    finding.advice = "load the driver: nvidia-smi says what is wrong";
    return finding;
  }
  const int version = accelerator::version_code(told.nccl_version);
  const bool is_known = version != 0 && accelerator::check_version(version);
  if (told.nccl.empty() || told.cudart.empty() || (version != 0 && !is_known)) {
    finding.level = Level::kNote;
    finding.why = fmt::format(
        "C++ engines sum tensors of devices by NCCL if trainer.collective is \"nccl\", and do not "
        "begin without; {} are known to work. Other jobs need no NCCL but PyTorch's own",
        accelerator::kVersionsText);
    finding.advice = fmt::format(
        "for such jobs install {}, or name the files in ANTDT_NCCL_LIBRARY and "
        "ANTDT_CUDART_LIBRARY (roles.worker.env in job.toml)",
        packages_for(told.cudart));
  }
  return finding;
}

Finding programs_of(const wire::FileHostTold& told) {
  return {told.agent_replaced ? Level::kNote : Level::kOk,
          "",
          "programs",
          "the version of the programs that are installed",
          told.software + (told.agent_replaced ? "; the agent still runs a replaced program" : ""),
          "the agent knows what it knew when it began",
          told.agent_replaced ? "restart antdtd: its jobs go on" : ""};
}

void judge_files(const HostFacts& host, Findings& findings) {
  std::size_t readable = 0;
  for (const wire::FileFact& file : host.told->files) {
    if (file.error.empty()) {
      ++readable;
      continue;
    }
    findings.push_back({Level::kError, label(host), "files", file.path, file.error,
                        "job.toml names it, and workers on this host would read or execute it",
                        "copy or mount it there under the same path, readable for the job's user"});
  }
  if (readable == 0) return;
  findings.push_back({Level::kOk, label(host), "files", "files that job.toml names",
                      fmt::format("{} can be read", readable), "workers read or execute them", ""});
}

std::string disk_text(const wire::FileDiskTold& told) {
  std::string text = fmt::format("{} free{}", bytes_text(told.free_bytes),
                                 told.filesystem.empty() ? "" : ", on " + told.filesystem);
  if (told.sync_us > 0) {
    text += fmt::format("; a write of 4 KiB and its fsync take {:.1f} ms (worst {:.1f} ms)",
                        told.sync_us / 1e3, told.worst_sync_us / 1e3);
  }
  if (told.bytes_per_second > 0) {
    text += fmt::format("; a large file {:.0f} MB/s with its fsync",
                        static_cast<double>(told.bytes_per_second) / 1e6);
  }
  return text;
}

// Whether what was written found no room. Where nothing can be written for another reason, as on a
// read-only image, there is no free space either.
bool found_no_room(const wire::FileDiskTold& told) {
  const auto says = [&](int error) {
    return told.error.find(std::generic_category().message(error)) != std::string::npos;
  };
  return says(ENOSPC) || says(EDQUOT);
}

Finding disk_of(const DirectoryFacts& directory) {
  const wire::FileDiskTold& told = directory.told;
  const bool as_it_is = told.directory.empty() || told.directory == directory.path;
  Finding finding{
      Level::kOk,
      "",
      "disk",
      fmt::format("the {} {}{}", directory.purpose, directory.path,
                  as_it_is ? "" : fmt::format(", which would be made in {}", told.directory)),
      disk_text(told),
      directory.journal ? "the journal is written there once for each turn of the job daemon, and "
                          "checkpoints and logs"
                        : "checkpoints and logs are written there",
      ""};
  const bool slow_sync = told.sync_us > kSlowSyncUs;
  const bool slow_file = told.bytes_per_second > 0 && told.bytes_per_second < kSlowDisk;
  if (found_no_room(told)) {
    finding.level = Level::kError;
    finding.found = fmt::format("{}; {}", told.error, finding.found);
    finding.why = "a full disk holds the job up until there is room";
    finding.advice = "make room, or choose another directory (antdt run --run-dir)";
  } else if (!directory.not_told.empty() || !told.error.empty()) {
    finding.level = Level::kError;
    finding.found = directory.not_told.empty() ? told.error : directory.not_told;
    finding.advice =
        "choose a directory in which your user may write on a disk that answers (antdt run "
        "--run-dir)";
  } else if (told.free_bytes < kLittleSpace) {
    finding.level = Level::kError;
    finding.why = "a full disk holds the job up until there is room";
    finding.advice = "make room, or choose another directory (antdt run --run-dir)";
  } else if (directory.journal && !told.filesystem.empty()) {
    finding.level = Level::kWarning;
    finding.why =
        "the journal's locks cannot be trusted on a network filesystem, so antdt run "
        "refuses to keep it there";
    finding.advice = "give antdt run a --state-dir on a local disk";
  } else if (told.free_bytes < kEnoughSpace) {
    finding.level = Level::kWarning;
    finding.why = "a full disk holds the job up until there is room";
    finding.advice = "make room: checkpoint.keep of the newest checkpoints are kept";
  } else if (slow_sync || slow_file) {
    finding.level = Level::kWarning;
    finding.why += slow_file           ? "; one of 1 GiB would take longer than 20 s"
                   : directory.journal ? "; each answer to a worker that needs records waits for it"
                                       : "; each part of a checkpoint waits for the disk";
    finding.advice =
        "choose a faster disk: antdt run --state-dir for the journal, --run-dir for "
        "checkpoints";
  }
  return finding;
}

}  // namespace

void judge_host(const HostFacts& host, Findings& findings) {
  if (!host.told) return;
  const wire::FileHostTold& told = *host.told;
  for (Finding finding :
       {programs_of(told), shared_memory(told), open_files(told), locked_memory(told),
        huge_pages_of(told), cgroup_of(told), clock_service(told), accelerators_of(told)}) {
    finding.subject = label(host);
    findings.push_back(std::move(finding));
  }
  judge_files(host, findings);
}

void judge_disks(const HostFacts& host, Findings& findings) {
  for (const DirectoryFacts& directory : host.directories) {
    Finding finding = disk_of(directory);
    finding.subject = label(host);
    findings.push_back(std::move(finding));
  }
}

}  // namespace antdt::launcher
