// Workers of parameter servers in one process and in virtual time: models, replicas and tables are
// those of workers and servers; the network is a delay. So a way of exchanging is compared with
// others on the same batches, without what a real job adds by chance.
//
// A worker's life is that of docs/parameter-servers.md: the pull of the next batch is sent before
// the present one is computed, a push is staged and then committed, and an exchange rides on the
// first push that is made after the centre has come (trainer/worker/servers/shadow_chain.h). All
// steps take one unit of time.
#pragma once

#include <cstdint>
#include <vector>

#include "core/result.h"
#include "shard_server/accounts/evaluation.h"
#include "trainer/data/dataset.h"
#include "trainer/loop/trainer_config.h"

namespace antdt::bench::replicas {

struct Clicks {
  data::DataShape shape;
  data::Examples train, test;
};
// `directory` has train.tsv and eval.tsv, in Criteo's format.
[[nodiscard]] Result<Clicks> read_clicks_of(const std::string& directory, std::uint32_t buckets);

struct Setting {
  trainer::TrainerConfig config;  // with the sync: ps-bsp, ps-asp, shadow-…
  std::uint32_t workers = 4;
  std::uint32_t batch = 512;  // of all workers
  std::uint32_t epochs = 1;
  double hop = 0.4;         // one way, in steps
  double apart = 0;         // how far the first and the last worker are apart, in steps
  double rows_rate = 1;     // factor of the tables' learning rates, but for the dense one
  double dense_rate = 1;    // factor of a replica's learning rate
  bool atomic = false;      // an exchange reads and moves the centre at once, with each push
  std::uint32_t every = 0;  // an exchange in each such step at most; 0: as often as messages allow
};

struct AfterEpoch {
  shard_server::EvalMetrics centre;    // of the model
  shard_server::EvalMetrics replicas;  // with shadow-easgd: of the mean of the replicas
};
[[nodiscard]] Result<std::vector<AfterEpoch>> train_served(const Clicks& clicks,
                                                           const Setting& setting);

}  // namespace antdt::bench::replicas
