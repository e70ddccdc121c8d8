// The run's checkpoints: RUN/checkpoints/<name>/, each with the model files that a member wrote,
// ledger.json (which records are in the model) and MANIFEST.json (sizes and checksums of all
// files).
//
// A member writes into a directory of its own and syncs it. Only the job daemon completes it and
// gives it its final name, so a checkpoint with a final name is complete. The name contains
// lineage, generation, step and writer, so the directory of a stale process can never replace
// another one.
//
// A value that may be copied: the job daemon uses a copy on a thread (disks.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "core/wire/training_messages.h"
#include "ctl/checkpoints/checkpoint_names.h"
#include "ctl/job/job_machine.h"
#include "shard_server/accounts/accounts.h"

namespace antdt::jobd {

class CheckpointStore {
 public:
  // `keep`: how many of the newest are kept. `progress` is called again and again while the disk
  // answers.
  CheckpointStore(std::string run_dir, std::uint32_t keep, std::function<void()> progress = {});

  // Compares the writer's report with the files, adds the ledger, renames the directory into place,
  // and removes checkpoints beyond `keep` and what older writers left unfinished. Returns the
  // checkpoint's name.
  [[nodiscard]] Result<std::string> store(const ctl::job::StoreCheckpoint& checkpoint);

  struct Newest {
    ctl::job::CheckpointFound found;  // an empty directory: there is no checkpoint
    // One sentence for each newer checkpoint that is damaged.
    std::vector<std::string> problems;
    // One sentence for each newer checkpoint that cannot be read now, and may be whole.
    std::vector<std::string> unreadable;
    [[nodiscard]] bool none() const { return found.directory.empty(); }
  };
  // The newest complete checkpoint: every file has the size and checksum in MANIFEST.json. kIo if
  // they cannot be listed, so that nobody knows whether there is one.
  [[nodiscard]] Result<Newest> newest() const;

  // Removes what was written into this directory, if it is one of an unfinished checkpoint.
  void discard(const std::string& directory) const;
  // The same for all unfinished checkpoints up to this age.
  void remove_unfinished(ctl::copies::Age up_to) const;

  // The accounts in a checkpoint, whose other files are not looked at.
  [[nodiscard]] Result<shard_server::Accounts> accounts_in(const std::string& name) const;

  // The complete checkpoints in the order of lineage and step; kIo if they cannot be listed.
  [[nodiscard]] Result<std::vector<std::string>> list() const;
  // Where checkpoints lie, how much room there is, and how much one takes: for people, after one
  // could not be stored.
  [[nodiscard]] std::string about_room() const;

 private:
  [[nodiscard]] Status check_files(const wire::CheckpointWritten& written) const;
  // kCorrupt if it is damaged, kIo if it cannot be read.
  [[nodiscard]] Result<ctl::job::CheckpointFound> load(const std::string& name) const;
  // `stored`: the name that the stored checkpoint had while it was unfinished.
  void prune(const std::string& stored) const;

  std::string directory_;
  std::uint32_t keep_;
  std::function<void()> progress_;
};

}  // namespace antdt::jobd
