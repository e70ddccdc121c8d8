// The agent's state directory: what a later agent needs in order to go on. A lock allows one agent
// at a time.
//
//   <state>/lock
//   <state>/drain                               wire::Drain, while the host is drained
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

// What is stored of a job.
struct JobRecord {
  Incarnation incarnation;  // the highest that attached
  // The job's user. Without a uid it is the user as whom the agent runs (a private agent's job, or
  // a record of an earlier release, which has a key's name instead of a user's).
  std::string user;
  std::optional<std::uint32_t> uid;
  std::optional<std::uint32_t> gid;
  std::string run_dir;               // if this agent keeps the job's daemon
  std::vector<std::string> command;  // of that daemon; empty: the agent keeps none
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

  // Makes the directory with mode 0700 or, if processes of other users run, one through which they
  // may pass. kRefused if another agent uses it.
  [[nodiscard]] static Result<ProcessStore> open(const std::string& state_dir,
                                                 bool of_many_users = false);

  // Makes the directory of a process of `owner` with its start file, durably. What an earlier
  // process of the same key left there is removed first; kObstructed if it cannot be.
  [[nodiscard]] Status create(const ProcessKey& key, const wire::StartProcess& start,
                              const UserIdentity& owner);
  // The directory with the agent's own files of the process.
  [[nodiscard]] std::string directory(const ProcessKey& key) const;
  // The directory with its shim's files: the same one, or a subdirectory if the process is another
  // user's.
  [[nodiscard]] std::string shim_directory(const ProcessKey& key) const;
  void touch_claim(const ProcessKey& key) const;
  void forget(const ProcessKey& key) const;

  [[nodiscard]] Status save_job(const std::string& job, const JobRecord& record) const;
  void forget_job(const std::string& job) const;

  // Who drains the host; empty: nobody. A file that cannot be read counts as a drain.
  [[nodiscard]] std::optional<wire::Drain> drain() const;
  // Durable when it returns.
  [[nodiscard]] Status save_drain(const std::optional<wire::Drain>& drain) const;

  // What an earlier agent left. Directories that cannot be read are skipped and named in the log.
  [[nodiscard]] std::vector<Stored> processes() const;
  [[nodiscard]] std::map<std::string, JobRecord> jobs() const;

 private:
  ProcessStore(std::string root, FileLock lock, bool of_many_users);
  [[nodiscard]] Status create_for(const UserIdentity& owner, const ProcessKey& key) const;
  std::string state_dir_;
  std::string jobs_dir_;
  FileLock lock_;
  bool of_many_users_;
};

}  // namespace antdt::antdtd
