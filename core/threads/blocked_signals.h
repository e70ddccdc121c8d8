// While an object of this class lives, threads that are started have all signals blocked, so that
// signals go to the loop. The loop reads a signal only if every thread blocks it; otherwise the
// signal may end the process. A thread that blocks signals by itself could be struck before its
// first instruction.
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
