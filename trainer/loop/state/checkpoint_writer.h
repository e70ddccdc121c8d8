// Writes checkpoints of a member's state while the member trains on.
//
//   idle --begin()--> writing --the child is done, fails, stands still, give_up()--> idle
//
// The state is copied by making a child process of this one (state_child.h), which the training
// thread waits for no longer than that takes; a thread beside hears how far the child is, says so
// with the member's reports, and in the end what was written, or why not. One checkpoint at a
// time. What stands still for `patience` is given up: it costs the checkpoint, not the member.
//
// A child that was killed in a call to a disk that does not answer ends when the disk answers.
// Until then there is no second one.
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
  // Called once for each begin(), on the thread beside or, where there is no child, before
  // begin() returns. What it is given has directory, files and error filled in.
  using Done = std::function<void(wire::CheckpointWritten)>;

  CheckpointWriter(client::Client& client, Duration patience)
      : client_(client), patience_(patience) {}
  ~CheckpointWriter() { give_up("the worker ends"); }
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  [[nodiscard]] bool busy() const { return busy_; }
  // Into RUN_DIR/checkpoints/.tmp-<step>-g<generation>-<worker>.<attempt>, a directory of this
  // member's own: one that was replaced and does not know it yet writes beside its successor, and
  // the generation tells what is left of training that was given up. Not while it is busy.
  void begin(const Engine& engine, wire::CheckpointWritten about, Done done);
  // Ends what is written, if anything, and says so with this reason. When it returns all is said.
  void give_up(const std::string& reason);

 private:
  struct Writing {
    wire::CheckpointWritten about;
    std::vector<StateFile> files;  // names and sizes; what they lie in may have changed
    std::uint64_t total_bytes = 0;
    StateChild child;
    Done done;
  };
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
  std::string reason_;             // of giving up; written before given_up_
  std::thread thread_;             // of the checkpoint that is written, or was written last
  std::atomic<pid_t> killed_ = 0;  // and not ended; 0: none
};

}  // namespace antdt::trainer
