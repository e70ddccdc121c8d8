// Which link speaks for a job: the fence between incarnations of its daemon. docs/machines.md
// describes the shape of a machine.
//
// For each job:
//
//   unknown ──AttachAsked──> attached (AdmitLink)
//   unknown ──JobFound──> away
//   attached, away ──AttachAsked, of the newest incarnation or a later one──> attached (AdmitLink)
//   attached, away ──AttachAsked, of an older one or another user──> as it was (RefuseLink)
//   attached ──AttachFailed──> as it was before AttachAsked
//   attached ──LinkLost──> away
//   any ──JobForgotten──> unknown
//
// The newest incarnation and the user are durable if the driver stores them before it acts on an
// AdmitLink whose is_new is set. If it cannot, AttachFailed follows, or the daemon's next attempt
// would not be new.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/ids.h"

namespace antdt::antdtd {

namespace links {

struct Link {
  std::string peer;
  std::string key;
};
struct LinkedJob {
  Incarnation incarnation;   // the highest that attached
  std::string user;          // the job's owner
  std::optional<Link> link;  // none: the job's daemon is away
};

// A job daemon wants to speak for its job over the link to `peer`.
struct AttachAsked {
  std::string job;
  Incarnation incarnation;
  std::string peer;      // routing id
  std::string user;      // the owner of the key with which the link was opened
  std::string key = {};  // that key; "" over ipc
};
// What an earlier agent on this state directory knew.
struct JobFound {
  std::string job;
  Incarnation incarnation;
  std::string user;
};
struct LinkLost {
  std::string job;
};
struct JobForgotten {
  std::string job;
};
// What an AdmitLink demands could not be done.
struct AttachFailed {
  std::string job;
  std::optional<LinkedJob> before;  // the job before AttachAsked; none: it was unknown
};
using Input = std::variant<AttachAsked, JobFound, LinkLost, JobForgotten, AttachFailed>;

// The link speaks for the job from now on.
struct AdmitLink {
  bool is_new = false;  // an incarnation that attached for the first time; it must be made durable
                        // first
};
struct RefuseLink {
  std::string reason;
};
using Effect = std::variant<AdmitLink, RefuseLink>;
using Effects = std::vector<Effect>;

}  // namespace links

class JobLinks {
 public:
  using Link = links::Link;
  using Job = links::LinkedJob;

  // Appends to `out`.
  void step(const links::Input& input, links::Effects& out);

  [[nodiscard]] const Job* find(const std::string& job) const;
  // Whether `peer` is the link that may speak for `job` now.
  [[nodiscard]] bool speaks_for(const std::string& peer, const std::string& job) const;
  [[nodiscard]] bool attached(const std::string& job) const;
  [[nodiscard]] const std::map<std::string, Job>& jobs() const { return jobs_; }

 private:
  void on(const links::AttachAsked& input, links::Effects& out);
  void on(const links::JobFound& input, links::Effects& out);
  void on(const links::LinkLost& input, links::Effects& out);
  void on(const links::JobForgotten& input, links::Effects& out);
  void on(const links::AttachFailed& input, links::Effects& out);
  void check_invariants() const;

  std::map<std::string, Job> jobs_;
};

}  // namespace antdt::antdtd
