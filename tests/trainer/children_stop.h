// Children that stand still from their fork on: what they should write makes no progress, as on a
// disk that does not answer.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

#include <atomic>

namespace antdt {

class ChildrenStop {
 public:
  ChildrenStop() {
    static const int registered = pthread_atfork(nullptr, nullptr, &in_child);
    static_cast<void>(registered);
    wanted() = true;
  }
  ~ChildrenStop() { wanted() = false; }
  ChildrenStop(const ChildrenStop&) = delete;
  ChildrenStop& operator=(const ChildrenStop&) = delete;

 private:
  static std::atomic<bool>& wanted() {
    static std::atomic<bool> value = false;
    return value;
  }
  static void in_child() {
    if (!wanted()) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // not left behind by a test that fails
    raise(SIGSTOP);
  }
};

}  // namespace antdt
