// A child process with the server's state at the moment of the fork, which reports through a pipe.
// The server stands still only for the fork.
//
//   none --begin()--> there --end()--> none, or
//                                      killed, and waits for a disk --it ends--> none
//
// A process in a call to a disk that does not answer ends only when the disk answers, and keeps its
// memory until then. So there is at most one such process, and the server does not wait for it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string_view>

#include "core/clock.h"
#include "core/loop.h"
#include "core/os/owned_fd.h"
#include "core/result.h"

namespace antdt::ps {

class ChildCopy {
 public:
  // Writes all of the bytes; ends the child if nobody reads them any more.
  using Tell = std::function<void(std::string_view)>;

  explicit ChildCopy(EventLoop& loop) : loop_(loop) {}
  ~ChildCopy() { end(); }
  ChildCopy(const ChildCopy&) = delete;
  ChildCopy& operator=(const ChildCopy&) = delete;

  // There must be no child yet. `run` runs in the child, which ends after it, and with this
  // process. The error (kIo) says that there is no child `to` do this, for example because one that
  // was killed has not ended.
  [[nodiscard]] Status begin(const char* to, const std::function<void(const Tell&)>& run);
  [[nodiscard]] bool is_there() const { return child_ != 0; }
  // The source of its bytes; their end is the child's end.
  [[nodiscard]] int fd() const { return from_child_.get(); }
  // From now on `on_bytes` is called while there is something to read or the end, and `on_silence`
  // if there was nothing for `patience`; then it is unwatched.
  void watch(Duration patience, EventLoop::Callback on_bytes, EventLoop::Callback on_silence);
  void unwatch();
  // Kills the child and unwatches it.
  void end();

 private:
  void be_patient();
  [[nodiscard]] bool killed_one_ends(Duration within);

  EventLoop& loop_;
  pid_t child_ = 0;   // 0: none
  pid_t killed_ = 0;  // killed and not reaped yet; 0: none
  OwnedFd from_child_;
  bool watched_ = false;
  Duration patience_{};
  EventLoop::Callback on_silence_;
  TimerId silence_;
};

}  // namespace antdt::ps
