// The requests of etcd's API, version 3, that a journal needs. Keys and values are any bytes. A
// client may put a prefix before all keys, which nobody else sees.
//
// Errors of every request:
//   kUnreachable  no member answered, or the cluster has no leader or no room for now. A request
//                 that changes something may or may not have been carried out.
//   kUsage        etcd does not let this client do it: its user, password or rights. The message
//                 says what to mend.
//   kRefused      what the request is about is gone: a lease that has ended, a revision that was
//                 compacted.
//   kCorrupt      the answer cannot be read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/result.h"

namespace antdt::store {

using Revision = std::int64_t;  // of the whole store, raised by each change
using LeaseId = std::int64_t;   // 0: none

struct KeyValue {
  std::string key;
  std::string value;
  Revision changed = 0;  // the revision that wrote it
};

// The keys from `from` up to, and without, `to`; only `from` if `to` is empty.
struct KeyRange {
  std::string from;
  std::string to = {};
};
// The keys that begin with `prefix`, which must not be empty nor end with the byte 255.
[[nodiscard]] inline KeyRange keys_below(std::string prefix) {
  KeyRange range{prefix, std::move(prefix)};
  ++range.to.back();
  return range;
}

struct Put {
  std::string key;
  std::string_view value;  // must stay valid until the request returns
  LeaseId lease = 0;       // the key is deleted when this lease ends
};
struct Delete {
  KeyRange keys;
};
using Change = std::variant<Put, Delete>;

// That `key` was written last by `revision`; 0: does not exist.
struct Guard {
  std::string key;
  Revision revision = 0;
};
// Carried out as a whole if all guards hold, else not.
struct GuardedChange {
  std::vector<Guard> guards;
  std::vector<Change> changes;
};
struct ChangeAnswer {
  bool done = false;
  Revision revision = 0;  // of the store, after the change
};

struct Query {
  KeyRange keys;
  std::int64_t limit = 0;  // of keys; 0: none
  Revision at = 0;         // as the keys were at this revision; 0: now
};
struct Found {
  std::vector<KeyValue> keys;  // in their order
  bool more = false;           // `limit` left some out
  Revision revision = 0;       // of the store
};

class Etcd {
 public:
  virtual ~Etcd() = default;
  [[nodiscard]] virtual Result<ChangeAnswer> change(const GuardedChange& change) = 0;
  [[nodiscard]] virtual Result<Found> query(const Query& query) = 0;
  [[nodiscard]] virtual Result<LeaseId> grant_lease(std::chrono::seconds length) = 0;
  // Begins the lease's time anew. kRefused if it has ended.
  [[nodiscard]] virtual Status renew_lease(LeaseId lease) = 0;
  [[nodiscard]] virtual Status end_lease(LeaseId lease) = 0;
  // Forgets what keys were before `revision`. This concerns all users of the etcd.
  [[nodiscard]] virtual Status compact(Revision revision) = 0;
};

}  // namespace antdt::store
