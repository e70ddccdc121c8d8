#include "cmd/antdt-jobd/history_keeper.h"

#include <utility>

namespace antdt::jobd {

HistoryKeeper::HistoryKeeper(const std::string& path, const shard_server::DataSet& train,
                             Incarnation incarnation) {
  auto opened = shard_server::History::open(path, train, incarnation);
  if (opened) {
    history_.emplace(std::move(*opened));
  } else {
    news_ = fmt::format("nobody will know which records made which step: {}; the job goes on",
                        opened.error().message);
  }
}

void HistoryKeeper::remember(shard_server::history::Entry entry) {
  if (!history_) return;
  settled_ = settled_ || std::holds_alternative<shard_server::history::Settled>(entry);
  history_->append(std::move(entry));
}

void HistoryKeeper::judge(const Status& written) {
  if (!written && !failing_) {
    news_ = fmt::format(
        "which records made which step cannot be written down for now: {}; the job "
        "goes on, and what is not written waits for it",
        written.error().message);
  }
  failing_ = !written;
}

void HistoryKeeper::finish_turn() {
  if (!history_ || failing_) return;
  judge(std::exchange(settled_, false) ? history_->sync() : history_->commit());
}

bool HistoryKeeper::sync(MonoTime now) {
  synced_at_ = now;
  if (history_ && history_->unsynced()) judge(history_->sync());
  return !failing_;
}

std::optional<std::string> HistoryKeeper::take_news() { return std::exchange(news_, {}); }

}  // namespace antdt::jobd
