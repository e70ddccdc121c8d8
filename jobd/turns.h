// The end of each turn of the loop: the machine's decisions become durable with one commit of the
// journal, and only then anything is sent. If the journal cannot commit, the daemon ends, because
// nobody may see anything of that turn; its agent starts it again, and the journal is replayed.
//
// The loop waits for the commit. Meanwhile the daemon sends heartbeats to its agents, and answers
// requests for the status.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/metrics/metric.h"
#include "core/result.h"
#include "ctl/job/daemon_pace.h"
#include "jobd/outbox.h"
#include "shard_server/journal/journal.h"

namespace antdt::jobd {

struct Shell;

class Turns {
 public:
  // `clock`: the machine's, which goes on while the loop's stands still.
  Turns(Shell& shell, const Clock& clock, shard_server::Journal journal);

  void append(std::string_view kind, std::string_view bytes) { journal_.append(kind, bytes); }
  [[nodiscard]] Incarnation incarnation() const { return journal_.incarnation(); }
  // How long the commits took, in seconds.
  [[nodiscard]] const metrics::Histogram& commit_times() const { return commit_times_; }
  // Runs `work` once this turn is committed: for what must not be done by an incarnation that
  // another one has succeeded.
  void after_commit(std::function<void()> work) { after_commit_.push_back(std::move(work)); }
  void finish();
  // Keeps the run's file for other hosts, if the journal is where they can read it. What fails is
  // logged.
  void keep_for_others(const std::string& name, const std::string& bytes);
  // Sends the messages whose wait is over.
  void send_due();
  // Once a second: asks the history which steps are synced, so that members may forget them.
  void sync_history();

  [[nodiscard]] const ctl::job::JournalPause& pause() const { return pause_; }
  void go_on_if_there_is_room();
  // What a pause is for, and what ends it.
  [[nodiscard]] std::string no_room() const;

 private:
  void send();
  void pause_if_disk_is_full();
  [[nodiscard]] Status commit();
  // Runs `work`. Meanwhile a deputy sends heartbeats and answers requests for the status, and the
  // loop's clock stands still, so nobody counts as late or silent because of this wait.
  [[nodiscard]] Status on_journal(const char* what, const std::function<Status()>& work);

  Shell& shell_;
  const Clock& clock_;
  shard_server::Journal journal_;
  std::vector<std::function<void()>> after_commit_;
  HeldTurns held_;
  MonoTime history_asked_{};  // to be synced, last
  ctl::job::JournalPause pause_;
  metrics::Histogram commit_times_;
};

}  // namespace antdt::jobd
