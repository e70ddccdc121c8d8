// Writes slices to files while their server goes on: a child process has the rows
// as they were when it was made, so the server stands still for one fork. It says so whenever
// another part of them is on the disk; if it has said nothing for long it is given up.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/loop.h"
#include "core/result.h"
#include "core/wire/training_messages.h"
#include "trainer/ps/rows/store.h"
#include "trainer/ps_link/child_copy.h"

namespace antdt::ps {

class CutWriter {
 public:
  using Files = std::vector<wire::CheckpointFile>;
  using Done = std::function<void(Result<Files>)>;

  // Given up without progress for `hang_after`.
  CutWriter(EventLoop& loop, Duration hang_after) : hang_after_(hang_after), child_(loop) {}
  // The child is ended; a part of what it was writing may stay, under no slice's name.
  ~CutWriter() = default;
  CutWriter(const CutWriter&) = delete;
  CutWriter& operator=(const CutWriter&) = delete;

  // Makes the directory where it is not there. Calls `done` from the loop. kRefused while one is
  // being written.
  [[nodiscard]] Status begin(const Store& store, const std::vector<std::uint32_t>& slices,
                             const std::string& directory, Done done);
  // What is being written is not wanted any more: the one that was to hear of it. Null: nothing is.
  [[nodiscard]] Done give_up();

 private:
  void read_more();
  void finish();
  void hangs();

  const Duration hang_after_;
  ChildCopy child_;
  std::string directory_;
  std::string said_;
  Done done_;
};

}  // namespace antdt::ps
