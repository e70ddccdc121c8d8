// Writes history entries into the run's history of steps (shard_server/history/history.h) without
// ever stopping the job: an error is reported once, and entries that could not be written wait for
// room.
//
//   kWell ──an error──> kFailing: tried again at each sync ──no error──> kWell
//   kWell, kFailing ──damage──> moved aside (history.db.damaged) once, and begun anew: kWell
//   kNowhere: the history could not be opened, and entries are dropped
#pragma once

#include <cstdint>
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
  // Commits without a sync. A generation that settled is synced, because its members may then
  // forget the one before.
  void finish_turn();
  // Whether everything that was appended is safe from a power failure, or there is no history.
  [[nodiscard]] bool sync();

  // News for people, returned once.
  [[nodiscard]] std::optional<std::string> take_news();

 private:
  enum class State : std::uint8_t { kNowhere, kWell, kFailing };

  void judge(const Status& written);
  void begin_anew(const Error& damage);
  void open();

  std::string path_;
  shard_server::DataSet train_;
  Incarnation incarnation_;
  std::uint64_t most_bytes_ = 0;

  std::optional<shard_server::History> history_;  // unless it is kNowhere
  State state_ = State::kNowhere;
  bool settled_ = false;  // a generation did, in this turn
  bool aside_ = false;    // a damaged file was moved aside in this incarnation
  std::optional<std::string> news_;
};

}  // namespace antdt::jobd
