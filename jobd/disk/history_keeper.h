// Writes what the machine wants remembered into the run's history of steps
// (shard_server/history/history.h), and never stands in the job's way: what goes wrong
// there is said once, what could not be written waits for room.
//
//   well --an error--> failing: tried again at each sync --no error--> well
//   well, failing --damage--> moved aside (history.db.damaged), begun anew: well
//   nowhere: it could not be opened; what is to be remembered is forgotten
#pragma once

#include <optional>
#include <string>

#include "shard_server/history/history.h"

namespace antdt::jobd {

class HistoryKeeper {
 public:
  HistoryKeeper() = default;  // keeps nothing
  // `most_bytes`: 0: no bound.
  HistoryKeeper(const std::string& path, const shard_server::DataSet& train,
                Incarnation incarnation, std::uint64_t most_bytes = 0);

  void remember(shard_server::history::Entry entry);
  // Commits it, without a sync. A generation that settled is synced: its members may forget
  // the one before.
  void finish_turn();
  // Whether nothing that was remembered can be lost any more, or nobody keeps it.
  [[nodiscard]] bool sync();

  // What to tell people, once.
  [[nodiscard]] std::optional<std::string> take_news();

 private:
  void judge(const Status& written);
  void begin_anew(const Error& damage);
  void open();

  std::string path_;
  shard_server::DataSet train_;
  Incarnation incarnation_;
  std::uint64_t most_bytes_ = 0;

  std::optional<shard_server::History> history_;
  bool settled_ = false;
  bool failing_ = false;
  bool aside_ = false;  // a damaged one was moved
  std::optional<std::string> news_;
};

}  // namespace antdt::jobd
