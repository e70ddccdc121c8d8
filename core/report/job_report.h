// Reports of a job to people and programs: the status of a running job (`antdt status --json`) and
// the summary of an ended one (RUN/summary.json). Each field is named here and nowhere else: the
// job daemon writes JSON from these structs, the commands read it into them (core/report/json.h),
// and a test compares them with docs/reports.md, which says what each field means.
//
// In `fields`
//     v(name, field)         is always written; an empty optional as null
//     v.if_any(name, field)  is left out if the optional, list or map is empty, or the count is 0
//     v.later(name, field)   is always written; earlier versions did not write it
//
// Fields may be added but never change their meaning, because users' tools read them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/report/device_report.h"
#include "core/report/process_report.h"
#include "core/report/traced_report.h"
#include "core/report/traffic.h"
#include "core/report/training_ended.h"
#include "core/report/work_report.h"

namespace antdt::report {

struct Evaluation {
  std::uint64_t records = 0;
  std::optional<double> auc = {}, log_loss = {}, accuracy = {};  // the metrics that the model has
  std::map<std::string, double> sums = {};                       // the program's own, by name
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("records", m.records);
    v.if_any("auc", m.auc);
    v.if_any("log_loss", m.log_loss);
    v.if_any("accuracy", m.accuracy);
    v.if_any("sums", m.sums);
  }
};

struct Action {
  std::uint64_t number = 0;  // from 1
  double time_s = 0;
  std::string kind = {}, target = {}, reason = {}, outcome = {};
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v.later("number", m.number);
    v("time_s", m.time_s);
    v("kind", m.kind);
    v("target", m.target);
    v("reason", m.reason);
    v("outcome", m.outcome);
  }
};

struct Failure {
  double time_s = 0;
  std::string worker = {};
  std::uint64_t attempt = 0;
  std::string host = {};
  std::string cls = {};    // "signal", "oom", "host", ...
  std::string cause = {};  // a sentence, perhaps with the log lines that prove it
  bool first = false;      // this failure caused the others of its incident
  std::optional<double> recovered_in_s = {};
  std::optional<std::uint64_t> went_back_to = {};  // a step; 0: the beginning of training
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("time_s", m.time_s);
    v("worker", m.worker);
    v("attempt", m.attempt);
    v("host", m.host);
    v("class", m.cls);
    v("cause", m.cause);
    v("first", m.first);
    v("recovered_in_s", m.recovered_in_s);
    v.if_any("went_back_to", m.went_back_to);
  }
};

struct Host {
  std::string name = {};
  std::string agent = {};  // the end point of its agent
  std::uint64_t room = 0;  // how many workers it takes in all
  bool up = false;
  bool closed = false;     // an operator evicted it
  bool probation = false;  // it failed often lately, so it is avoided
  double penalty = 0;
  std::optional<std::string> drained = {};  // "by WHO: why", while it is drained
  std::optional<HostDevices> devices = {};  // if it has any
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("name", m.name);
    v.later("agent", m.agent);
    v("room", m.room);
    v("up", m.up);
    v("closed", m.closed);
    v("probation", m.probation);
    v("penalty", m.penalty);
    v.if_any("drained", m.drained);
    v.if_any("devices", m.devices);
  }
};

// How many failures of a class end the job, and how many of them are left.
struct Budget {
  std::uint64_t limit = 0;
  std::uint64_t left = 0;
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("limit", m.limit);
    v("left", m.left);
  }
};

// How a job ended, or is about to end.
struct Ending {
  std::string state = {};
  std::int64_t code = 0;
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("state", m.state);
    v("code", m.code);
  }
};

// Records that the workers' program skipped, by reason. RUN/skipped-<worker>.jsonl lists them.
struct Skipped {
  std::string reason = {};
  std::uint64_t samples = 0;
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("reason", m.reason);
    v("samples", m.samples);
  }
};

struct Status {
  std::string job = {};
  std::string state = {};
  std::uint64_t generation = 0;
  std::string collective = {};  // what carries the bytes between its members; empty: not known
  std::uint64_t lineage = 0;
  std::uint64_t incarnation = 0;
  std::uint64_t epoch = 0;  // the present epoch, from 0
  std::uint64_t epochs = 0;
  std::uint64_t step = 0;
  std::uint64_t samples_done = 0;
  std::uint64_t samples_total = 0;
  double samples_per_second = 0;
  double wall_seconds = 0;
  std::string message = {};            // the last thing that happened
  std::string waiting_for = {};        // which processes are waited for, and for what; empty: none
  std::string solution_trouble = {};   // why a user's own solution makes no decisions now
  std::string disk_trouble = {};       // a filesystem of the run that does not answer, or is full
  bool paused = false;                 // because the journal's disk is full
  std::vector<Failure> failures = {};  // only the newest 100
  std::uint64_t failures_count = 0;    // of all; 0: a release that did not count them, or none
  std::vector<Host> hosts = {};
  std::map<std::string, Budget> budgets = {};  // by class of failure
  std::vector<Action> actions = {};            // only the newest 100
  std::uint64_t actions_count = 0;             // as failures_count
  std::vector<WorkerStatus> workers = {};
  std::optional<double> train_loss = {};  // over the last seconds
  std::optional<double> eta_seconds = {};
  std::optional<Evaluation> last_eval = {};
  // If the model is on parameter servers:
  std::vector<ServerStatus> servers = {};
  std::optional<Staleness> staleness = {};
  std::optional<Pushes> pushes = {};
  std::uint64_t servers_count = 0;
  std::uint64_t servers_wanted = 0;    // the number to which the servers are being changed
  std::optional<Ending> outcome = {};  // set when the job begins to end
  std::vector<Skipped> skipped_by_program = {};
  std::optional<TrainingEnded> training_ended = {};
  // For a script of protocol torchrun:
  std::optional<TracedScript> traced = {};
  std::optional<HangFound> hang = {};                    // the newest one
  std::optional<Traffic> traffic = {};                   // as in the summary, so far
  std::optional<UpdateThreshold> update_threshold = {};  // with trainer.sync = "gaia"
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("job", m.job);
    v("state", m.state);
    v("generation", m.generation);
    v.later("collective", m.collective);
    v("lineage", m.lineage);
    v("incarnation", m.incarnation);
    v("epoch", m.epoch);
    v("epochs", m.epochs);
    v("step", m.step);
    v("samples_done", m.samples_done);
    v("samples_total", m.samples_total);
    v("samples_per_second", m.samples_per_second);
    v("wall_seconds", m.wall_seconds);
    v("message", m.message);
    v("waiting_for", m.waiting_for);
    v.later("solution_trouble", m.solution_trouble);
    v.later("disk_trouble", m.disk_trouble);
    v.later("paused", m.paused);
    v("failures", m.failures);
    v.later("failures_count", m.failures_count);
    v("hosts", m.hosts);
    v.later("budgets", m.budgets);
    v("actions", m.actions);
    v.later("actions_count", m.actions_count);
    v("workers", m.workers);
    v.if_any("train_loss", m.train_loss);
    v.if_any("eta_seconds", m.eta_seconds);
    v.if_any("last_eval", m.last_eval);
    v.if_any("servers", m.servers);
    v.if_any("staleness", m.staleness);
    v.if_any("pushes", m.pushes);
    v.if_any("servers_count", m.servers_count);
    v.if_any("servers_wanted", m.servers_wanted);
    v.if_any("outcome", m.outcome);
    v.if_any("skipped_by_program", m.skipped_by_program);
    v.if_any("training_ended", m.training_ended);
    v.if_any("traced", m.traced);
    v.if_any("hang", m.hang);
    v.if_any("traffic", m.traffic);
    v.if_any("update_threshold", m.update_threshold);
  }
};

struct EpochSummary {
  double train_loss = 0;  // not a number (null): not known, or the model has diverged
  std::uint64_t samples = 0;
  double seconds = 0;  // seconds of its training phase; 0: not known
  std::optional<Evaluation> eval = {};
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("train_loss", m.train_loss);
    v("samples", m.samples);
    v("seconds", m.seconds);
    v("eval", m.eval);
  }
};

// One worker: the process of its last attempt, and the measurements of all attempts.
struct WorkerSummary {
  std::string id = {};
  std::optional<std::uint64_t> rank = {};
  std::string host = {};
  std::uint64_t pid = 0;
  std::uint64_t attempt = 0;
  std::uint64_t samples = 0;
  std::uint64_t samples_of_others = 0;  // of these: computed for other workers in shared steps
  double wall_seconds = 0;              // of its attempts that have ended: the sum of lost_time
  TimeSpent lost_time = {};
  DeviceClass device = {};
  std::optional<EmbeddingSteps> embedding_steps = {};
  std::optional<Exchanges> exchanges = {};
  std::optional<Updates> updates = {};
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("id", m.id);
    v("rank", m.rank);
    v("host", m.host);
    v("pid", m.pid);
    v("attempt", m.attempt);
    v("samples", m.samples);
    v.if_any("samples_of_others", m.samples_of_others);
    v("wall_seconds", m.wall_seconds);
    v("lost_time", m.lost_time);
    v.later("device", m.device);
    v.if_any("embedding_steps", m.embedding_steps);
    v.if_any("exchanges", m.exchanges);
    v.if_any("updates", m.updates);
  }
};

struct Exit {
  std::int64_t code = 0;  // exit code of `antdt run`
  std::string cls = {};   // "done", "stopped", a class of failure, "data", "checkpoint", "delivery"
  bool resumable = false;
  std::string first_cause = {};  // may have several lines
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("code", m.code);
    v("class", m.cls);
    v("resumable", m.resumable);
    v("first_cause", m.first_cause);
  }
};

struct Summary {
  std::uint64_t schema = 1;
  std::string job = {};
  std::string state = {};  // "done", "failed", "stopped"
  double wall_seconds = 0;
  double training_seconds = 0;  // sum over training phases; 0: not known
  std::uint64_t steps = 0;
  std::uint64_t samples_total = 0;
  std::uint64_t samples_trained = 0;
  std::string delivery = {};  // the delivery promise
  std::uint64_t samples_repeated = 0;
  std::uint64_t samples_lost = 0;
  std::uint64_t samples_skipped = 0;
  std::uint64_t samples_unaccounted = 0;
  double samples_per_second = 0;  // mean over all training phases; 0: not known
  std::uint64_t generations = 0;
  std::uint64_t lineages = 0;
  std::uint64_t incarnations = 0;
  std::string collective = {};         // as in the status, of the last generation
  std::vector<Failure> failures = {};  // only the newest 2,000
  std::uint64_t failures_count = 0;    // as in the status
  std::vector<EpochSummary> epochs = {};
  std::vector<Action> actions = {};  // only the newest 10,000
  std::uint64_t actions_count = 0;
  std::vector<WorkerSummary> workers = {};
  std::vector<std::string> checkpoints = {};
  Exit exit = {};
  TimeSpent lost_time = {};                      // sum over all workers
  std::vector<Skipped> skipped_by_program = {};  // contained in samples_skipped
  std::uint64_t rows_put_aside = 0;              // malformed rows of the data, which are no records
  std::optional<TrainingEnded> training_ended = {};
  std::optional<Traffic> traffic = {};  // if workers exchanged anything in collectives
  std::optional<UpdateThreshold> update_threshold = {};  // with trainer.sync = "gaia"
  // If the model is on parameter servers:
  std::vector<ServerStatus> servers = {};
  std::optional<Staleness> staleness = {};
  std::optional<Pushes> pushes = {};
  // For a script of protocol torchrun:
  std::optional<TracedScript> traced = {};
  std::optional<HangFound> hang = {};  // the newest one
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("schema", m.schema);
    v("job", m.job);
    v("state", m.state);
    v("wall_seconds", m.wall_seconds);
    v("training_seconds", m.training_seconds);
    v("steps", m.steps);
    v("samples_total", m.samples_total);
    v("samples_trained", m.samples_trained);
    v.later("delivery", m.delivery);
    v("samples_repeated", m.samples_repeated);
    v("samples_lost", m.samples_lost);
    v("samples_skipped", m.samples_skipped);
    v("samples_unaccounted", m.samples_unaccounted);
    v("samples_per_second", m.samples_per_second);
    v("generations", m.generations);
    v("lineages", m.lineages);
    v("incarnations", m.incarnations);
    v.later("collective", m.collective);
    v("failures", m.failures);
    v.later("failures_count", m.failures_count);
    v("epochs", m.epochs);
    v("actions", m.actions);
    v.later("actions_count", m.actions_count);
    v("workers", m.workers);
    v("checkpoints", m.checkpoints);
    v("exit", m.exit);
    v("lost_time", m.lost_time);
    v.if_any("skipped_by_program", m.skipped_by_program);
    v.if_any("rows_put_aside", m.rows_put_aside);
    v.if_any("training_ended", m.training_ended);
    v.if_any("traffic", m.traffic);
    v.if_any("update_threshold", m.update_threshold);
    v.if_any("servers", m.servers);
    v.if_any("staleness", m.staleness);
    v.if_any("pushes", m.pushes);
    v.if_any("traced", m.traced);
    v.if_any("hang", m.hang);
  }
};

}  // namespace antdt::report
