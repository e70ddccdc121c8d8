#include "antdtd/agent/job_links.h"

namespace antdt::antdtd {

Status JobLinks::attach(const std::string& job, Incarnation incarnation, const std::string& peer,
                        const std::string& user, const std::string& key) {
  const auto known = jobs_.find(job);
  if (known != jobs_.end()) {
    const Job& seen = known->second;
    if (user != seen.user) {
      return fail(ErrorKind::kRefused,
                  "job {} belongs to the user '{}' on this agent: '{}' cannot take it over", job,
                  seen.user, user);
    }
    if (incarnation < seen.incarnation) {
      return fail(ErrorKind::kRefused,
                  "incarnation {} of job {} is over: incarnation {} of its daemon attached here",
                  incarnation, job, seen.incarnation);
    }
  }
  jobs_[job] = Job{incarnation, user, peer, key};
  return {};
}

void JobLinks::restore(const std::string& job, Incarnation incarnation, const std::string& user) {
  jobs_[job] = Job{incarnation, user, {}, {}};
}

void JobLinks::drop_peer(const std::string& job) {
  const auto it = jobs_.find(job);
  if (it == jobs_.end()) return;
  it->second.peer.clear();
  it->second.key.clear();
}

void JobLinks::forget(const std::string& job) { jobs_.erase(job); }

const JobLinks::Job* JobLinks::find(const std::string& job) const {
  const auto it = jobs_.find(job);
  return it == jobs_.end() ? nullptr : &it->second;
}

bool JobLinks::speaks_for(const std::string& peer, const std::string& job) const {
  const Job* known = find(job);
  return known != nullptr && !peer.empty() && known->peer == peer;
}

bool JobLinks::attached(const std::string& job) const {
  const Job* known = find(job);
  return known != nullptr && !known->peer.empty();
}

}  // namespace antdt::antdtd
