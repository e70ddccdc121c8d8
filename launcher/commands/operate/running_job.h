// A connection to a running job, for an operator's request.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/transport/socket.h"
#include "launcher/commands/operate/through_agent.h"
#include "launcher/commands/show/runs.h"
#include "launcher/start/job_link.h"
#include "launcher/start/run_directory.h"
#include "launcher/view/status_view.h"

namespace antdt::cli {

struct RunningJob {
  enum class Place {
    kHere,       // its daemon runs on this host
    kElsewhere,  // it goes on elsewhere, and its run directory is here
    kUnknown,    // only its id and an agent that leads to it are known
  };
  Place place = Place::kHere;
  std::string run_dir;  // kUnknown: the job's id
  launcher::RunControl control;
  // Must outlive the link: it cannot end before the link's socket is closed. So another RunningJob
  // takes the place of this one by std::swap; an assignment would end this context first.
  std::unique_ptr<transport::Context> context;
  launcher::JobLink link;
  ThroughAgent through = {};  // the agent through which the link leads, if one does
  // At its files, which may not answer: state_of() leaves one thread behind, however often it asks.
  std::shared_ptr<PendingLooks> looks = std::make_shared<PendingLooks>();
};

// Through an agent if one is named (then RUN is a job's id); else the job daemon on this host, or,
// if the run's job goes on elsewhere, that one, through an agent of the job's hosts. The run's
// filesystem need not answer if its processes are here. The error
// (kUsage, kUnreachable, kIo) says where the job is instead and what to do.
[[nodiscard]] Result<RunningJob> reach(const std::string& job, const ThroughAgent& through = {});
// Opens the link without asking anything.
[[nodiscard]] Result<RunningJob> reach_through(const ThroughAgent& through, const std::string& job);

// RUN of a command for this job, for people, with the options that lead there.
[[nodiscard]] std::string named(const RunningJob& job);

// Whether the job runs, here or elsewhere; it does, as far as is known, if its filesystem does not
// answer, or with an error. kBrokenOff if the agent through which it was reached
// says that the job is not there or has ended; an error if that agent says nothing about it, which
// (kUnreachable) may pass.
[[nodiscard]] Result<RunState> state_of(const RunningJob& job);

// Through an agent that does not lead to the job daemon any more, another one is tried.
[[nodiscard]] Result<report::Status> status_of(RunningJob& job);

// The same before an order is given: a job daemon that does not answer while its processes are
// there is waited for, as wait_until() does. Through an agent alone it is not known whether they
// are.
[[nodiscard]] Result<report::Status> await_status(RunningJob& job);

// Gives an operator's order (JobLink::order) and waits until the job daemon has it in its journal,
// for two minutes at most, and half a minute for an agent that is away; standard error says so
// meanwhile. kRefused with the job daemon's reason, or if the job ends first; kUnreachable if the
// job's processes disappear, or without an answer, when the order may have been carried out.
template <class Order>
[[nodiscard]] Status give(RunningJob& job, const Order& order);

// Asks for the job's status until `happened` is true. If that takes long, standard error says what
// the job waits for. kUnreachable if the job's processes disappear, or if the agent that leads to
// the job is away for half a minute; kRefused if the job ends first.
[[nodiscard]] Status wait_until(RunningJob& job,
                                const std::function<bool(const report::Status&)>& happened);

// What has happened to the job, as far as its daemon keeps that.
[[nodiscard]] Result<std::vector<launcher::EventView>> events_of(RunningJob& job);

// A duration on the command line, such as "90s", in milliseconds. kUsage, which names the `option`,
// for what is none or more than 49 days.
[[nodiscard]] Result<std::uint32_t> milliseconds_of(const char* option, const std::string& text);

// Whether no worker is awaited and none is about to leave, so that all that are there train.
[[nodiscard]] bool is_settled(const report::Status& status);

}  // namespace antdt::cli
