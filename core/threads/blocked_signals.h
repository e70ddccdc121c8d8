// Threads that are started where this object lives have all signals blocked, so that signals go to
// the loop: one to the process ends it if any thread may take it, and the loop reads it only if
// none may. A thread that blocks them by itself can be struck before its first instruction.
#pragma once

#include <csignal>

namespace antdt {

class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace antdt
