// Which link speaks for a job: the fence between incarnations of its daemon.
// A value, no I/O.
#pragma once

#include <map>
#include <string>

#include "core/ids.h"
#include "core/result.h"

namespace antdt::antdtd {

class JobLinks {
 public:
  struct Job {
    Incarnation incarnation;  // the highest that attached
    std::string user;         // whose it is
    std::string peer;         // routing id of its link; "" while there is none
    std::string key;          // with which that link came; "" over ipc
  };

  // Makes `peer` the link of `job`. Refused: an incarnation below one seen, and
  // another user's key.
  [[nodiscard]] Status attach(const std::string& job, Incarnation incarnation,
                              const std::string& peer, const std::string& user,
                              const std::string& key = {});
  // What an earlier agent on this state directory knew.
  void restore(const std::string& job, Incarnation incarnation, const std::string& user);
  void drop_peer(const std::string& job);  // its link is gone
  void forget(const std::string& job);

  [[nodiscard]] const Job* find(const std::string& job) const;
  // Whether `peer` is the link that may speak for `job` now.
  [[nodiscard]] bool speaks_for(const std::string& peer, const std::string& job) const;
  [[nodiscard]] bool attached(const std::string& job) const;
  [[nodiscard]] const std::map<std::string, Job>& jobs() const { return jobs_; }

 private:
  std::map<std::string, Job> jobs_;
};

}  // namespace antdt::antdtd
