// A job as job.toml describes it, with every default filled in.
//
// load() reads what a user wrote, and is strict: an unknown key, a wrong type, a value out of range
// and a missing file are errors that name file, line, column and key and say how to mend it, all of
// them at once. Every part after the launcher reads the *effective* configuration, which is
// complete: as JSON (RUN/job.json, and WorkerWelcome.config_json) or through this struct. The keys
// with their types, defaults and meaning are the table in core/schema/keys.h; the structs below
// have no defaults of their own.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/domain/domains.h"
#include "core/domain/pinned_data.h"
#include "core/result.h"

namespace antdt::launcher {

struct JobSection {
  std::string name;
  std::string id;         // <name>-<ulid>; empty until the run directory is made
  std::string directory;  // absolute: the directory of job.toml, in which workers run
  std::uint32_t epochs = 0;
  std::uint64_t seed = 0;
};

// Without hosts, the job runs on this machine under a private agent.
struct ClusterSection {
  std::vector<std::string> hosts;  // "10.0.0.1:7700"
  std::string interface;  // for workers and servers; empty: the interface of the address in `hosts`
  std::string ports;      // "29400-29999": ports of workers and servers; empty: any
  std::string keys;       // directory with job.key and agents/
  bool encrypt = false;   // whether the members of a collective encrypt what they send one another
  std::string store;      // "etcd://h1:2379,h2:2379": where the journal is; empty: RUN/state.db
  // Files in PEM, to speak TLS with etcd; and who this job is there.
  std::string store_ca, store_cert, store_key, store_user, store_password_file;
  std::string store_prefix = "/antdt/";  // of all keys there
  std::chrono::milliseconds store_lease{4'000};
  std::uint32_t standbys = 2;  // hosts on which a job daemon stands by, with a store
};

struct Resources {
  double cpus = 0;  // 0: the resource is not requested and always fits
  std::uint64_t memory_bytes = 0;
  std::uint32_t gpus = 0;
  bool shared_gpus = false;   // others that say so, too, may have the same ones
  bool bind_to_gpus = false;  // CPUs and memory are those nearest to the GPUs
};

struct RoleSection {
  std::uint32_t count = 1;  // the wanted number, between min and max
  std::uint32_t min = 1;
  std::uint32_t max = 1;
  std::vector<std::string> command;
  std::string protocol;  // "antdt", "torchrun" or "exec"
  std::string restart;   // "member", "gang" or "never"
  Resources resources;
  std::map<std::string, std::string> env;
  std::uint32_t replicas = 1;  // how many processes form one server
  bool trace = true;           // a script of protocol torchrun is measured
  [[nodiscard]] std::uint32_t processes() const { return count * replicas; }
};

[[nodiscard]] inline RoleSection nobody() {
  RoleSection role;
  role.count = role.min = role.max = 0;
  return role;
}

struct RolesSection {
  RoleSection worker;
  RoleSection server = nobody();  // count 0: no servers; always as many as wanted
};

struct BadRecords {
  std::string action;     // "fail" or "quarantine"
  std::uint64_t max = 0;  // most records that may be quarantined
};

struct Column {
  std::string name;
  std::string kind;  // "label", "numeric", "category" or "ignore"
};

struct DataSection {
  std::string format;              // "criteo", "csv", "idx", "index" or "none"
  std::vector<std::string> paths;  // absolute, globs expanded and sorted
  std::vector<std::string> eval_paths;
  std::vector<std::string> labels;  // format idx: one file of labels for each of paths
  std::vector<std::string> eval_labels;
  std::uint64_t records = 0;  // format index
  std::uint64_t eval_records = 0;
  std::string pin;  // "none", or "domain": only workers of a domain are given its data
  std::uint64_t shard_batches = 0;
  std::uint64_t shard_records = 0;  // shard_batches * batch.global
  std::string shuffle;              // "full", "shards" or "none"
  std::string delivery;             // "exactly-once"
  std::string index;                // where it is kept: "cache" or "beside"
  BadRecords on_bad_record;
  std::string encode;  // how categories are encoded: "hash" or "vocabulary"
  std::uint64_t hash_buckets = 0;
  std::uint64_t vocabulary_min_count = 0;
  std::string separator;        // format csv: one character
  bool header = false;          // format csv: the first line names the columns
  std::vector<Column> columns;  // format csv
};

struct BatchSection {
  std::uint64_t global = 0;
  std::string unit;               // "sample"
  std::string adjust;             // "size", "accumulation", "both" or "none"
  std::uint32_t multiple_of = 0;  // size of a micro-batch is a multiple of it
  std::uint32_t min = 0;          // least micro-batch of a worker
  std::uint32_t max = 0;          // largest micro-batch of a worker; 0: no bound
};

// With shadow-easgd, shadow-ma and shadow-bmuf.
struct ShadowSection {
  std::uint64_t every = 0;  // in steps of a worker; 0: in the background
  double alpha = 0;
  double eta = 0;             // with shadow-bmuf
  std::uint32_t threads = 0;  // of a worker, that train its replica
};

// With gaia.
struct GaiaSection {
  double threshold = 0;           // of a change, relative to the parameter
  std::uint64_t whole_every = 0;  // in steps of the job
};

struct TrainerSection {
  std::string
      model;  // "lr", "deepfm", "xdeepfm", "dlrm", "mlp", "resnet", "emulated", "tally", "tally3"
  std::string sync;                  // a name of SyncStrategy
  std::string collective;            // "auto", "tcp" or "shm"
  std::uint32_t backup_workers = 0;  // with ps-bsp
  std::uint64_t staleness = 0;       // with ps-ssp, in pushes
  ShadowSection shadow;
  GaiaSection gaia;
  std::string optimizer;  // "sgd", "adagrad" or "adam"
  double lr = 0;
  double momentum = 0;
  double weight_decay = 0;
  std::uint32_t embedding_dim = 0;
  std::string embedding_gradients;  // "auto", "dense" or "sparse"
  std::vector<std::uint32_t> hidden;
  std::vector<std::uint32_t> cin_layers;     // with xdeepfm
  std::vector<std::uint32_t> bottom_hidden;  // with dlrm
  std::uint32_t threads = 0;
  std::string device;     // "auto", "cpu" or "cuda"
  std::string precision;  // "fp32", "bf16" or "fp16"
  std::string reader;     // of a program of the C++ kit, like the two that follow; empty: none
  std::string metric;
  std::string schedule;
};

// With the solution skew-scout.
struct SkewScoutSection {
  std::uint64_t every = 0;  // in steps of the job
  double tolerated_loss = 0;
  double weight_loss = 0;
  double weight_bytes = 0;
};

struct ControlSection {
  std::string solution;              // "nd", "none", …, "command"
  std::vector<std::string> command;  // the program that decides, for "command"
  SkewScoutSection skew_scout;
  std::string mode;  // "observe", "advise" or "act"
  std::chrono::milliseconds transient_window{};
  std::chrono::milliseconds persistent_window{};
  std::vector<std::string> allow;  // kinds of drastic actions that need no approval
  std::uint32_t max_actions_per_hour = 0;
  bool share_steps = false;  // members compute one another's records within a step
};

struct FailureSection {
  std::chrono::milliseconds host_lost_after{};
  std::chrono::milliseconds hang_after{};
  std::chrono::milliseconds orphan_timeout{};
  std::chrono::milliseconds stop_grace{};
  // By class: program, oom, signal, hang, host, collective.
  std::map<std::string, std::uint32_t> budgets;
  // training time after which one failure of each class is forgiven
  std::chrono::milliseconds budget_refill{};
};

struct CheckpointSection {
  std::chrono::milliseconds every{};  // 0: no checkpoints at intervals
  std::uint32_t keep = 0;
  std::uint32_t copies = 0;  // on how many hosts each is kept if hosts share no directory
};

struct LogsSection {
  std::uint64_t max_bytes = 0;      // for each of a worker's two files
  std::uint64_t history_bytes = 0;  // of history.db
};

struct MetricsSection {
  std::string listen;        // "127.0.0.1:9400"; empty: metrics are not served
  bool tensorboard = false;  // curves are written for TensorBoard, into RUN/tensorboard
};

struct HooksSection {
  std::vector<std::string> event;  // the program that is told events; empty: none
};

// What workers compute on, overriding what they report; ctl/monitor/devices.h.
struct DeviceEntry {
  std::vector<std::string> workers;   // empty: all
  std::string host;                   // empty: any
  std::string name;                   // "class" in job.toml; empty: as the workers report
  std::uint32_t max_micro_batch = 0;  // samples; 0: as the workers report
};

// A device that is emulated; core/drill/emulation.h says how long it takes.
struct EmulatedDevice {
  std::string name;  // "class" in job.toml
  std::vector<std::string> workers;
  std::chrono::microseconds flat{};
  std::uint32_t flat_until = 0;
  std::chrono::microseconds per_sample{};
  std::uint32_t memory = 0;  // in samples; 0: any number fits
};

struct EmulatedSection {
  double noise = 0;
  std::uint32_t parameters = 0;
  std::vector<EmulatedDevice> device;
};

// A fault injection; core/drill/injection.h defines it.
struct Injection {
  std::vector<std::string> workers;  // ids, or "*"
  std::string host;                  // empty: any host
  std::string domain;                // empty: any domain
  // Only messages to these; without any, to all.
  std::vector<std::string> to_workers;
  std::string to_host, to_domain;
  bool both_ways = false;                        // and messages in the other direction
  double slowdown = 0;                           // computing takes this many times as long
  std::chrono::microseconds delay{};             // additional time for each batch
  std::chrono::microseconds delay_per_sample{};  // additional time for each sample
  std::chrono::microseconds data_delay{};        // additional time for the data of each batch
  // additional time for each message to another worker or server
  std::chrono::microseconds latency{};
  std::uint64_t bandwidth = 0;  // bandwidth of such messages in bytes a second; 0: no bound
  double throttle = 0;          // the part of the time for which the process may run
  std::string trace;            // path; empty: none
  std::chrono::milliseconds trace_every{};  // how long a row lasts; 0: one step
  bool kill = false;                        // SIGKILL when the injection begins to apply
  std::chrono::milliseconds from{};         // since the worker began training
  std::chrono::milliseconds until{};        // 0: to the end
  std::chrono::milliseconds every{};        // length of a window; 0: no windows
  // "for" in job.toml: length of the injection within a window; 0: all of it
  std::chrono::milliseconds lasts{};
  double chance = 0;  // probability for a window, or for a step
};

struct JobConfig {
  JobSection job;
  ClusterSection cluster;
  RolesSection roles;
  DataSection data;
  BatchSection batch;
  TrainerSection trainer;
  nlohmann::ordered_json user = nlohmann::ordered_json::object();  // the program's own options
  std::vector<DeviceEntry> device;
  std::vector<Domain> domain;
  EmulatedSection emulated;
  ControlSection control;
  FailureSection failure;
  CheckpointSection checkpoint;
  LogsSection logs;
  MetricsSection metrics;
  HooksSection hooks;
  std::vector<Injection> inject;
  // If data are pinned: which are, as they were found. The job daemon fills it in from
  // RUN/data.json, so that workers are told.
  PinnedData pins = {};
};

// Reads `path` and applies `overrides` ("batch.global=512"; a value is TOML, or a bare string).
// Relative paths, also in overrides, are relative to the directory of job.toml. The error (kUsage)
// lists every problem, one on each line.
[[nodiscard]] Result<JobConfig> load(const std::string& path,
                                     const std::vector<std::string>& overrides = {});
// The same for a text in memory. `path` names it in messages, and relative paths are relative to
// its directory.
[[nodiscard]] Result<JobConfig> load_text(const std::string& text, const std::string& path,
                                          const std::vector<std::string>& overrides = {});

// The effective configuration as JSON, which documents and workers call job.json.
[[nodiscard]] std::string to_json(const JobConfig& config);
// Reads what to_json wrote, in this build or an older one; keys that were added since get their
// defaults. An unknown key is an error (kUsage), because a newer build wrote it. A missing required
// key is an error (kCorrupt).
[[nodiscard]] Result<JobConfig> from_json(const std::string& text);

// Writes a job.toml with every key, which load() reads back to the same configuration.
[[nodiscard]] std::string to_toml(const JobConfig& config);

// Reads RUN/job.json.
[[nodiscard]] Result<JobConfig> load_effective(const std::string& run_dir);

}  // namespace antdt::launcher
