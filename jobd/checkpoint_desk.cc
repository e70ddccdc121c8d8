#include "jobd/checkpoint_desk.h"

#include <algorithm>
#include <utility>

#include "core/log/log.h"
#include "jobd/shell.h"

namespace antdt::jobd {
namespace {

// The pause before one looks again is doubled each time up to this: a look reads checkpoints as a
// whole, and asks the hosts.
constexpr Duration kLongestPause = std::chrono::seconds(30);
// How long one is waited for that cannot be read while an older one can. A file server that starts
// again is back by then; a bad block never is.
constexpr Duration kWaitForNewer = std::chrono::minutes(1);

constexpr std::string_view kUntilRead =
    "The job waits until its checkpoints can be read, and goes on by itself. If one is lost, "
    "remove it: training then goes on without it";
constexpr std::string_view kOnceMore =
    "It is checked on this host, copies on other hosts are compared with it, and all try once more";
constexpr std::string_view kUntilThere =
    "A checkpoint was stored and is not on this host, so the job waits for that one. If it is "
    "lost, stop the job, and resume it without: antdt run --resume RUN --set "
    "'cluster.hosts=[...]'";

}  // namespace

CheckpointDesk::CheckpointDesk(Shell& shell, const Clock& clock)
    : shell_(shell),
      store_(shell.options.run_dir, shell.config.checkpoint.keep,
             [&shell] { shell.disks.checkpoints().progress(); }),
      copies_(std::make_unique<RunCopies>(
          shell.loop, clock,
          RunCopies::Options{shell.options.run_dir, shell.config.job.id,
                             shell.config.checkpoint.copies},
          RunCopies::Handlers{[&shell](const std::string& kind, const std::string& text) {
                                shell.note(kind, text);
                              },
                              [&shell] {
                                if (!shell.ended) shell.feed(ctl::job::CheckpointFilesMoved{});
                              },
                              [&shell](const std::string& host, const std::string& trouble) {
                                if (!shell.ended) shell.hosts.on_run_directory(host, trouble);
                              }})) {}

void CheckpointDesk::list() {
  shell_.disks.checkpoints().run("listing the checkpoints", [this, store = store_] {
    return [this, kept = store.list()] { tell_kept(kept); };
  });
}

// What cannot be listed is not gone.
void CheckpointDesk::tell_kept(const Result<std::vector<std::string>>& names,
                               const std::string& stored, const std::string& written) {
  if (!names) return log_warn("{}", names.error().message);
  copies_->kept(*names, stored, written);
}

void CheckpointDesk::store(const ctl::job::StoreCheckpoint& o) {
  const auto order = std::make_shared<const ctl::job::StoreCheckpoint>(o);
  copies_->gather(o.written.number, o.written.directory, o.parts,
                  [this, order](const std::string& error) {
                    error.empty() ? keep(order) : discard(order, error);
                  });
}

// Before anybody hears of it: a writer may then write into the same directory again.
void CheckpointDesk::discard(const StoreOrder& order, const std::string& error) {
  shell_.disks.checkpoints().run(
      "removing an unfinished checkpoint", [this, order, error, store = store_] {
        store.discard(order->written.directory);
        return [this, order, error] {
          shell_.feed(ctl::job::CheckpointStored{order->written.number, order->written.step, "",
                                                 error, order->generation});
        };
      });
}

void CheckpointDesk::remove_unfinished(ctl::copies::Age up_to) {
  copies_->given_up(up_to);
  shell_.disks.checkpoints().run("removing unfinished checkpoints", [up_to, store = store_] {
    store.remove_unfinished(up_to);
    return [] {};
  });
}

// A run that goes on from the checkpoint must know which records made the steps before it, so the
// history is synced first.
void CheckpointDesk::keep(const StoreOrder& order) {
  shell_.history.sync([this, order](bool) {
    shell_.disks.checkpoints().run("storing a checkpoint", [this, order, store = store_]() mutable {
      const auto name = store.store(*order);
      if (!name) store.discard(order->written.directory);
      return [this, order, name, kept = store.list()] {
        if (name) tell_kept(kept, *name, order->written.directory);
        shell_.feed(ctl::job::CheckpointStored{order->written.number, order->written.step,
                                               name.value_or(""), name ? "" : name.error().message,
                                               order->generation});
      };
    });
  });
}

void CheckpointDesk::find(const ctl::job::FindCheckpoint& o) {
  if (!o.unread.empty()) copies_->doubt(o.checkpoint);
  if (std::exchange(looking_, true)) return;
  if (o.damaged) {
    say_once("checkpoint-damaged", fmt::format("{}. {}", o.unread, kOnceMore));
    return look_later();
  }
  if (!o.unread.empty()) return wait_for_any(o.unread, kUntilRead);
  wait_ = {};
  look();
}

void CheckpointDesk::look() {
  shell_.disks.checkpoints().run("looking for the newest checkpoint", [this, store = store_] {
    const auto looked = std::make_shared<const Result<CheckpointStore::Newest>>(store.newest());
    return [this, looked, kept = store.list()] {
      if (!*looked) return wait_for_any(looked->error().message, kUntilRead);
      tell_kept(kept);
      for (const std::string& problem : (*looked)->problems) {
        say_once("checkpoint-damaged", problem);
      }
      copies_->find((*looked)->found.directory, [this, looked](const RunCopies::Found& elsewhere) {
        elsewhere.fetched ? read_newest(elsewhere) : choose(**looked, elsewhere);
      });
    };
  });
}

void CheckpointDesk::read_newest(const RunCopies::Found& elsewhere) {
  shell_.disks.checkpoints().run("reading a checkpoint", [this, elsewhere, store = store_] {
    const auto looked = std::make_shared<const Result<CheckpointStore::Newest>>(store.newest());
    return [this, elsewhere, looked, kept = store.list()] {
      if (!*looked) return wait_for_any(looked->error().message, kUntilRead);
      tell_kept(kept);
      choose(**looked, elsewhere);
    };
  });
}

void CheckpointDesk::say_once(const std::string& kind, const std::string& text) {
  if (wait_.said.insert(text).second) shell_.note(kind, text);
}

void CheckpointDesk::look_again(const std::string& why, std::string_view until) {
  say_once("checkpoint-unknown", fmt::format("{}. {}", why, until));
  look_later();
}

void CheckpointDesk::look_later() {
  shell_.loop.call_after(std::exchange(wait_.pause, std::min(2 * wait_.pause, kLongestPause)),
                         [this] {
                           if (!shell_.ended) look();
                         });
}

// As long as it takes: what training would go on from is not known.
void CheckpointDesk::wait_for_any(const std::string& why, std::string_view until) {
  wait_.since.reset();
  look_again(why, until);
}

bool CheckpointDesk::minute_is_over() {
  if (!wait_.since) wait_.since = shell_.loop.now();
  return shell_.loop.now() - *wait_.since >= kWaitForNewer;
}

void CheckpointDesk::choose(const CheckpointStore::Newest& newest,
                            const RunCopies::Found& elsewhere) {
  std::vector<std::string> unread = newest.unreadable;
  unread.insert(unread.end(), elsewhere.unfetched.begin(), elsewhere.unfetched.end());
  if (newest.none()) {
    if (!unread.empty()) return wait_for_any(unread.front(), kUntilRead);
    const bool exists = shell_.machine.lifecycle().any_checkpoint();
    if (exists && !elsewhere.silent.empty()) {
      return wait_for_any(elsewhere.silent.front(), kUntilThere);
    }
  }
  if (newest.none() || unread.empty()) return begin_from(newest.found);

  const std::string goes_on =
      fmt::format("training goes on from {} (step {})", newest.found.directory, newest.found.step);
  if (!minute_is_over()) {
    return look_again(unread.front(), "The job waits a minute for it; then " + goes_on);
  }
  say_once("checkpoint-unknown", fmt::format("{}. After a minute {}", unread.front(), goes_on));
  begin_from(newest.found);
}

void CheckpointDesk::begin_from(const ctl::job::CheckpointFound& found) {
  looking_ = false;
  wait_.since.reset();
  copies_->chosen();
  shell_.feed(found);
  shell_.skips.declare();
}

void CheckpointDesk::hold_until_there(Member to, const std::string& host,
                                      const std::string& directory) {
  if (copies_->can_read(host, directory)) return;
  const auto number = orders_.hold(to, directory, shell_.outbox.take_last());
  if (!number) return;
  copies_->reach(host, directory, [this, to, number = *number](const std::string& /*error*/) {
    if (auto order = orders_.release(to, number)) shell_.outbox.add(std::move(*order));
  });
}

void CheckpointDesk::with_room(std::function<void(const std::string& about_room)> then) {
  shell_.disks.checkpoints().run("looking for room", [then = std::move(then), store = store_] {
    return [then, said = store.about_room()] { then(said); };
  });
}

void CheckpointDesk::conclude(bool done, std::function<void(std::vector<std::string>)> then) {
  shell_.disks.checkpoints().run(
      "listing the checkpoints",
      [this, done, then = std::move(then), store = store_, run_dir = shell_.options.run_dir] {
        RunCopies::remove_probes(run_dir);
        return [this, done, then, names = store.list()] {
          if (!names) log_warn("{}", names.error().message);
          if (done && names) copies_->job_done(*names);
          then(names.value_or(std::vector<std::string>()));
        };
      });
}

void CheckpointDesk::when_copied(std::function<void()> then) {
  last_copies_.emplace(shell_.loop.now(), sign_of_copies());
  if (hurried_) last_copies_->hurry(*hurried_);
  await_copies(then);
}

LastCopies::Sign CheckpointDesk::sign_of_copies() const {
  return {copies_->moved(), copies_->hosts_at_disk() > 0};
}

void CheckpointDesk::await_copies(const std::function<void()>& then) {
  const bool idle = copies_->idle();
  if (!idle && last_copies_->may_come(shell_.loop.now(), sign_of_copies())) {
    shell_.loop.call_after(std::chrono::milliseconds(20), [this, then] { await_copies(then); });
    return;
  }
  last_copies_.reset();
  if (!idle) {
    for (const std::string& text : copies_->lacking()) shell_.note("copy-failed", text);
  }
  then();
}

void CheckpointDesk::hurry(Duration grace) {
  hurried_ = shell_.loop.now() + grace;
  if (last_copies_) last_copies_->hurry(*hurried_);
}

std::string CheckpointDesk::copying() const {
  if (!last_copies_ || copies_->idle()) return "";
  return fmt::format("the copies of the last checkpoints on other hosts: {:.1f} MB are copied{}",
                     static_cast<double>(copies_->moved()) / 1e6,
                     copies_->hosts_at_disk() > 0 ? ", and hosts check and sync them" : "");
}

}  // namespace antdt::jobd
