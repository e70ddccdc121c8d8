// A job daemon that stands by on a host of the job (antdt-jobd --standby): it waits until nobody
// holds the job's lock in etcd any more, and goes on with the job.
//
// While it waits it holds nothing but the private directory of its sockets. Then it lays what the
// job daemon needs into the run directory of this host: the files that the one before kept in etcd,
// and control.json, by which the commands of antdt find it here.
#pragma once

#include <memory>
#include <string>

#include "core/schema/etcd_address.h"
#include "jobd/job_daemon.h"

namespace antdt::jobd {

struct StandbyOptions {
  EtcdAddress etcd;
  std::string journal;  // the job's name in etcd
  std::string keys;     // cluster.keys of the job
};

// Returns once this process has the job. `options` lacks the directory of sockets. SIGTERM and
// SIGINT are blocked from now on. Errors: kAborted if one of them came, or the job has ended;
// kUsage if this host lacks what a job daemon needs, or if etcd has no such job any more.
[[nodiscard]] Result<std::unique_ptr<JobDaemon>> stand_by(EventLoop& loop, const Clock& clock,
                                                          transport::Context& context,
                                                          Options options,
                                                          const StandbyOptions& standby);

}  // namespace antdt::jobd
