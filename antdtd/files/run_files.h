// The files of one run directory that others may request: the names in checkpoints/, their files,
// and logs. No path of a request reaches the file system as a whole: it is split, and each part is
// opened below the previous one without following a link.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/os/owned_fd.h"
#include "core/result.h"
#include "core/running_sum.h"
#include "core/wire/file_messages.h"

namespace antdt::antdtd {

class RunFiles {
 public:
  // A missing directory counts as empty. Writing makes it, and checkpoints/ in it, for the owner
  // alone; reading makes nothing.
  [[nodiscard]] static Result<RunFiles> open(const std::string& run_dir);

  // kUsage if the directory belongs to another job's run: then nothing may be written or removed
  // there (core/checkpoint/run_owner.h).
  [[nodiscard]] Status check_is_of(const std::string& job) const;

  // Takes the directory for `job`; kUsage if it belongs to another one's run.
  [[nodiscard]] Result<wire::FileProbed> probe(const wire::FileProbe& request,
                                               const std::string& job);
  [[nodiscard]] Result<wire::FileListed> list() const;
  [[nodiscard]] Result<wire::FileData> read(const wire::FileRead& request) const;
  [[nodiscard]] Status write(const wire::FileWrite& request);
  [[nodiscard]] Result<wire::FileSummed> sum(const wire::FileSum& request);
  [[nodiscard]] Status commit(const wire::FileCommit& request);
  [[nodiscard]] Status remove(const wire::FileRemove& request);

 private:
  // What was written to a file, in order from its beginning, and its checksum, so that a commit
  // need not read it again.
  struct Written {
    std::string path;
    RunningSum sum;
  };
  explicit RunFiles(std::string run_dir) : run_dir_(std::move(run_dir)) {}
  [[nodiscard]] Status make();
  [[nodiscard]] Result<OwnedFd> open_root() const;
  [[nodiscard]] Result<OwnedFd> open_folder(std::string_view folder) const;
  [[nodiscard]] Result<OwnedFd> open_checkpoint(const std::string& name, bool make) const;
  [[nodiscard]] Result<OwnedFd> open_file(const std::string& path, int flags, bool make) const;
  [[nodiscard]] RunningSum* written(const std::string& path);
  void remember(const std::string& path, RunningSum sum);
  void forget(std::string_view below);
  // Whether a checkpoint is there and has exactly these files' content.
  [[nodiscard]] bool has(const std::string& checkpoint,
                         const std::vector<wire::CheckpointFile>& files) const;
  [[nodiscard]] Status check_file(int directory, const std::string& from,
                                  const wire::CheckpointFile& said);

  std::string run_dir_;
  std::list<Written> written_;  // the newest first; only a few
};

}  // namespace antdt::antdtd
