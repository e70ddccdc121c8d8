// Makes the pieces of a server's state while the server goes on: a child process has the
// machine as it was when it was made, so the server stands still for one fork, and the
// child makes no more than its parent reads.
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

  // A piece that has not come after `hang_after` comes no more.
  StateMaker(EventLoop& loop, Duration hang_after) : hang_after_(hang_after), child_(loop) {}
  ~StateMaker() { end(); }
  StateMaker(const StateMaker&) = delete;
  StateMaker& operator=(const StateMaker&) = delete;

  // The state as it is now, in place of the one before. An error (kIo): no child.
  [[nodiscard]] Status begin(const ServerNode& node);
  // Calls `done` from the loop with the next piece, or with why there is none (kIo). One at a
  // time; without a child, or after the last one, `done` is dropped.
  void next(Done done);
  // Nobody wants what is left.
  void end();

 private:
  void read_more();
  void conclude(Result<StatePiece> piece);

  const Duration hang_after_;
  ChildCopy child_;
  std::string read_;  // of the frame that comes
  Done done_;         // the child is watched while there is one
};

}  // namespace antdt::ps
