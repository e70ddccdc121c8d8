// Checkpoints: gathered from the hosts that wrote them, stored, looked for, and sent to hosts that
// are to read them. Where they lie is decided in ctl/checkpoints/checkpoint_copies.h.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/clock.h"
#include "ctl/job/job_events.h"
#include "jobd/disk/checkpoint_store.h"
#include "jobd/disk/run_copies.h"
#include "jobd/held_orders.h"
#include "jobd/outbox.h"

namespace antdt::jobd {

struct Shell;

class CheckpointDesk {
 public:
  explicit CheckpointDesk(Shell& shell);

  [[nodiscard]] RunCopies& copies() { return *copies_; }
  // An incarnation that follows another one may have to say soon who is to read one of them.
  void list();
  void store(const ctl::job::StoreCheckpoint& o);
  // First what other hosts have and this one has not; then the newest that is here.
  void find();

  // The newest message, to a worker at `host`, is held back if that worker goes on to read a
  // checkpoint that is not there yet.
  void hold_until_there(Member to, const std::string& host, const std::string& directory);
  // A member has no use for an order that was said before and is not on its way yet.
  void drop_order(Member member) { orders_.drop(member); }

  // With how much room there is, for people.
  void with_room(std::function<void(const std::string& about_room)> then);
  // The names of all, when the job has ended.
  void conclude(bool done, std::function<void(std::vector<std::string> names)> then);
  // The last checkpoint is to have its copies too, if that can be done soon.
  void when_copied(MonoTime until, std::function<void()> then);

 private:
  using StoreOrder = std::shared_ptr<const ctl::job::StoreCheckpoint>;
  void keep(const StoreOrder& order);
  void read_newest();
  void begin_from(const CheckpointStore::Newest& newest);

  Shell& shell_;
  CheckpointStore store_;  // its thread uses copies
  std::unique_ptr<RunCopies> copies_;
  HeldOrders orders_;
};

}  // namespace antdt::jobd
