// Checkpoints of hosts that share nothing: what is fetched before it is kept, and sent before it
// is read. What decides is ctl/checkpoints/checkpoint_copies.h.
#include <utility>

#include "jobd/job_daemon.h"

namespace antdt::jobd {

void JobDaemon::open_copies() {
  copies_ = std::make_unique<RunCopies>(
      loop_, RunCopies::Options{options_.run_dir, config_.job.id, config_.checkpoint.copies},
      RunCopies::Handlers{[this](const std::string& kind, const std::string& text) {
                            perform(ctl::job::PublishNote{kind, text, ""});
                          },
                          [this] {
                            if (!ended_) feed(ctl::job::CheckpointFilesMoved{});
                          }});
}

// An incarnation that follows another one may have to say soon who is to read one of them.
void JobDaemon::list_checkpoints() {
  disks_.checkpoints().run("listing the checkpoints", [this, store = checkpoints_] {
    return [this, kept = store.list()] { copies_->kept(kept); };
  });
}

// A run that goes on from the checkpoint knows what made the steps up to it.
void JobDaemon::keep_checkpoint(const StoreOrder& order) {
  history_.sync([this, order](bool) {
    disks_.checkpoints().run("storing a checkpoint", [this, order, store = checkpoints_]() mutable {
      const auto name = store.store(*order);
      return [this, order, name, kept = store.list()] {
        if (name) copies_->kept(kept, *name, order->written.directory);
        feed(ctl::job::CheckpointStored{order->written.number, order->written.step,
                                        name.value_or(""), name ? "" : name.error().message});
      };
    });
  });
}

void JobDaemon::perform(const ctl::job::StoreCheckpoint& o) {
  const auto order = std::make_shared<const ctl::job::StoreCheckpoint>(o);
  copies_->gather(
      o.written.number, o.written.directory, o.parts, [this, order](const std::string& error) {
        if (error.empty()) return keep_checkpoint(order);
        feed(ctl::job::CheckpointStored{order->written.number, order->written.step, "", error});
      });
}

// First what other hosts have and this one has not; then the newest that is here.
void JobDaemon::perform(const ctl::job::FindCheckpoint&) {
  disks_.checkpoints().run("looking for the newest checkpoint", [this, store = checkpoints_] {
    const auto newest = std::make_shared<const CheckpointStore::Newest>(store.newest());
    return [this, newest, kept = store.list()] {
      copies_->kept(kept);
      for (const std::string& problem : newest->problems) {
        perform(ctl::job::PublishNote{"checkpoint-damaged", problem, ""});
      }
      copies_->find(newest->found.directory, [this, newest](bool fetched) {
        fetched ? find_checkpoint() : begin_from(*newest);
      });
    };
  });
}

void JobDaemon::find_checkpoint() {
  disks_.checkpoints().run("reading a checkpoint", [this, store = checkpoints_] {
    const auto newest = std::make_shared<const CheckpointStore::Newest>(store.newest());
    return [this, newest, kept = store.list()] {
      copies_->kept(kept);
      begin_from(*newest);
    };
  });
}

void JobDaemon::begin_from(const CheckpointStore::Newest& newest) {
  feed(newest.found);
  declare_skips();
}

// Whoever hears that has no use for an order that was said before and is not on its way yet.
bool JobDaemon::ends_order(const ctl::job::WorkerMessage& body) {
  return std::holds_alternative<wire::Abort>(body) || std::holds_alternative<wire::Leave>(body);
}

// What is said later to the same member takes its place.
void JobDaemon::hold(Member member, const std::string& host, const std::string& directory,
                     Outgoing order) {
  if (const auto held = held_.find(member);
      held != held_.end() && held->second.directory == directory) {
    held->second.order = std::move(order);  // said again
    return;
  }
  const std::uint64_t number = ++last_held_;
  held_[member] = {number, directory, std::move(order)};
  copies_->reach(host, directory, [this, member, number](const std::string& /*error*/) {
    const auto held = held_.find(member);
    if (held == held_.end() || held->second.number != number) return;
    outbox_.push_back(std::move(held->second.order));
    held_.erase(held);
  });
}

// The last checkpoint is to have its copies too, if that can be done soon.
void JobDaemon::leave_when_copied(MonoTime until) {
  if (!copies_->idle() && loop_.now() < until) {
    loop_.call_after(std::chrono::milliseconds(20), [this, until] { leave_when_copied(until); });
    return;
  }
  if (links_) links_->detach();
  loop_.call_after(std::chrono::milliseconds(200), [this] { loop_.stop(); });
}

}  // namespace antdt::jobd
