// Looks at files that may be on a filesystem that does not answer. A call to such a filesystem
// cannot be interrupted, so it is made on a thread that is left behind. Signals are for the threads
// that wait for them: one that was left behind would end the process by theirs.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/threads/blocked_signals.h"

namespace antdt::cli {

inline constexpr Duration kDiskPatience = std::chrono::seconds(3);

// Returns what `work` finds, or nothing if it takes too long. `work` must own everything it uses.
template <class Work>
auto within(Duration patience, Work work) -> std::optional<decltype(work())> {
  auto done = std::make_shared<std::promise<decltype(work())>>();
  auto found = done->get_future();
  {
    const BlockedSignals no_signals;
    std::thread([done, work = std::move(work)]() mutable { done->set_value(work()); }).detach();
  }
  if (found.wait_for(patience) != std::future_status::ready) return {};
  return found.get();
}

// What `look` finds at each path. Nothing for a path where it has not returned when no look has
// returned for `patience`: that filesystem does not answer. Paths are looked at beside one another,
// so one of them delays the others by `patience` at most, unless there are more of its kind than
// threads.
template <class Look>
auto each_within(Duration patience, const std::vector<std::string>& paths, Look look)
    -> std::vector<std::optional<decltype(look(paths.front()))>> {
  constexpr std::size_t kThreads = 32;
  struct Shared {
    Shared(std::vector<std::string> all, Look how)
        : paths(std::move(all)), look(std::move(how)), found(paths.size()) {}
    std::vector<std::string> paths;
    Look look;
    std::mutex mutex;
    std::condition_variable changed;
    std::size_t next = 0;  // the path that nobody looks at yet
    std::size_t done = 0;  // how many looks have returned
    std::vector<std::optional<decltype(look(paths.front()))>> found;
  };
  auto shared = std::make_shared<Shared>(paths, std::move(look));
  std::optional<BlockedSignals> no_signals(std::in_place);
  for (std::size_t i = 0; i < std::min(paths.size(), kThreads); ++i) {
    std::thread([shared] {
      std::unique_lock lock(shared->mutex);
      while (shared->next < shared->paths.size()) {
        const std::size_t mine = shared->next++;
        lock.unlock();
        auto one = shared->look(shared->paths[mine]);
        lock.lock();
        shared->found[mine] = std::move(one);
        ++shared->done;
        shared->changed.notify_all();
      }
    }).detach();
  }
  no_signals.reset();
  std::unique_lock lock(shared->mutex);
  while (shared->done < paths.size()) {
    const std::size_t before = shared->done;
    if (!shared->changed.wait_for(lock, patience, [&] { return shared->done > before; })) break;
  }
  shared->next = paths.size();  // nobody waits for the rest
  return shared->found;
}

// Paths at which a look has not returned. Who looks again and again keeps it, so that only one
// thread waits for each of them.
class PendingLooks {
 public:
  // False if a look at it is still under way; else done() is to be called after it.
  [[nodiscard]] bool begin(const std::string& path) {
    const std::lock_guard lock(mutex_);
    return paths_.insert(path).second;
  }
  void done(const std::string& path) {
    const std::lock_guard lock(mutex_);
    paths_.erase(path);
  }

 private:
  std::mutex mutex_;
  std::set<std::string> paths_;
};

// The same about `path`. Nothing, at once, while an earlier look at it is under way.
template <class Work>
auto within(Duration patience, const std::string& path,
            const std::shared_ptr<PendingLooks>& pending, Work work)
    -> std::optional<decltype(work())> {
  if (!pending->begin(path)) return {};
  return within(patience, [path, pending, work = std::move(work)]() mutable {
    auto found = work();
    pending->done(path);
    return found;
  });
}

}  // namespace antdt::cli
