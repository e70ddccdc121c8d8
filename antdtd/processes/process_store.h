// The agent's state directory: what a later agent needs to go on where this one
// stopped. One agent at a time (a lock).
//
//   <state>/lock
//   <state>/jobs/<job>/job                      JobRecord
//   <state>/jobs/<job>/<worker>.<attempt>/...   antdtd/shim/shim_files.h
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "antdtd/shim/process_key.h"
#include "core/os/fs.h"
#include "core/os/user.h"
#include "core/result.h"
#include "core/wire/agent_messages.h"

namespace antdt::antdtd {

// What is remembered of a job itself.
struct JobRecord {
  Incarnation incarnation;  // the highest that attached
  // Whose it is. Without a uid: of the user that the agent runs as (a private agent's
  // job, and what an earlier release wrote, with the name of a key for that of a user).
  std::string user;
  std::optional<std::uint32_t> uid;
  std::optional<std::uint32_t> gid;
  std::string run_dir;               // of a job whose daemon this agent keeps
  std::vector<std::string> command;  // of that daemon; empty: it keeps none
  ANTDT_PART {
    v("incarnation", m.incarnation);
    v("user", m.user);
    v("uid", m.uid);
    v("gid", m.gid);
    v("run_dir", m.run_dir);
    v("command", m.command);
  }
};

class ProcessStore {
 public:
  struct Stored {
    ProcessKey key;
    wire::StartProcess start;
  };

  // Makes the directory: 0700, or, where processes of other users run, one that they may
  // pass through. kRefused if another agent uses it.
  [[nodiscard]] static Result<ProcessStore> open(const std::string& state_dir,
                                                 bool of_many_users = false);

  // Makes the process's directory with its start file, durable, for a process of `owner`.
  // What an earlier process of the same key left there is removed.
  [[nodiscard]] Status create(const ProcessKey& key, const wire::StartProcess& start,
                              const UserIdentity& owner);
  // Where the agent's own files of it are.
  [[nodiscard]] std::string directory(const ProcessKey& key) const;
  // Where its shim's are: the same, or below it if the process is another user's.
  [[nodiscard]] std::string shim_directory(const ProcessKey& key) const;
  void touch_claim(const ProcessKey& key) const;
  void forget(const ProcessKey& key) const;

  [[nodiscard]] Status save_job(const std::string& job, const JobRecord& record) const;
  void forget_job(const std::string& job) const;

  // What an earlier agent left. Directories that cannot be read are skipped and
  // named in the log.
  [[nodiscard]] std::vector<Stored> processes() const;
  [[nodiscard]] std::map<std::string, JobRecord> jobs() const;

 private:
  ProcessStore(std::string root, FileLock lock, bool of_many_users);
  [[nodiscard]] Status create_for(const UserIdentity& owner, const ProcessKey& key) const;
  std::string jobs_dir_;
  FileLock lock_;
  bool of_many_users_;
};

}  // namespace antdt::antdtd
