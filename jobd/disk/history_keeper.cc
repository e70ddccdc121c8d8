#include "jobd/disk/history_keeper.h"

#include <filesystem>
#include <utility>

namespace antdt::jobd {

HistoryKeeper::HistoryKeeper(const std::string& path, const shard_server::DataSet& train,
                             Incarnation incarnation, std::uint64_t most_bytes)
    : path_(path), train_(train), incarnation_(incarnation), most_bytes_(most_bytes) {
  open();
}

void HistoryKeeper::open() {
  auto opened = shard_server::History::open(path_, train_, incarnation_, most_bytes_);
  if (!opened && opened.error().kind == ErrorKind::kCorrupt && !aside_) {
    return begin_anew(opened.error());
  }
  if (opened) {
    history_.emplace(std::move(*opened));
    state_ = State::kWell;
  } else {
    news_ = fmt::format("nobody will know which records made which step: {}; the job goes on",
                        opened.error().message);
  }
}

// From: any. To: kWell, or kNowhere if that is impossible.
// Done once in an incarnation: if a disk damages what was just written, it must not be filled with
// damaged files.
void HistoryKeeper::begin_anew(const Error& damage) {
  aside_ = true;
  history_.reset();
  state_ = State::kNowhere;
  const std::string aside = path_ + ".damaged";
  std::error_code error;
  for (const char* part : {"-wal", "-shm", ""}) {
    std::error_code ignored;  // the file may not exist
    std::filesystem::remove(aside + part, ignored);
    std::filesystem::rename(path_ + part, aside + part, *part == 0 ? error : ignored);
  }
  if (error) {
    news_ = fmt::format(
        "nobody will know which records made which step: {}; it cannot be moved to {} ({}): remove "
        "it, a new one is begun when the job daemon is started again; the job goes on",
        damage.message, aside, error.message());
    return;
  }
  open();
  if (state_ == State::kNowhere) return;
  news_ = fmt::format(
      "{}; it was moved to {} and a new one is begun: which records made the steps before is "
      "forgotten, of the present members' too; the job goes on",
      damage.message, aside);
}

void HistoryKeeper::remember(shard_server::history::Entry entry) {
  if (state_ == State::kNowhere) return;
  settled_ = settled_ || std::holds_alternative<shard_server::history::Settled>(entry);
  history_->append(std::move(entry));
}

// From: kWell, kFailing. To: kWell or kFailing, unless the file is damaged.
void HistoryKeeper::judge(const Status& written) {
  if (!written && written.error().kind == ErrorKind::kCorrupt && !aside_) {
    return begin_anew(written.error());
  }
  if (!written && state_ == State::kWell) {
    news_ = fmt::format(
        "which records made which step cannot be written down for now: {}; the job "
        "goes on, and what is not written waits for it",
        written.error().message);
  }
  state_ = written ? State::kWell : State::kFailing;
}

void HistoryKeeper::finish_turn() {
  if (state_ != State::kWell) return;
  judge(std::exchange(settled_, false) ? history_->sync() : history_->commit());
}

bool HistoryKeeper::sync() {
  if (state_ == State::kNowhere) return true;
  if (history_->unsynced()) {
    judge(history_->sync());
  } else if (state_ == State::kFailing) {
    judge(history_->commit());
  }
  return state_ != State::kFailing;
}

std::optional<std::string> HistoryKeeper::take_news() { return std::exchange(news_, {}); }

}  // namespace antdt::jobd
