// Requests of members of a cluster's group antdt-admin about jobs of others.
#pragma once

#include <optional>
#include <vector>

#include "core/wire/drain.h"
#include "core/wire/message.h"

namespace antdt::wire {

// Administrator to agent: which jobs have a daemon that is attached here? Other users are told only
// their own jobs.
struct JobsRequest {
  ANTDT_MESSAGE("jobs-request") {}
};
struct JobHere {
  std::string job;
  std::string user;
  std::uint32_t processes = 0;  // how many of its processes run on this host
  bool attached = false;        // its daemon can be reached from here
  ANTDT_PART {
    v("job", m.job);
    v("user", m.user);
    v("processes", m.processes);
    v("attached", m.attached);
  }
};
struct JobsReply {
  std::vector<JobHere> jobs;
  std::optional<Drain> drain = {};  // while the host is drained
  ANTDT_MESSAGE("jobs-reply") {
    v("jobs", m.jobs);
    v("drain", m.drain);
  }
};

// Administrator, or the user as whom the agent runs, to agent: drain this host, or end that. It
// holds across jobs and restarts of the agent. Answered by Done or Refused.
struct DrainHost {
  bool drained = true;
  std::string reason;
  ANTDT_MESSAGE("drain-host") {
    v("drained", m.drained);
    v("reason", m.reason);
  }
};

enum class AdminOrderKind : std::uint8_t {
  kStop,   // like StopJob
  kEvict,  // like EvictWorkers
};
constexpr auto names_of(AdminOrderKind) { return names("stop", "evict"); }

// Administrator to agent, for the daemon of the job in the envelope, to which the agent passes it
// on. Answered by Done or Refused. The agent writes `who`, from the administrator's key; a value
// from anyone else is not trusted.
struct AdminOrder {
  AdminOrderKind order = AdminOrderKind::kStop;
  std::string target;  // for kEvict
  std::string reason;
  std::uint32_t time_ms = 0;  // grace or deadline; 0: the job's own
  std::string who;
  ANTDT_MESSAGE("admin-order") {
    v("order", m.order);
    v("target", m.target);
    v("reason", m.reason);
    v("time_ms", m.time_ms);
    v("who", m.who);
  }
};
// The job daemon's answer to the agent: Done, or Refused with its reason. Its envelope repeats the
// number that the agent gave the order.
struct AdminAnswer {
  bool done = false;
  std::string reason;
  ANTDT_MESSAGE("admin-answer") {
    v("done", m.done);
    v("reason", m.reason);
  }
};

}  // namespace antdt::wire
