// Requests of operators to a running job: between the launcher's commands and the job daemon.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/wire/message.h"

namespace antdt::wire {

// Operator to job daemon: requests the state as JSON, and the events from number `events_from` on.
struct StatusRequest {
  std::uint64_t events_from = 0;
  ANTDT_MESSAGE("status-request") { v("events_from", m.events_from); }
};

struct StatusReply {
  std::string status_json;
  std::vector<std::string> events;  // JSON objects, as in events.jsonl
  std::uint64_t next_event = 0;
  ANTDT_MESSAGE("status-reply") {
    v("status_json", m.status_json);
    v("events", m.events);
    v("next_event", m.next_event);
  }
};

// Ends the job in good order: with a checkpoint if possible, then exit code 75.
struct StopJob {
  std::string reason;
  std::uint32_t grace_ms = 0;
  bool has_own_grace = false;  // the grace is the job's own, failure.stop_grace
  ANTDT_MESSAGE("stop-job") {
    v("reason", m.reason);
    v("grace_ms", m.grace_ms);
    v("has_own_grace", m.has_own_grace);
  }
};

// Requests of operators. `who` is the user's name according to the operator's program; which users
// may send requests at all is decided by who can reach the socket. Answered by Done or Refused.
//
// EvictWorkers: the worker, or every worker on the host, finishes its step, gives back the records
// that it holds, and leaves. After the deadline it is killed.
struct EvictWorkers {
  std::string target;  // "w3", or a host as in [cluster] hosts or by its own name
  std::string reason;
  std::string who;
  std::uint32_t deadline_ms = 0;
  ANTDT_MESSAGE("evict") {
    v("target", m.target);
    v("reason", m.reason);
    v("who", m.who);
    v("deadline_ms", m.deadline_ms);
  }
};

enum class ResizedRole : std::uint8_t {
  kUnsaid,  // from an earlier release: workers
  kWorker,
  kServer,
};
constexpr auto names_of(ResizedRole) { return names("", "worker", "server"); }

// A host of the job is gone for certain: whoever lent it has ended all that ran there (a node that
// was given back to Slurm). It is lost at once, and not only after failure.host_lost_after of
// silence.
struct HostGone {
  std::string host;  // as in [cluster] hosts
  std::string reason;
  ANTDT_MESSAGE("host-gone") {
    v("host", m.host);
    v("reason", m.reason);
  }
};

// From now on the job has `count` workers, or parameter servers.
struct ResizeJob {
  std::uint32_t count = 0;
  std::string who;
  ResizedRole role = ResizedRole::kUnsaid;
  ANTDT_MESSAGE("resize") {
    v("count", m.count);
    v("who", m.who);
    v("role", m.role);
  }
};

// The job goes on without positions [from, to) of the open phase's stream.
struct SkipRecords {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::string reason;
  std::string who;
  ANTDT_MESSAGE("skip-records") {
    v("from", m.from);
    v("to", m.to);
    v("reason", m.reason);
    v("who", m.who);
  }
};

// Operator to job daemon: carry out the action with this number (status and events name it), if it
// still makes sense. Answered by Done or Refused.
struct ApproveAction {
  std::uint64_t number = 0;
  std::string who;
  ANTDT_MESSAGE("approve") {
    v("number", m.number);
    v("who", m.who);
  }
};

}  // namespace antdt::wire
