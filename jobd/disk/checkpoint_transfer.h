// Copies complete checkpoints between this host and another one, over a connection to that host's
// file service.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ctl/checkpoints/checkpoint_copies.h"
#include "jobd/disk/host_files.h"

namespace antdt::jobd {

// What the file service of one host reports about the run.
struct HostLook {
  std::string identity;            // identity of the directory
  std::vector<std::string> whole;  // complete checkpoints
};
[[nodiscard]] Result<HostLook> look_at(HostFiles& host, const std::string& probe);

// Fetches files of an unfinished checkpoint into one of the same name on this host.
[[nodiscard]] Status fetch_unfinished(HostFiles& host, const std::string& run_dir,
                                      const std::string& unfinished,
                                      const std::vector<wire::CheckpointFile>& files);
// Copies a checkpoint of this host with its manifest, unless the other host has exactly that one.
// When this returns, it has it, and a bad one of that name there was replaced.
[[nodiscard]] Status push_checkpoint(HostFiles& host, const std::string& run_dir,
                                     const std::string& name, const std::string& unfinished);
// Copies a complete checkpoint from the other host. When this returns, this host has it. A damaged
// one of that name on this host is replaced.
[[nodiscard]] Status fetch_checkpoint(HostFiles& host, const std::string& run_dir,
                                      const std::string& name);
// Removes from the other host unfinished checkpoints up to `up_to`, and, if `keep` is there, all
// whole ones but these.
[[nodiscard]] Status clean_checkpoints(HostFiles& host,
                                       const std::optional<std::vector<std::string>>& keep,
                                       ctl::copies::Age up_to);

}  // namespace antdt::jobd
