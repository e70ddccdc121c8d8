#include "jobd/turns.h"

#include <cstdlib>
#include <utility>

#include "core/log/log.h"
#include "ctl/job/metrics/job_metrics.h"
#include "jobd/shell.h"
#include "shard_server/journal/sqlite_store.h"

namespace antdt::jobd {
namespace {

constexpr Duration kSyncHistory = std::chrono::seconds(1);

}  // namespace

Turns::Turns(Shell& shell, const Clock& clock, shard_server::Journal journal)
    : shell_(shell),
      clock_(clock),
      journal_(std::move(journal)),
      commit_times_(ctl::commit_times()) {}

void Turns::finish() {
  if (!shell_.ended)
    shell_.skips.declare();  // a phase may have been opened, and this comes before any grant of it
  if (const std::string skips = shell_.skips.record_if_changed(); !skips.empty()) {
    append(ctl::job::kSkipRecord, skips);
  }
  if (const auto image = shell_.machine.image_if_changed()) append(ctl::kImageRecord, *image);
  shell_.history.finish_turn();
  if (const Status committed = commit(); !committed) {
    log_error("the journal cannot be written: {}", committed.error().message);
    if (shell_.options.before_abort) shell_.options.before_abort();
    std::abort();
  }
  shell_.skips.keep();
  pause_if_disk_is_full();
  send();
  for (const auto& work : std::exchange(after_commit_, {})) work();
}

void Turns::keep_for_others(const std::string& name, const std::string& bytes) {
  if (!shell_.seal) return;
  const Status kept = on_journal("keeping a file of the run", [&]() -> Status {
    ANTDT_TRY(const std::string sealed, shell_.seal->seal(name, bytes));
    return journal_.keep_file(name, sealed);
  });
  if (!kept) log_warn("other hosts will not find {}: {}", name, kept.error().message);
}

Status Turns::commit() {
  if (!journal_.dirty()) return {};
  const MonoTime begin = clock_.now();
  Status done = on_journal("committing the journal", [this]() -> Status {
    ANTDT_RETURN_IF_ERROR(journal_.commit());
    if (!journal_.wants_snapshot()) return {};
    auto sections = shell_.machine.snapshot();
    shell_.skips.add_section(sections);
    return journal_.snapshot(sections);
  });
  commit_times_.observe(to_seconds(clock_.now() - begin));
  return done;
}

Status Turns::on_journal(const char* what, const std::function<Status()>& work) {
  Status done;
  shell_.disks.journal().run(
      what, [&done, &work] { done = work(); },
      [this] {
        if (shell_.links) shell_.links->heartbeat();
        if (shell_.keeper) shell_.keeper->heartbeat();
        shell_.look_at_disks();
        shell_.inbox.answer_status_alone();
      });
  return done;
}

// The members of a settled generation forget the steps of the one before, so those steps must be
// synced before the members are told. Messages of later turns are sent after that.
void Turns::send() {
  std::vector<Outgoing> messages = shell_.outbox.take();
  if (shell_.history.take_settled()) {
    const std::uint64_t number = held_.add_waiting(std::move(messages), shell_.loop.now());
    shell_.history.sync([this, number](bool) { held_.history_kept(number); });
    shell_.history.finish_turn();
  } else {
    held_.add(std::move(messages));
  }
  send_due();
}

void Turns::send_due() {
  for (Outgoing& out : held_.take_due(shell_.loop.now())) shell_.send_now(out);
}

void Turns::sync_history() {
  if (shell_.loop.now() - history_asked_ < kSyncHistory) return;
  history_asked_ = shell_.loop.now();
  shell_.history.sync([this, told = shell_.machine.history_mark()](bool kept) {
    if (kept) shell_.feed(ctl::job::HistoryKept{told});
  });
}

// The journal has used its ballast, so little may be written from now on. Requests for records are
// left unanswered until the ballast is back; workers repeat them, and train on what they hold.
void Turns::pause_if_disk_is_full() {
  if (!journal_.store().low_on_space() || !pause_.begin(shell_.loop.now())) return;
  shell_.feed(ctl::job::PauseChanged{true});
  shell_.note("paused", no_room());
}

std::string Turns::no_room() const {
  return fmt::format(
      "the disk of the journal is full: make room for {} MiB in {}, and the job goes on by itself",
      shard_server::SqliteOptions{}.ballast_bytes >> 20, shell_.options.state_dir);
}

void Turns::go_on_if_there_is_room() {
  if (!pause_.look(shell_.loop.now())) return;
  if (!on_journal("reserving room for the journal",
                  [this] { return journal_.restore_reserve(); })) {
    return;
  }
  pause_.end();
  shell_.feed(ctl::job::PauseChanged{false});
  shell_.note("continued", "there is room on the disk again; the job goes on");
}

}  // namespace antdt::jobd
