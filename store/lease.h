// Keeps a lease alive from a thread of its own, so that neither the loop of a daemon nor a write
// that waits for etcd lets it end.
#pragma once

#include <memory>

#include "store/etcd.h"

namespace antdt::store {

// A lease that somebody keeps alive.
class HeldLease {
 public:
  virtual ~HeldLease() = default;
  // Whether etcd has said that the lease ended. Until etcd can be asked, this is not known.
  [[nodiscard]] virtual bool has_ended() const = 0;
};

// Renews `lease` three times in its length, over `etcd`, which nobody else uses meanwhile. The
// lease is not ended with this object: then it lasts for its length.
class LeaseThread final : public HeldLease {
 public:
  LeaseThread(std::shared_ptr<Etcd> etcd, LeaseId lease, std::chrono::seconds length);
  ~LeaseThread() override;
  LeaseThread(const LeaseThread&) = delete;
  LeaseThread& operator=(const LeaseThread&) = delete;

  [[nodiscard]] bool has_ended() const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace antdt::store
