// The workers to which the job speaks, and what it knows of them besides their process. Loose
// clients, which are members of no group, are listed here.
#pragma once

#include <string>
#include <vector>

#include "core/ids.h"
#include "ctl/job/job_events.h"
#include "ctl/monitor/monitor.h"
#include "ctl/servers/group_events.h"
#include "shard_server/pins/pins.h"

namespace antdt::ctl::job {

struct Parts;
class Work;

class Members {
 public:
  explicit Members(Parts& parts) : parts_(parts) {}

  [[nodiscard]] const std::vector<Member>& loose() const { return loose_; }
  // A newer attempt replaces an older one. False if this attempt is listed already.
  bool add_loose(Member member);
  // False if it is not listed.
  bool remove_loose(Member member);

  // Sends to every member of the group, in the generation that is in force.
  void send_to_group(const WorkerMessage& body, Work& work) const;
  // Sends to every worker whose process runs, whether or not it is a member.
  void send_to_running(const WorkerMessage& body, Work& work) const;

  // A worker cannot work with the parameter servers: a person is told, and the job fails if that was
  // the last attempt.
  void report(const servers::ReportTrouble& trouble, Work& work) const;

  // The name of the host at this end point, as people know it.
  [[nodiscard]] std::string host_name(const std::string& endpoint) const;
  // To which domain the records are pinned that this worker is given; 0: no record is pinned, or
  // none to its domain.
  [[nodiscard]] shard_server::DomainNumber domain_of(Member member) const;
  // The name of the domain that it is in; "": none.
  [[nodiscard]] std::string domain_name_of(Member member) const;
  [[nodiscard]] Monitor::MemberInfo info_of(Member member, std::string host) const;
  // What is left to the domains of these members; between two training phases, all that is pinned
  // to them.
  [[nodiscard]] DomainRests rests_of(const std::vector<Member>& group) const;
  // Ends a process that the group has waited for in vain, because of `what`. If another one of the
  // `missing` reads a checkpoint or indexes the data, this one may only wait for that, which is
  // ended in its place when it stands still.
  void end_silent(Member silent, const std::string& what, const std::vector<Member>& missing,
                  Work& work) const;

 private:
  Parts& parts_;
  std::vector<Member> loose_;
};

}  // namespace antdt::ctl::job
