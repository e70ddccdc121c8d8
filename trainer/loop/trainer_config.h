// What the trainer reads of the job's effective configuration.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "core/drill/emulation.h"
#include "core/result.h"
#include "core/sync_strategy.h"

namespace antdt::trainer {

// Filled by parse_trainer_config; the defaults are those of the keys (core/schema/keys.h).
struct TrainerConfig {
  std::uint64_t seed = 0;
  // "lr", "deepfm", "xdeepfm", "dlrm", "mlp", "resnet", "emulated", "tally" or, on servers
  // alone, "tally3".
  std::string model;
  SyncStrategy sync = SyncStrategy::kAllReduce;
  std::string optimizer;  // "sgd", "adagrad", "adam"
  double learning_rate = 0;
  double momentum = 0;  // of sgd
  double weight_decay = 0;
  std::uint32_t embedding_dim = 0;
  std::string embedding_gradients;           // "dense" or "sparse"; under all-reduce
  std::vector<std::uint32_t> hidden;         // widths of the hidden layers; empty: the model's own
  std::vector<std::uint32_t> cin_layers;     // of xdeepfm: maps of each interaction layer
  std::vector<std::uint32_t> bottom_hidden;  // of dlrm: widths below the embeddings
  std::uint32_t threads = 0;
  std::uint32_t global_batch = 0;
  std::chrono::milliseconds hang_after{};  // what does not move for so long is given up
  std::vector<std::string> hosts;          // "address:port"; empty: this machine alone
  std::string interface;                   // for the collective; empty: found from `hosts`
  std::string ports;                       // for the collective, "first-last"; empty: any
  bool encrypt = false;                    // what its members send one another
  drill::Emulation emulation;              // of model "emulated"
};

// An error (kUsage) names the key.
[[nodiscard]] Result<TrainerConfig> parse_trainer_config(const std::string& config_json);

}  // namespace antdt::trainer
