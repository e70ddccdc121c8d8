// Checkpoints: gathered from the hosts that wrote them, stored, found, and sent to hosts that will
// read them. ctl/checkpoints/checkpoint_copies.h decides where they lie.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "core/clock.h"
#include "ctl/job/job_events.h"
#include "jobd/disk/checkpoint_store.h"
#include "jobd/disk/run_copies.h"
#include "jobd/held_orders.h"
#include "jobd/last_copies.h"
#include "jobd/outbox.h"

namespace antdt::jobd {

struct Shell;

class CheckpointDesk {
 public:
  CheckpointDesk(Shell& shell, const Clock& clock);

  [[nodiscard]] RunCopies& copies() { return *copies_; }
  // Lists the checkpoints on this host. An incarnation that follows another one may soon have to
  // name one for a member to read.
  void list();
  void store(const ctl::job::StoreCheckpoint& o);
  // Finds the newest checkpoint: first it fetches those that other hosts have and this one lacks.
  // While they cannot be listed, or none can be read that is there, or that a host that is away may
  // have, it looks again and again. For one that is newer than what can be read it waits a minute.
  // Who asks again meanwhile gets the same answer. If members or servers could not read what was
  // found last, it looks again after a pause.
  void find(const ctl::job::FindCheckpoint& o);
  // On all hosts.
  void remove_unfinished(ctl::copies::Age up_to);

  // Holds back the newest message to a worker at `host`, if the worker will read a checkpoint that
  // is not on that host yet.
  void hold_until_there(Member to, const std::string& host, const std::string& directory);
  // Drops an order that is held back for this member, because the member does not need it any more.
  void drop_order(Member member) { orders_.drop(member); }

  // Calls `then` with a description of the room on the disks, for people.
  void with_room(std::function<void(const std::string& about_room)> then);
  // Calls `then` with the names of all checkpoints, after the job has ended.
  void conclude(bool done, std::function<void(std::vector<std::string> names)> then);
  // Calls `then` when the last checkpoints have their copies, or when nothing has been copied for
  // so long that they are given up, which is said.
  void when_copied(std::function<void()> then);
  // They are waited for so long, and no longer.
  void hurry(Duration grace);
  // What when_copied() waits for, and how many bytes of it are there; "": for nothing.
  [[nodiscard]] std::string copying() const;

 private:
  // For checkpoints that cannot be read, by the job daemon or by members.
  struct Wait {
    std::set<std::string> said;
    std::optional<MonoTime> since;             // of the minute
    Duration pause = std::chrono::seconds(2);  // before one looks again
  };
  using StoreOrder = std::shared_ptr<const ctl::job::StoreCheckpoint>;
  void keep(const StoreOrder& order);
  void discard(const StoreOrder& order, const std::string& error);
  void await_copies(const std::function<void()>& then);
  [[nodiscard]] LastCopies::Sign sign_of_copies() const;
  void look();
  void read_newest(const RunCopies::Found& elsewhere);
  void say_once(const std::string& kind, const std::string& text);
  // `until`: for how long the job waits, in words.
  void look_again(const std::string& why, std::string_view until);
  void look_later();
  void wait_for_any(const std::string& why, std::string_view until);
  void tell_kept(const Result<std::vector<std::string>>& names, const std::string& stored = {},
                 const std::string& written = {});
  // `elsewhere`: what could not be fetched.
  void choose(const CheckpointStore::Newest& newest, const RunCopies::Found& elsewhere);
  [[nodiscard]] bool minute_is_over();
  void begin_from(const ctl::job::CheckpointFound& found);

  Shell& shell_;
  CheckpointStore store_;  // its thread uses `copies`
  std::unique_ptr<RunCopies> copies_;
  HeldOrders orders_;
  bool looking_ = false;  // find() was not answered yet
  Wait wait_;
  std::optional<LastCopies> last_copies_;  // they are waited for
  std::optional<MonoTime> hurried_;        // until then at most
};

}  // namespace antdt::jobd
