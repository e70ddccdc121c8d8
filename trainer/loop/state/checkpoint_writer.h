// Writes checkpoints of a member's state while the member goes on training.
//
//   idle --begin()--> writing --the child is done, fails, stands still, give_up()--> idle
//
// The state is copied by forking a child process (state_child.h); the training thread waits only
// for the fork. A second thread follows the child's progress, reports it with the member's reports,
// and in the end reports what was written, or why it failed. There is one checkpoint at a time. If
// it makes no progress for `patience` it is given up, which costs the checkpoint and not the
// member.
//
// A child that was killed during a call to a disk that does not answer ends when the disk answers.
// Until then there is no second child.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "core/clock.h"
#include "core/ids.h"
#include "core/result.h"
#include "core/wire/training_messages.h"
#include "trainer/client/client.h"
#include "trainer/loop/engine.h"
#include "trainer/loop/state/state_child.h"

namespace antdt::trainer {

class CheckpointWriter {
 public:
  // Called once for each begin(), on the second thread or, if there is no child, before begin()
  // returns. Its argument has directory, files and error filled in.
  using Done = std::function<void(wire::CheckpointWritten)>;

  CheckpointWriter(client::Client& client, Duration patience)
      : client_(client), patience_(patience) {}
  ~CheckpointWriter() { give_up("the worker ends"); }
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  [[nodiscard]] bool busy() const { return busy_; }
  // Writes into RUN_DIR/checkpoints/.tmp-<step>-g<generation>-<worker>.<attempt>, a directory of
  // this member alone: a stale member that does not know yet that it was replaced writes beside its
  // successor, and the generation identifies what is left of training that was given up. If servers
  // write beside it, `about` names the directory. Must not be called while it is busy.
  void begin(const Engine& engine, wire::CheckpointWritten about, Done done);
  // A directory for `about` that no other checkpoint of the same step has.
  [[nodiscard]] std::string directory_apart(const wire::CheckpointWritten& about) const;
  // Ends the present write, if any, and reports it with this reason. When this returns, everything
  // has been reported.
  void give_up(const std::string& reason);

 private:
  struct Writing {
    wire::CheckpointWritten about;
    std::vector<StateFile> files;  // names and sizes; the memory of their contents may have changed
    std::uint64_t total_bytes = 0;
    StateChild child;
    Done done;
  };
  [[nodiscard]] std::string directory_of(const wire::CheckpointWritten& about) const;
  void watch(Writing writing);
  [[nodiscard]] Status follow(Writing& writing);
  [[nodiscard]] Status take(const ChildReport& report, Writing& writing, bool& over);
  [[nodiscard]] Error stands_still(const Writing& writing, std::uint64_t done_bytes) const;
  void say(const Writing& writing, std::uint64_t done_bytes);
  void reap(pid_t child);
  [[nodiscard]] bool killed_one_ended();

  client::Client& client_;
  const Duration patience_;
  std::atomic<bool> busy_ = false;
  std::atomic<bool> given_up_ = false;
  std::string reason_;             // why it was given up; written before given_up_
  std::thread thread_;             // of the present checkpoint, or the last one
  std::atomic<pid_t> killed_ = 0;  // a killed child that has not ended; 0: none
};

}  // namespace antdt::trainer
