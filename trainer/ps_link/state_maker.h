// Makes the pieces of a server's state while the server goes on: a child process has the machine as
// it was at the fork, so the server stands still only for the fork. The child makes no more than
// its parent reads.
#pragma once

#include <functional>
#include <string>

#include "core/loop.h"
#include "core/result.h"
#include "trainer/ps/replica/state_copy.h"
#include "trainer/ps_link/child_copy.h"

namespace antdt::ps {

class StateMaker {
 public:
  using Done = std::function<void(Result<StatePiece>)>;

  // A piece that has not arrived within `hang_after` is given up.
  StateMaker(EventLoop& loop, Duration hang_after) : hang_after_(hang_after), child_(loop) {}
  ~StateMaker() { end(); }
  StateMaker(const StateMaker&) = delete;
  StateMaker& operator=(const StateMaker&) = delete;

  // Begins with the present state, replacing the previous one. The error (kIo): there is no child.
  [[nodiscard]] Status begin(const ServerNode& node);
  // Calls `done` from the loop with the next piece, or with the reason why there is none (kIo). One
  // at a time; without a child, or after the last piece, `done` is dropped.
  void next(Done done);
  // The rest is not needed.
  void end();

 private:
  void read_more();
  void conclude(Result<StatePiece> piece);

  const Duration hang_after_;
  ChildCopy child_;
  std::string read_;  // bytes of the frame that is arriving
  Done done_;         // the child is watched while it is set
};

}  // namespace antdt::ps
