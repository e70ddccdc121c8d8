// Requests to an agent that are not those of a job daemon: of members of the group antdt-admin
// about a host and the jobs of others, and of users whose job daemon is on another host.
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
  bool over = false;            // it has ended, and what is left of it here is being ended
  ANTDT_PART {
    v("job", m.job);
    v("user", m.user);
    v("processes", m.processes);
    v("attached", m.attached);
    v("over", m.over);
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

// User to agent: a request of operator_messages.h for the daemon of the job in the envelope, to
// which the agent passes it on. Answered by the job daemon's own reply, or Refused by the agent. A
// user's own job is asked for anything; an administrator may ask for the status of another's, stop
// it, and evict from it. The agent writes `who`, from the user's key; a value from anyone else is
// not trusted.
struct RelayedRequest {
  std::string kind;
  std::string body;  // the request, encoded
  std::string who;
  ANTDT_MESSAGE("relayed-request") {
    v("kind", m.kind);
    v("body", m.body);
    v("who", m.who);
  }
};
// The job daemon's reply, to the agent. Its envelope repeats the number that the agent gave the
// request.
struct RelayedReply {
  std::string kind;
  std::string body;
  ANTDT_MESSAGE("relayed-reply") {
    v("kind", m.kind);
    v("body", m.body);
  }
};

}  // namespace antdt::wire
