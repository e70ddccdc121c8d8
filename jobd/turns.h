// The end of each turn of the loop: what the machine decided becomes durable with one commit of the
// journal, and only then anything is sent. A journal that cannot commit ends the daemon, since
// nothing of that turn may be seen by anybody; its agent starts it again and the journal is
// replayed.
//
// The loop waits for the commit. Meanwhile the daemon tells its agents that it lives, and answers
// who asks for the status.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/clock.h"
#include "core/result.h"
#include "jobd/outbox.h"
#include "shard_server/journal/journal.h"

namespace antdt::jobd {

struct Shell;

class Turns {
 public:
  Turns(Shell& shell, shard_server::Journal journal);

  void append(std::string_view kind, std::string_view bytes) { journal_.append(kind, bytes); }
  [[nodiscard]] Incarnation incarnation() const { return journal_.incarnation(); }
  void finish();
  // Messages whose waiting is over.
  void send_due();
  // Members may forget the steps that are safe: once a second the history is asked.
  void sync_history();

  // The journal's disk is full: requests that would make it grow are left unanswered.
  [[nodiscard]] bool paused() const { return paused_.has_value(); }
  void go_on_if_there_is_room();

 private:
  void send();
  void pause_if_disk_is_full();
  [[nodiscard]] Status commit();
  // Runs `work` on the journal's thread and waits for it. The loop's clock stands still meanwhile:
  // nobody is late, or silent, because we are.
  [[nodiscard]] Status on_journal(const char* what, const std::function<Status()>& work);

  Shell& shell_;
  shard_server::Journal journal_;  // its thread's, while that runs
  HeldTurns held_;
  MonoTime history_asked_{};        // to be synced, last
  std::optional<MonoTime> paused_;  // since then, or when room was looked for last
};

}  // namespace antdt::jobd
