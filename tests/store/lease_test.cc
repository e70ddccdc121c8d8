#include "store/lease.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "fake_etcd.h"

namespace antdt::store {
namespace {

// An etcd that counts how often a lease was renewed, and lets somebody wait for it.
struct Renewals {
  std::mutex mutex;
  std::condition_variable changed;
  int count = 0;
  bool is_down = false, has_ended = false;

  void await(int wanted) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return count >= wanted; });
  }
};

class RenewingEtcd final : public Etcd {
 public:
  explicit RenewingEtcd(Renewals& renewals) : r_(renewals) {}
  Status renew_lease(LeaseId) override {
    const std::lock_guard lock(r_.mutex);
    ++r_.count;
    r_.changed.notify_all();
    if (r_.is_down) return fail(ErrorKind::kUnreachable, "timed out");
    if (r_.has_ended) return fail(ErrorKind::kRefused, "the lease has ended");
    return {};
  }
  Result<ChangeAnswer> change(const GuardedChange&) override { return ChangeAnswer{}; }
  Result<Found> query(const Query&) override { return Found{}; }
  Result<LeaseId> grant_lease(std::chrono::seconds) override { return 1; }
  Status end_lease(LeaseId) override { return {}; }
  Status compact(Revision) override { return {}; }

 private:
  Renewals& r_;
};

TEST(LeaseThread, RenewsUntilEtcdSaysThatTheLeaseEnded) {
  Renewals renewals;
  renewals.is_down = true;
  LeaseThread lease(std::make_unique<RenewingEtcd>(renewals), 1, std::chrono::seconds(1));
  renewals.await(2);
  EXPECT_FALSE(lease.has_ended()) << "an etcd that does not answer has not said so";
  {
    const std::lock_guard lock(renewals.mutex);
    renewals.is_down = false;
    renewals.has_ended = true;
  }
  renewals.await(3);
  while (!lease.has_ended()) std::this_thread::yield();
}

TEST(LeaseThread, EndsAtOnce) {
  Renewals renewals;
  const auto begun = SteadyClock().now();
  { LeaseThread lease(std::make_unique<RenewingEtcd>(renewals), 1, std::chrono::seconds(3600)); }
  EXPECT_LT(SteadyClock().now() - begun, std::chrono::seconds(60));
}

}  // namespace
}  // namespace antdt::store
