// The run's checkpoints: RUN/checkpoints/<name>/, each with the model files
// that a member wrote, ledger.json (where the data stood) and MANIFEST.json
// (sizes and checksums of all of it).
//
// A member writes into a directory of its own and syncs it; only the job
// daemon completes it and renames it to its name, so what has a name is whole.
// The name carries lineage, generation, step and who wrote it: a zombie's
// directory can never take the place of another.
//
// A value that may be copied: the job daemon uses a copy on a thread (disks.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "core/wire/training_messages.h"
#include "ctl/job/job_machine.h"

namespace antdt::jobd {

class CheckpointStore {
 public:
  // `keep`: how many of the newest stay. `progress` is called again and again while the disk
  // answers.
  CheckpointStore(std::string run_dir, std::uint32_t keep, std::function<void()> progress = {});

  // Checks what the writer says against the files, adds the ledger, renames it
  // into place, and removes what is older than `keep`, and what older writers
  // left unfinished. Returns its name.
  [[nodiscard]] Result<std::string> store(const ctl::job::StoreCheckpoint& checkpoint);

  struct Newest {
    ctl::job::CheckpointFound found;    // an empty directory: there is none
    std::vector<std::string> problems;  // of newer ones that are damaged, a sentence each
    [[nodiscard]] bool none() const { return found.directory.empty(); }
  };
  // The newest whole one: every file has the size and checksum of MANIFEST.json.
  [[nodiscard]] Newest newest() const;

  // By rising lineage and step; those that are complete.
  [[nodiscard]] std::vector<std::string> list() const;
  // Where checkpoints lie, how much room there is, and how much one takes: for
  // people, when one could not be kept.
  [[nodiscard]] std::string about_room() const;

 private:
  [[nodiscard]] Status check_files(const wire::CheckpointWritten& written) const;
  [[nodiscard]] Result<ctl::job::CheckpointFound> load(const std::string& name) const;
  // `stored`: the name of what was stored, when it was unfinished.
  void prune(const std::string& stored) const;

  std::string directory_;
  std::uint32_t keep_;
  std::function<void()> progress_;
};

}  // namespace antdt::jobd
