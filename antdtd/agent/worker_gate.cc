#include "antdtd/agent/worker_gate.h"

namespace antdt::antdtd {

std::optional<wire::Refused> refusal_of(const ProcessKey& key, const Supervision& supervision) {
  if (supervision.newest(key.job, key.member.worker) > key.member.attempt) {
    return wire::Refused{wire::RefusalCode::kStale,
                         "a newer attempt of " + to_string(key.member.worker) +
                             " was started: this one is to end without changing anything"};
  }
  if (supervision.find(key) == nullptr) {
    return wire::Refused{
        wire::RefusalCode::kUnknown,
        "this agent did not start " + describe(key) +
            "; ANTDT_JOB_ID, ANTDT_WORKER_ID and ANTDT_ATTEMPT must be those it gave"};
  }
  return std::nullopt;
}

bool hears_job_daemon(const ProcessKey& key, const Supervision& supervision) {
  const Supervision::Process* const process = supervision.find(key);
  return process != nullptr && process->live();
}

}  // namespace antdt::antdtd
