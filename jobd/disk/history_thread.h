// Writes the run's history of steps (history_keeper.h) on a thread of its own. The entries of a
// turn are passed to it at the turn's end, and only a caller that asks for a sync waits. While its
// disk does not answer, entries are kept here, up to a bound.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/threads/disk_thread.h"
#include "jobd/disk/history_keeper.h"

namespace antdt::jobd {

class HistoryThread {
 public:
  using OnNews = std::function<void(const std::string& text)>;
  // `kept`: whether everything that was appended before the request is safe.
  using OnSynced = std::function<void(bool kept)>;
  // How many entries may wait; beyond that the oldest are dropped.
  static constexpr std::size_t kMostWaiting = 200'000;

  HistoryThread(DiskThread& disk, HistoryKeeper keeper, OnNews on_news);

  void remember(shard_server::history::Entry entry);
  // Makes everything that was appended so far safe from a power failure.
  void sync(OnSynced then);
  // Passes new entries to the thread, if it is done with the previous ones.
  void finish_turn();
  // Whether a generation settled since the last call. That must be synced before its members may
  // forget the one before.
  [[nodiscard]] bool take_settled() { return std::exchange(settled_, false); }

 private:
  DiskThread& disk_;
  std::shared_ptr<HistoryKeeper> keeper_;  // used by the thread
  OnNews on_news_;
  std::deque<shard_server::history::Entry> entries_;
  std::optional<shard_server::Moment> measured_;  // sum of all that waits
  std::vector<OnSynced> to_sync_;
  bool settled_ = false;
  bool writing_ = false;
};

}  // namespace antdt::jobd
