// What the controller and its solutions see of a job: one plain value, made by
// the monitor and completed by the controller.
//
// Fields that nothing measures yet are empty and say so; a solution must bear
// that. Speeds are in samples a second of a worker's own work (getting data and
// computing), never of the step: under all-reduce every worker's step takes
// equally long, and the one that makes the others wait waits least.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/job_states.h"
#include "core/wire/training_messages.h"
#include "ctl/control/bounded_plan.h"
#include "ctl/control/plan.h"

namespace antdt::ctl {

enum class VerdictKind {
  kNone,
  kTransient,      // slower than its peers now
  kPersistent,     // ... for the whole persistent window
  kDeterministic,  // ... since it was first measured: slower hardware
  kLeader,         // faster than its peers
};
enum class Cause {
  kUnknown,
  kData,       // it waits for its records
  kCompute,    // it computes longer, and its host saw nothing that explains it
  kThrottled,  // a bound on its CPU time: a cgroup's quota, or a drill
  kStolen,     // its machine's CPUs were given to other machines
  kContended,  // it could run and had no CPU: others on its host have them
  kMemory,     // its host is short of memory
  kClocks,     // its accelerator's clocks are held down
  kNetwork,    // its link
  kDevice,     // it computes on a slower device than the others
};
[[nodiscard]] std::string_view to_string(VerdictKind kind);  // "none", "transient", ...
[[nodiscard]] std::string_view to_string(Cause cause);       // "unknown", "data", ...

struct Verdict {
  VerdictKind kind = VerdictKind::kNone;
  // Median speed of the other workers over this one's: 3 is three times
  // slower, 0.5 twice as fast. Of a slow link: how many times longer a step takes.
  double severity = 1;
  Cause cause = Cause::kUnknown;
  std::string seen = {};  // what the cause was told by, for people; empty: nothing was
  MonoTime since{};       // of this deviation; without meaning for kNone
};

// Time of a batch of b samples as fixed_s + per_sample_s * b, by least squares
// over the batches since the worker's speed last changed. Known only once
// batch sizes varied enough and the line makes sense (both parts >= 0).
struct BatchTimeFit {
  double fixed_s = 0;
  double per_sample_s = 0;
};

// What a worker computes on, as it or job.toml says (ctl/monitor/devices.h).
using Device = wire::Device;

struct WorkerView {
  Member member;
  std::string host;
  std::string device_class;           // empty: not known
  std::uint32_t max_micro_batch = 0;  // samples that fit its memory; 0: not known
  std::uint32_t share = 0;            // samples a step in the plan in force
  std::uint32_t micro_batch = 0;      // of which each micro-batch has so many
  bool measured = false;              // enough batches to speak of the figures below
  bool changing = false;        // its speed changed a moment ago: figures may still mix two speeds
  double speed_transient = 0;   // samples/s; over the transient window, or since its speed changed
  double speed_persistent = 0;  // samples/s
  double speed_error = 0;       // standard error of speed_transient, relative
  double batch_s = 0;           // mean own time (data and compute) of one step, transient
  double data_share = 0;        // of own time, transient
  double wait_share = 0;        // of own and waiting time, transient
  std::uint64_t batches = 0;    // behind the transient figures
  std::uint64_t samples_total = 0;  // trained by this attempt
  std::optional<BatchTimeFit> fit;
  Verdict verdict;

  // Of one step, waiting for the others, the collective and servers; transient.
  [[nodiscard]] double wait_s() const {
    return wait_share < 1 ? batch_s * wait_share / (1 - wait_share) : 0;
  }
};
// What a step waits for whoever is slow: who waits least waits for nobody. Seconds, of the
// measured workers; 0: nobody is measured.
[[nodiscard]] double shared_wait_s(const std::vector<WorkerView>& workers);

// A process of a parameter server (server_watch.h).
struct ServerView {
  Member member;
  std::string host;
  ServerRole role{};
  bool measured = false;             // enough requests to speak of the figures below
  double service_us = 0;             // mean time for a request, transient window
  double service_us_persistent = 0;  // ... persistent window
  double busy_share = 0;             // of the time it spends on requests, transient window
  Verdict verdict;
};

// A device class's measured time for one micro-batch, by size: for solutions
// for unlike devices (Solution::needs_curves). Workers whose class is not known
// are a class on each host.
struct DeviceCurve {
  struct Point {
    std::uint32_t samples = 0;
    double seconds = 0;
    double micro_batches = 0;  // that were measured
  };
  std::string device_class;
  std::vector<Point> points;    // by rising size
  std::uint32_t max_batch = 0;  // that fits its memory; 0: not known
};
// The class of the curve that a worker's micro-batches belong to.
[[nodiscard]] inline const std::string& curve_class(const std::string& device_class,
                                                    const std::string& host) {
  return device_class.empty() ? host : device_class;
}

// A host of the job that could take another of its workers now.
struct PlaceView {
  std::string host;
  std::uint32_t room = 0;  // for so many more
};

// How much less accurate the guests were than the replicas that they visited, as a fraction of all
// records. Of a model that counts no right records, which has a loss only: by which part of the
// guests' loss the others' was lower.
[[nodiscard]] inline double accuracy_loss(const wire::Visit& visit) {
  if (visit.own_right > 0 || visit.guest_right > 0) {
    return (static_cast<double>(visit.own_right) - static_cast<double>(visit.guest_right)) /
           static_cast<double>(visit.records);
  }
  return visit.guest_loss > 0 ? 1 - visit.own_loss / visit.guest_loss : 0;
}

// Which part of the bytes of all elements the domains' messages had since the visit before.
[[nodiscard]] inline double bytes_share(const wire::Visit& visit) {
  if (visit.dense_bytes == 0) return 0;
  return static_cast<double>(visit.sent_bytes) / static_cast<double>(visit.dense_bytes);
}

struct ClusterView {
  std::vector<WorkerView> workers;  // members of the generation, by worker id
  std::vector<ServerView> servers;  // that serve, by id; none without parameter servers
  std::vector<DeviceCurve> curves;
  BatchRules rules;
  PlanBounds bounds;  // within which the controller makes a plan
  PlanVersion plan;   // in force
  Duration transient_window{};
  Duration persistent_window{};
  std::vector<PlaceView> places;
  // Pushes that a step does not wait for; nothing: this sync has no such thing.
  std::optional<std::uint32_t> backups;
  std::uint32_t least_backups = 0;        // of the job: [trainer] backup_workers
  double learning_rate = 1;               // of the job's own; what AdjustLearningRate said last
  std::optional<double> threshold = {};   // of Gaia, in force or on its way; nothing: another sync
  std::optional<wire::Visit> visit = {};  // the newest one
  std::string optimizer = {};             // of the job: "sgd", "adagrad", "adam", ...
  // How long a new place is waited for; nothing: longer than anybody can say, the
  // cluster is busy.
  std::optional<Duration> pending_time;
  // From the order to leave until the worker's next attempt trains, as seen in this
  // job (before the first one: what its workers took to start).
  std::optional<Duration> restart_time;
  std::optional<std::uint64_t> remaining;  // samples to train until the job's end
};

}  // namespace antdt::ctl
