// Where a run's journal is: in the file state.db, or in etcd if the job has cluster.store.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/os/fs.h"
#include "core/result.h"
#include "core/schema/etcd_address.h"
#include "launcher/config/job_config.h"
#include "shard_server/accounts/accounts.h"
#include "shard_server/journal/journal.h"

namespace antdt::jobd {

// cluster.store and the keys beside it; none if the job has no store.
[[nodiscard]] std::optional<EtcdAddress> etcd_of(const launcher::ClusterSection& cluster);

class RunJournal {
 public:
  RunJournal(const launcher::JobConfig& config, std::string run_dir, const std::string& state_dir);
  // The same, for a run whose files say where its journal is. kUsage if it is no run's directory.
  [[nodiscard]] static Result<RunJournal> of_run(const std::string& run_dir);

  // Whether etcd answers, and lets this job in; always, for a file. kUnreachable, kUsage.
  [[nodiscard]] Status check() const;
  // Begins an incarnation: `first` if the journal is new. `lock` is the run's, which the caller
  // holds: so an earlier job daemon of this run on this host has ended, and its lease need not be
  // waited for. `is_standby`: another host's lease is not waited for either (kAborted).
  [[nodiscard]] Result<std::unique_ptr<shard_server::JournalStore>> open(Incarnation first,
                                                                         const FileLock& lock,
                                                                         bool is_standby) const;
  // Reads it without writing. The job may be running.
  [[nodiscard]] Result<shard_server::JournalContent> read() const;
  // The accounts in it.
  [[nodiscard]] Result<shard_server::Accounts> accounts() const;
  // Whether there may be one: false if its file does not exist.
  [[nodiscard]] bool may_exist() const;
  // Keeps it under another name, so that the next open() begins a new one. Returns the name; "" if
  // this host has no such file, as after a run on another host with a state directory of its own.
  [[nodiscard]] Result<std::string> put_aside() const;

  // A file of the run that its job daemon kept for other hosts (jobd/standby/run_files.h). kUsage,
  // kUnreachable, kCorrupt; kUsage for an empty one, too.
  [[nodiscard]] Result<std::string> kept_file(const std::string& name) const;
  [[nodiscard]] bool is_in_etcd() const { return etcd_.has_value(); }

  // "RUN/state.db" or "journal of job X in etcd (h1:2379)".
  [[nodiscard]] std::string name() const;
  // "the filesystem of RUN" or "etcd (h1:2379)": who has to answer.
  [[nodiscard]] std::string place() const;
  // The name of the journal in etcd.
  [[nodiscard]] std::string name_in_etcd() const;
  // Who holds it in etcd, if that is no job daemon of this run directory on this host: "host h1,
  // process 17". Empty for nobody, a file, or an etcd that does not answer.
  [[nodiscard]] std::string holder_elsewhere() const;

 private:
  [[nodiscard]] std::string file() const { return state_dir_ + "/state.db"; }
  // RUN/etcd-journal: under which name etcd has the journal, if that is not the job's id.
  [[nodiscard]] std::string name_file() const { return run_dir_ + "/etcd-journal"; }

  std::string run_dir_, state_dir_, job_;
  std::string keys_;  // cluster.keys
  std::optional<EtcdAddress> etcd_;
  std::chrono::seconds lease_{};
};

}  // namespace antdt::jobd
