// A child process that has the server as it was when the child was made, and tells of it
// through a pipe. The server stands still for one fork.
//
//   none --begin()--> there --end()--> none, or
//                                      killed, and waits for a disk --it ends--> none
//
// A process in a call to a disk that does not answer ends when the disk answers, and has its
// memory until then. So there is at most one such, and the server waits for none.
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
  // All of the bytes; ends the child where nobody reads them any more.
  using Tell = std::function<void(std::string_view)>;

  explicit ChildCopy(EventLoop& loop) : loop_(loop) {}
  ~ChildCopy() { end(); }
  ChildCopy(const ChildCopy&) = delete;
  ChildCopy& operator=(const ChildCopy&) = delete;

  // There is none yet. `run` runs in the child, which ends after it, and with this process. An
  // error (kIo) says that there is no child `to` do this, also where one that was killed has
  // not ended.
  [[nodiscard]] Status begin(const char* to, const std::function<void(const Tell&)>& run);
  [[nodiscard]] bool is_there() const { return child_ != 0; }
  // Where its bytes come from; their end is its end.
  [[nodiscard]] int fd() const { return from_child_.get(); }
  // From now on `on_bytes` is called while there is something to read, or its end, and
  // when there has been nothing for `patience`, `on_silence`; it is unwatched then.
  void watch(Duration patience, EventLoop::Callback on_bytes, EventLoop::Callback on_silence);
  void unwatch();
  // Kills it, and unwatches it.
  void end();

 private:
  void be_patient();
  [[nodiscard]] bool killed_one_ends(Duration within);

  EventLoop& loop_;
  pid_t child_ = 0;   // 0: none
  pid_t killed_ = 0;  // and not reaped; 0: none
  OwnedFd from_child_;
  bool watched_ = false;
  Duration patience_{};
  EventLoop::Callback on_silence_;
  TimerId silence_;
};

}  // namespace antdt::ps
