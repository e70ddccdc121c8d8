#include "antdtd/agent/job_links.h"

#include <fmt/format.h>

#include "core/check.h"

namespace antdt::antdtd {

void JobLinks::step(const links::Input& input, links::Effects& out) {
  std::visit([&](const auto& i) { on(i, out); }, input);
  check_invariants();
}

// To: attached; unchanged, if the link is refused.
void JobLinks::on(const links::AttachAsked& input, links::Effects& out) {
  const Job* const known = find(input.job);
  if (known != nullptr && input.user != known->user) {
    out.emplace_back(links::RefuseLink{
        fmt::format("job {} belongs to the user '{}' on this agent: '{}' cannot take it over",
                    input.job, known->user, input.user)});
    return;
  }
  if (known != nullptr && input.incarnation < known->incarnation) {
    out.emplace_back(links::RefuseLink{
        fmt::format("incarnation {} of job {} is over: incarnation {} of its daemon attached here",
                    input.incarnation, input.job, known->incarnation)});
    return;
  }
  out.emplace_back(links::AdmitLink{known == nullptr || known->incarnation != input.incarnation});
  jobs_[input.job] = Job{input.incarnation, input.user, Link{input.peer, input.key}};
}

// To: away.
void JobLinks::on(const links::JobFound& input, links::Effects&) {
  jobs_[input.job] = Job{input.incarnation, input.user, {}};
}

// From: attached. To: away.
void JobLinks::on(const links::LinkLost& input, links::Effects&) {
  const auto known = jobs_.find(input.job);
  if (known != jobs_.end()) known->second.link.reset();
}

// To: unknown.
void JobLinks::on(const links::JobForgotten& input, links::Effects&) { jobs_.erase(input.job); }

// From: attached. To: what it was.
void JobLinks::on(const links::AttachFailed& input, links::Effects&) {
  if (input.before) {
    jobs_[input.job] = *input.before;
  } else {
    jobs_.erase(input.job);
  }
}

void JobLinks::check_invariants() const {
  for (const auto& [name, job] : jobs_) {
    ANTDT_CHECK(!job.link || !job.link->peer.empty(), "job {} is spoken for by no peer", name);
  }
}

const JobLinks::Job* JobLinks::find(const std::string& job) const {
  const auto it = jobs_.find(job);
  return it == jobs_.end() ? nullptr : &it->second;
}

bool JobLinks::speaks_for(const std::string& peer, const std::string& job) const {
  const Job* const known = find(job);
  return known != nullptr && known->link && known->link->peer == peer;
}

bool JobLinks::attached(const std::string& job) const {
  const Job* const known = find(job);
  return known != nullptr && known->link.has_value();
}

}  // namespace antdt::antdtd
