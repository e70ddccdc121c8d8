// An etcd in memory: revisions, leases and compaction as etcd has them, and the faults of a
// network.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/overloaded.h"
#include "store/etcd.h"

namespace antdt::store {

struct FakeCluster {
  struct Value {
    std::string bytes;
    Revision changed = 0;
    LeaseId lease = 0;
  };
  std::map<std::string, Value> keys;
  std::set<LeaseId> leases;
  Revision revision = 1;
  Revision compacted = 0;
  LeaseId last_lease = 0;

  // What happens to the next requests that change keys, in order; then all go well.
  enum class Fault {
    kNone,
    kNotCarriedOut,  // no answer, and nothing was done
    kAnswerLost,     // no answer, but it was done
    kLate,           // no answer; it is done when late() is called
  };
  std::deque<Fault> faults;
  bool is_down = false;
  Duration silence{};  // how long a request takes while it is down
  MonoTime now{};
  std::deque<Duration> answer_takes;    // of the next changes; then none takes any time
  std::function<void()> before_answer;  // of the next change that takes time
  std::size_t requests = 0;
  std::size_t largest = 0;  // bytes of a value
  std::deque<std::function<void()>> late_requests;

  void end_lease(LeaseId lease) {
    leases.erase(lease);
    if (std::erase_if(keys, [&](const auto& k) { return k.second.lease == lease; }) > 0) {
      ++revision;
    }
  }
  void late() {
    for (const auto& request : std::exchange(late_requests, {})) request();
  }
  [[nodiscard]] std::size_t count_below(const std::string& part) const {
    std::size_t count = 0;
    for (const auto& [key, value] : keys) count += key.find(part) != std::string::npos ? 1 : 0;
    return count;
  }

  ChangeAnswer carry_out(const std::vector<Guard>& guards, const std::vector<Change>& changes) {
    for (const Guard& guard : guards) {
      const auto found = keys.find(guard.key);
      if ((found == keys.end() ? 0 : found->second.changed) != guard.revision) {
        return {false, revision};
      }
    }
    for (const Change& change : changes) {  // etcd refuses a lease that it does not know
      const Put* put = std::get_if<Put>(&change);
      if (put != nullptr && put->lease != 0 && !leases.contains(put->lease))
        return {false, revision};
    }
    ++revision;
    for (const Change& change : changes) {
      std::visit(Overloaded{[&](const Put& put) {
                              largest = std::max(largest, put.value.size());
                              keys[put.key] = {std::string(put.value), revision, put.lease};
                            },
                            [&](const Delete& gone) {
                              keys.erase(keys.lower_bound(gone.keys.from),
                                         keys.lower_bound(gone.keys.to));
                            }},
                 change);
    }
    return {true, revision};
  }
};

class FakeEtcd final : public Etcd {
 public:
  explicit FakeEtcd(FakeCluster& cluster) : c_(cluster) {}

  Result<ChangeAnswer> change(const GuardedChange& change) override {
    ANTDT_RETURN_IF_ERROR(reach());
    FakeCluster::Fault fault = FakeCluster::Fault::kNone;
    if (!c_.faults.empty()) {
      fault = c_.faults.front();
      c_.faults.pop_front();
    }
    switch (fault) {
      case FakeCluster::Fault::kNone: {
        const ChangeAnswer answer = c_.carry_out(change.guards, change.changes);
        if (!c_.answer_takes.empty()) {
          c_.now += c_.answer_takes.front();
          c_.answer_takes.pop_front();
          if (c_.before_answer) c_.before_answer();
        }
        return answer;
      }
      case FakeCluster::Fault::kAnswerLost:
        c_.carry_out(change.guards, change.changes);
        break;
      case FakeCluster::Fault::kLate:
        c_.late_requests.push_back(late(change));
        break;
      case FakeCluster::Fault::kNotCarriedOut:
        break;
    }
    return fail(ErrorKind::kUnreachable, "h1:2379: timed out");
  }
  Result<Found> query(const Query& query) override {
    ANTDT_RETURN_IF_ERROR(reach());
    if (query.at != 0 && query.at < c_.compacted) {
      return fail(ErrorKind::kRefused, "required revision has been compacted");
    }
    Found found{{}, false, c_.revision};
    for (auto it = c_.keys.lower_bound(query.keys.from); it != c_.keys.end(); ++it) {
      const bool in =
          query.keys.to.empty() ? it->first == query.keys.from : it->first < query.keys.to;
      if (!in) break;
      if (query.limit != 0 && found.keys.size() == static_cast<std::size_t>(query.limit)) {
        found.more = true;
        break;
      }
      found.keys.push_back({it->first, it->second.bytes, it->second.changed});
    }
    return found;
  }
  Result<LeaseId> grant_lease(std::chrono::seconds) override {
    ANTDT_RETURN_IF_ERROR(reach());
    c_.leases.insert(++c_.last_lease);
    return c_.last_lease;
  }
  Status renew_lease(LeaseId lease) override {
    ANTDT_RETURN_IF_ERROR(reach());
    if (c_.leases.contains(lease)) return {};
    return fail(ErrorKind::kRefused, "the lease has ended");
  }
  Status end_lease(LeaseId lease) override {
    ANTDT_RETURN_IF_ERROR(reach());
    c_.end_lease(lease);
    return {};
  }
  Status compact(Revision revision) override {
    ANTDT_RETURN_IF_ERROR(reach());
    c_.compacted = std::max(c_.compacted, revision);
    return {};
  }

 private:
  Status reach() {
    ++c_.requests;
    if (!c_.is_down) return {};
    c_.now += c_.silence;
    return fail(ErrorKind::kUnreachable, "h1:2379: connection refused");
  }
  // The request with values of its own, since the caller's do not last.
  std::function<void()> late(const GuardedChange& change) {
    std::vector<std::string> values;
    for (const Change& one : change.changes) {
      const Put* put = std::get_if<Put>(&one);
      values.emplace_back(put == nullptr ? "" : put->value);
    }
    return [&cluster = c_, copy = change, values]() mutable {
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (auto* put = std::get_if<Put>(&copy.changes[i])) put->value = values[i];
      }
      cluster.carry_out(copy.guards, copy.changes);
    };
  }
  FakeCluster& c_;
};

}  // namespace antdt::store
