#include "jobd/disk/history_thread.h"

namespace antdt::jobd {
namespace history = shard_server::history;

HistoryThread::HistoryThread(DiskThread& disk, HistoryKeeper keeper, OnNews on_news)
    : disk_(disk),
      keeper_(std::make_shared<HistoryKeeper>(std::move(keeper))),
      on_news_(std::move(on_news)) {}

void HistoryThread::remember(history::Entry entry) {
  if (auto* moment = std::get_if<history::Measured>(&entry)) {
    measured_ ? add_moment(*measured_, *moment) : void(measured_ = std::move(*moment));
    return;
  }
  settled_ = settled_ || std::holds_alternative<history::Settled>(entry);
  if (entries_.size() >= kMostWaiting) entries_.pop_front();
  entries_.push_back(std::move(entry));
}

void HistoryThread::sync(OnSynced then) { to_sync_.push_back(std::move(then)); }

void HistoryThread::finish_turn() {
  if (writing_ || (entries_.empty() && !measured_ && to_sync_.empty())) return;
  writing_ = true;
  auto entries = std::make_shared<std::deque<history::Entry>>(std::exchange(entries_, {}));
  if (measured_) entries->emplace_back(*std::exchange(measured_, {}));
  disk_.run("writing history.db",
            [this, keeper = keeper_, entries,
             to_sync = std::exchange(to_sync_, {})]() -> DiskThread::Then {
              for (history::Entry& entry : *entries) keeper->remember(std::move(entry));
              keeper->finish_turn();
              const bool kept = !to_sync.empty() && keeper->sync();
              return [this, kept, to_sync, news = keeper->take_news()] {
                writing_ = false;
                for (const OnSynced& then : to_sync) then(kept);
                if (news) on_news_(*news);
              };
            });
}

}  // namespace antdt::jobd
