// What the job daemon stores besides the ledger: one small journal record that is written as a
// whole whenever it changed; the last one counts. So it may not contain anything that grows with
// the running time of a job. What is past (actions, failures whose incident is over, epochs before
// the last two) is written once, each as a record of its own, and up to a bound in the snapshot.
// What a worker told of itself is a record when the worker has ended, and the job's clock is one
// beside other records of a turn.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/wire/drill_messages.h"
#include "core/wire/membership_messages.h"
#include "core/wire/named_sums.h"
#include "ctl/job/observers/worker_times.h"
#include "ctl/lifecycle/lifecycle.h"
#include "ctl/membership/membership.h"
#include "ctl/monitor/devices.h"
#include "ctl/servers/server_group.h"

namespace antdt::ctl {

inline constexpr std::string_view kImageRecord = "job";
inline constexpr std::string_view kActionRecord = "action";    // an ImageAction
inline constexpr std::string_view kFailureRecord = "failure";  // a FailureRecord
inline constexpr std::string_view kEpochRecord = "epoch";      // an ImageEpoch
inline constexpr std::string_view kWorkerRecord = "worker";    // an ImageWorker
inline constexpr std::string_view kClockRecord = "clock";      // an ImageClock
inline constexpr std::string_view kPastSection = "past";  // a section of a snapshot: an ImagePast

struct ImageAction {
  std::uint64_t number = 0;  // from 1; 0 in a journal that numbers them by their order
  double time_s = 0;
  std::string kind, target, reason, outcome;
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("number", m.number);
    v("time_s", m.time_s);
    v("kind", m.kind);
    v("target", m.target);
    v("reason", m.reason);
    v("outcome", m.outcome);
  }
};
struct ImageEpoch {
  std::uint64_t number = 0;  // from 0; only in records
  double train_loss = 0, seconds = 0;
  std::uint64_t samples = 0;
  bool evaluated = false;
  std::uint64_t eval_records = 0;
  std::optional<double> auc, log_loss, accuracy;
  wire::NamedSums eval_named = {};
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("number", m.number);
    v("train_loss", m.train_loss);
    v("seconds", m.seconds);
    v("samples", m.samples);
    v("evaluated", m.evaluated);
    v("eval_records", m.eval_records);
    v("auc", m.auc);
    v("log_loss", m.log_loss);
    v("accuracy", m.accuracy);
    v("eval_named", m.eval_named);
  }
};

// The time that training took. Absent from journals of releases that did not keep it.
struct ImageTraining {
  std::uint64_t phase = 0;              // the training phase that is open; 0: none
  std::optional<double> phase_began_s;  // by the job's clock; a phase that is trained again began
                                        // earlier by what it took before. Empty: not known
  std::optional<double> seconds;        // of the phases that are over; empty: not known
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("phase", m.phase);
    v("phase_began_s", m.phase_began_s);
    v("seconds", m.seconds);
  }
};

// The newest one of a worker counts.
struct ImageWorker {
  WorkerId worker;
  std::optional<WorkerTimes::Times> ended;  // the sum of its attempts that have ended
  // Of the attempt that ran when a checkpoint was stored. If it lives, it tells this itself.
  std::optional<WorkerTimes::Times> present;
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("worker", m.worker);
    v("ended", m.ended);
    v("present", m.present);
  }
};

struct ImageClock {
  double seconds = 0;  // later than LifecycleImage::seconds of an image before it
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("seconds", m.seconds);
  }
};

struct ImageDeath {
  Epoch epoch;
  WorkerId worker;
  Attempt attempt;
  std::vector<std::uint64_t> bounds;  // pairs of from and to
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("epoch", m.epoch);
    v("worker", m.worker);
    v("attempt", m.attempt);
    v("bounds", m.bounds);
  }
};

// Everything that records before a snapshot contained.
struct ImagePast {
  std::vector<ImageAction> actions;
  std::vector<FailureRecord> failures;
  std::uint64_t failures_before = 0;  // how many are not kept any more
  std::vector<ImageEpoch> epochs;
  std::vector<ImageWorker> workers;
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("actions", m.actions);
    v("failures", m.failures);
    v("failures_before", m.failures_before);
    v("epochs", m.epochs);
    v("workers", m.workers);
  }
};

struct JobImage {
  LifecycleImage lifecycle;
  MembershipImage membership;
  servers::ServerGroupImage servers;
  wire::Plan plan;                       // newest plan
  std::optional<double> threshold = {};  // under Gaia: the one of the job's file, as it was then
  std::vector<ImageAction> actions;      // only in journals older than the records of actions
  std::vector<ImageEpoch> epochs;        // the last two
  std::uint64_t epochs_before = 0;       // how many there were before the last two
  std::vector<ImageDeath> deaths;        // see shard_server/suspects/suspects.h
  std::uint64_t cut_phase = 0;  // the ledger's phase when the servers' last cut was ordered
  wire::Injected injected;      // newest fault injection
  std::vector<Devices::Said> devices;
  std::optional<ImageTraining> training = {};
  std::optional<wire::PsStats> decided = {};  // see ServerStats::earlier
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("lifecycle", m.lifecycle);
    v("membership", m.membership);
    v("servers", m.servers);
    v("plan", m.plan);
    v("threshold", m.threshold);
    v("actions", m.actions);
    v("epochs", m.epochs);
    v("epochs_before", m.epochs_before);
    v("deaths", m.deaths);
    v("cut_phase", m.cut_phase);
    v("injected", m.injected);
    v("devices", m.devices);
    v("training", m.training);
    v("decided", m.decided);
  }
};

}  // namespace antdt::ctl
