// Whole checkpoints between this host and another one, over a connection to its file service.
#pragma once

#include <string>
#include <vector>

#include "ctl/checkpoints/checkpoint_copies.h"
#include "jobd/disk/host_files.h"

namespace antdt::jobd {

// What one file service knows of the run.
struct HostLook {
  std::string identity;            // of the directory
  std::vector<std::string> whole;  // checkpoints
};
[[nodiscard]] Result<HostLook> look_at(HostFiles& host, const std::string& probe);

// Files of an unfinished checkpoint into one of the same name here.
[[nodiscard]] Status fetch_unfinished(HostFiles& host, const std::string& run_dir,
                                      const std::string& unfinished,
                                      const std::vector<wire::CheckpointFile>& files);
// A checkpoint of this host, manifest and all; the other host has it when this returns.
[[nodiscard]] Status push_checkpoint(HostFiles& host, const std::string& run_dir,
                                     const std::string& name, const std::string& unfinished);
// A whole checkpoint of the other host, which this host has when this returns. One of that
// name that lies here, and is damaged, is replaced.
[[nodiscard]] Status fetch_checkpoint(HostFiles& host, const std::string& run_dir,
                                      const std::string& name);
// Removes there all checkpoints but these, and what is unfinished and not younger than `up_to`.
[[nodiscard]] Status clean_checkpoints(HostFiles& host, const std::vector<std::string>& keep,
                                       ctl::copies::Age up_to);

}  // namespace antdt::jobd
