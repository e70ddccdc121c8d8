// The part of a job's report about its processes: what each worker and each parameter server is and
// does now. core/report/job_report.h says how fields are named.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/report/traced_report.h"
#include "core/report/work_report.h"

namespace antdt::report {

// What a process reads, writes or receives now.
struct Io {
  std::string what = {};  // "writing the checkpoint"
  std::string path = {};
  std::uint64_t done_bytes = 0;
  std::uint64_t total_bytes = 0;
  double bytes_per_second = 0;
  std::string text = {};  // the whole as a text for people
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("what", m.what);
    v("path", m.path);
    v("done_bytes", m.done_bytes);
    v("total_bytes", m.total_bytes);
    v("bytes_per_second", m.bytes_per_second);
    v("text", m.text);
  }
};

// The verdict on a worker or server that makes others wait.
struct Straggler {
  std::string kind = {};  // "transient", "persistent"
  double severity = 1;
  std::string cause = {};
  std::string seen = {};  // the evidence for the cause
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("kind", m.kind);
    v("severity", m.severity);
    v("cause", m.cause);
    v("seen", m.seen);
  }
};

struct DeviceClass {
  std::string name = {};
  std::uint64_t max_micro_batch = 0;  // samples; 0: not known
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("class", m.name);
    v("max_micro_batch", m.max_micro_batch);
  }
};

struct WorkerStatus {
  std::string id = {};
  std::optional<std::uint64_t> rank = {};  // empty: not a member now
  std::string host = {};
  DeviceClass device = {};
  std::uint64_t pid = 0;
  std::uint64_t attempt = 0;
  std::string state =
      {};  // "planned", "started", "joined", "leaving", "exited", "waiting", "removed"
  std::uint64_t batch = 0;              // samples per step in the newest plan
  std::uint64_t samples = 0;            // samples that it trained
  std::uint64_t samples_of_others = 0;  // of these: computed for other workers in shared steps
  double samples_per_second = 0;
  std::string verdict = {};
  std::optional<Straggler> straggler = {};      // set if it makes others wait
  std::optional<double> tried_again_in_s = {};  // set while it waits for a host
  std::optional<Io> io = {};
  std::optional<StepTime> step_time = {};  // traced
  std::optional<double> cpus = {};         // how many CPUs it uses now
  std::optional<TimeSpent> lost_time = {};
  std::optional<EmbeddingSteps> embedding_steps = {};
  std::optional<Exchanges> exchanges = {};
  std::optional<Updates> updates = {};
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("id", m.id);
    v("rank", m.rank);
    v("host", m.host);
    v.later("device", m.device);
    v("pid", m.pid);
    v("attempt", m.attempt);
    v("state", m.state);
    v("batch", m.batch);
    v("samples", m.samples);
    v.if_any("samples_of_others", m.samples_of_others);
    v("samples_per_second", m.samples_per_second);
    v("verdict", m.verdict);
    v.later("straggler", m.straggler);
    v.if_any("tried_again_in_s", m.tried_again_in_s);
    v.if_any("io", m.io);
    v.if_any("step_time", m.step_time);
    v.if_any("cpus", m.cpus);
    v.if_any("lost_time", m.lost_time);
    v.if_any("embedding_steps", m.embedding_steps);
    v.if_any("exchanges", m.exchanges);
    v.if_any("updates", m.updates);
  }
};

// One process of a parameter server, as it last reported.
struct ServerStatus {
  std::string id = {};
  std::string host = {};
  std::uint64_t pid = 0;
  std::uint64_t attempt = 0;
  std::string state = {};  // the same values as a worker's
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;
  std::uint64_t requests = 0;
  double service_us_p50 = 0;  // over the last second
  double service_us_p99 = 0;
  std::uint64_t checkpoints = 0;
  double checkpoint_pause_us_mean = 0;  // for how long a checkpoint kept it from answering
  std::uint64_t checkpoint_pause_us_max = 0;
  std::string verdict = {};
  std::optional<Straggler> straggler = {};
  std::optional<std::string> role = {};  // for a server of two processes: "primary", "backup", ...
  std::optional<Io> io = {};
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("id", m.id);
    v("host", m.host);
    v("pid", m.pid);
    v("attempt", m.attempt);
    v("state", m.state);
    v("rows", m.rows);
    v("bytes", m.bytes);
    v("requests", m.requests);
    v("service_us_p50", m.service_us_p50);
    v("service_us_p99", m.service_us_p99);
    v.later("checkpoints", m.checkpoints);
    v.later("checkpoint_pause_us_mean", m.checkpoint_pause_us_mean);
    v.later("checkpoint_pause_us_max", m.checkpoint_pause_us_max);
    v.later("verdict", m.verdict);
    v.later("straggler", m.straggler);
    v.if_any("role", m.role);
    v.if_any("io", m.io);
  }
};

// How many updates were applied between a pull and the use of what was computed from it.
struct Staleness {
  double mean = 0;
  std::uint64_t max = 0;
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("mean", m.mean);
    v("max", m.max);
  }
};

struct Pushes {
  std::uint64_t applied = 0;
  std::uint64_t late = 0;
  std::uint64_t repeated = 0;
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("applied", m.applied);
    v("late", m.late);
    v("repeated", m.repeated);
  }
};

}  // namespace antdt::report
