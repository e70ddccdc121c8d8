// Whom the job speaks to, and what it knows of them beside their process: loose clients, which are
// members of no group, are kept here.
#pragma once

#include <string>
#include <vector>

#include "core/ids.h"
#include "ctl/job/job_events.h"
#include "ctl/monitor/monitor.h"

namespace antdt::ctl::job {

struct Parts;
class Work;

class Members {
 public:
  explicit Members(Parts& parts) : parts_(parts) {}

  [[nodiscard]] const std::vector<Member>& loose() const { return loose_; }
  // A newer attempt takes the place of an older one. False: it is one already.
  bool add_loose(Member member);
  // False: it is none.
  bool remove_loose(Member member);

  // In the generation that is in force: to every member of the group.
  void send_to_group(const WorkerMessage& body, Work& work) const;
  // To every worker whose process runs, member or not.
  void send_to_running(const WorkerMessage& body, Work& work) const;

  // As people know the host at this end point.
  [[nodiscard]] std::string host_name(const std::string& endpoint) const;
  [[nodiscard]] Monitor::MemberInfo info_of(Member member, std::string host) const;

 private:
  Parts& parts_;
  std::vector<Member> loose_;
};

}  // namespace antdt::ctl::job
