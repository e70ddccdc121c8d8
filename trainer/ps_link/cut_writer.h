// Writes slices to files while their server goes on: a child process has the rows as they were at
// the fork, so the server stands still only for the fork. The child reports whenever another part
// is on the disk; if it reports nothing for long, it is given up.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/loop.h"
#include "core/result.h"
#include "core/wire/training_messages.h"
#include "trainer/ps/process/cut_progress.h"
#include "trainer/ps/rows/store.h"
#include "trainer/ps_link/child_copy.h"

namespace antdt::ps {

class CutWriter {
 public:
  using Files = std::vector<wire::CheckpointFile>;
  using Done = std::function<void(Result<Files>)>;

  // A child without progress for `hang_after` is given up.
  CutWriter(EventLoop& loop, Duration hang_after) : hang_after_(hang_after), child_(loop) {}
  // Ends the child; a part of what it was writing may remain, but not under a slice's name.
  ~CutWriter() = default;
  CutWriter(const CutWriter&) = delete;
  CutWriter& operator=(const CutWriter&) = delete;

  // Makes the directory if it is missing. Calls `done` from the loop. kRefused while another
  // checkpoint is being written.
  [[nodiscard]] Status begin(const Store& store, const std::vector<std::uint32_t>& slices,
                             const std::string& directory, Done done);
  // Gives up what is being written, and returns the callback that was to be called. Null: nothing
  // is being written.
  [[nodiscard]] Done give_up();
  // Empty: nothing is being written.
  [[nodiscard]] std::optional<CutProgress> progress() const;

 private:
  void read_more();
  void take_progress();
  void finish();
  void hangs();

  const Duration hang_after_;
  ChildCopy child_;
  CutProgress progress_;
  std::string said_;  // of the child, after the last whole report of progress
  Done done_;
};

}  // namespace antdt::ps
