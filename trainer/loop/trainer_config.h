// The trainer's part of the job's effective configuration.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "core/domain/domains.h"
#include "core/drill/emulation.h"
#include "core/result.h"
#include "core/sync_strategy.h"

namespace antdt::trainer {

// Filled by parse_trainer_config; the defaults are those of the keys (core/schema/keys.h).
struct TrainerConfig {
  std::uint64_t seed = 0;
  // A built-in model ("tally3" only on servers), or one of the program's own.
  std::string model;
  SyncStrategy sync = SyncStrategy::kAllReduce;
  std::uint64_t shadow_every = 0;      // with shadow-…, see worker::ps_worker::ShadowRules
  double shadow_alpha = 0;             // share of the distance that an exchange takes away, above 0
  double shadow_eta = 0;               // with shadow-bmuf: share of the way to the mean, in (0, 1]
  std::uint32_t shadow_threads = 0;    // that train the replica; 1 or more
  double gaia_threshold = 0;           // with gaia: of a change, relative to the parameter
  std::uint32_t gaia_whole_every = 0;  // with gaia: in steps
  std::uint32_t gaia_visit_every = 0;  // with gaia: in steps; 0: no replica visits another domain
  std::string optimizer;               // "sgd", "adagrad", "adam", or of the program's own
  double learning_rate = 0;
  // Factor of learning_rate for the tables of embeddings on servers: 1 / N of N workers with
  // shadow-… and Adam, where each push is a whole step of Adam; otherwise 1.
  double table_rate = 1;
  double momentum = 0;  // for sgd
  double weight_decay = 0;
  std::uint32_t embedding_dim = 0;
  std::string embedding_gradients;        // "auto", "dense" or "sparse"; under all-reduce
  std::vector<std::uint32_t> hidden;      // widths of the hidden layers; empty: the model's default
  std::vector<std::uint32_t> cin_layers;  // for xdeepfm: number of maps of each interaction layer
  std::vector<std::uint32_t> bottom_hidden;  // for dlrm: widths of the layers below the embeddings
  std::uint32_t threads = 0;
  std::string device;                    // "auto", "cpu" or "cuda"
  std::string precision;                 // of forward passes: "fp32", "bf16" or "fp16"
  std::string reader, metric, schedule;  // of a program made with the C++ kit; empty: none
  std::uint32_t global_batch = 0;
  // a write that makes no progress for this long is given up
  std::chrono::milliseconds hang_after{};
  std::vector<std::string> hosts;  // "address:port"; empty: only this machine
  std::string interface;           // for the collective; empty: found from `hosts`
  std::string ports;               // for the collective, "first-last"; empty: any
  bool encrypt = false;            // encrypt the members' connections
  // What sums gradients: "auto", "tcp", "shm" or "nccl"; a configuration that does not say: "auto".
  std::string collective = "auto";
  // Whether an [[inject]] of the job does, on any worker, and not between domains alone.
  bool slows_links = false;
  Domains domains = {};
  bool share_steps = false;       // [control] share_steps
  std::uint32_t multiple_of = 1;  // [batch] multiple_of
  drill::Emulation emulation;     // for the model "emulated"
};

// The error (kUsage) names the key.
[[nodiscard]] Result<TrainerConfig> parse_trainer_config(const std::string& config_json);

}  // namespace antdt::trainer
