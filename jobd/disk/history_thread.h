// The run's history of steps (history_keeper.h), written on a thread of its own: what is
// remembered in a turn goes there at the turn's end, and nobody waits for it but who asks for a
// sync. While its disk stands still what is remembered is kept here, up to a bound.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/os/disk_thread.h"
#include "jobd/disk/history_keeper.h"

namespace antdt::jobd {

class HistoryThread {
 public:
  using OnNews = std::function<void(const std::string& text)>;
  // Whether nothing that was remembered before the request can be lost any more.
  using OnSynced = std::function<void(bool kept)>;
  // Of entries that wait; then the oldest are dropped.
  static constexpr std::size_t kMostWaiting = 200'000;

  HistoryThread(DiskThread& disk, HistoryKeeper keeper, OnNews on_news);

  void remember(shard_server::history::Entry entry);
  // All that was remembered so far is to survive a power failure.
  void sync(OnSynced then);
  // Gives the thread what it has not got, if it is done with what it has.
  void finish_turn();
  // Whether a generation settled since this was asked last: that must be synced before its
  // members may forget the one before.
  [[nodiscard]] bool take_settled() { return std::exchange(settled_, false); }

 private:
  DiskThread& disk_;
  std::shared_ptr<HistoryKeeper> keeper_;  // the thread's
  OnNews on_news_;
  std::deque<shard_server::history::Entry> entries_;
  std::optional<shard_server::Moment> measured_;  // of all that waits
  std::vector<OnSynced> to_sync_;
  bool settled_ = false;
  bool writing_ = false;
};

}  // namespace antdt::jobd
