// The threads on which the job daemon touches files (core/threads/disk_thread.h), and the report of
// a filesystem that does not answer. Tasks that may wait for one another share a thread; tasks that
// may not have different threads:
//
//   records      events.jsonl, skips.json, solution.log, summary.json: in the order in which the
//                daemon wrote them
//   checkpoints  checking, storing, finding and pruning them, which may take minutes
//   history      history.db
//
// The loop itself commits the journal (run_journal.h) and waits for it; `journal` acts for it while
// that lasts (core/threads/deputy.h, Turns::on_journal).
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/loop.h"
#include "core/threads/deputy.h"
#include "core/threads/disk_thread.h"

namespace antdt::jobd {

class Disks {
 public:
  // A filesystem without progress for this long is reported as not answering.
  static constexpr Duration kPatience = std::chrono::seconds(3);
  // Interval of what the deputy does while a commit lasts.
  static constexpr Duration kSignOfLife = std::chrono::milliseconds(500);

  // `clock` is the machine's clock, which goes on while the loop stands still.
  // `journal`: where the journal is, "the filesystem of RUN" or "etcd (h1:2379)".
  Disks(EventLoop& loop, const Clock& clock, const std::string& run_dir,
        const std::string& state_dir, std::string journal);
  ~Disks();
  Disks(const Disks&) = delete;
  Disks& operator=(const Disks&) = delete;

  [[nodiscard]] DiskThread& records() { return records_; }
  [[nodiscard]] DiskThread& checkpoints() { return checkpoints_; }
  [[nodiscard]] DiskThread& history() { return history_; }
  [[nodiscard]] Deputy& journal() { return journal_; }

  // "the filesystem of RUN has not answered for 41 s: writing events.jsonl, and 3 more wait"; empty
  // if all answer.
  [[nodiscard]] std::string trouble() const;
  struct News {
    std::string kind;  // kind of the event: "disk-stalled", "disk-answers"
    std::string text;
  };
  // News are returned once when the trouble begins and once when it is over.
  [[nodiscard]] std::optional<News> take_news();
  // False if a thread is stuck, so that the process can only be left by _exit.
  [[nodiscard]] bool end(Duration patience);

 private:
  struct Longest {
    std::string where;
    DiskThread::Present present;
  };
  [[nodiscard]] std::optional<Longest> longest() const;

  EventLoop& loop_;
  const Clock& clock_;
  std::string run_files_, state_files_, journal_place_;  // "the filesystem of RUN"
  struct Stalled {
    MonoTime since{};
    std::string where;
  };
  std::optional<Stalled> stalled_;  // as it was said
  DiskThread records_, checkpoints_, history_;
  Deputy journal_;
};

}  // namespace antdt::jobd
