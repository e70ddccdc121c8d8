#include "trainer/loop/trainer_config.h"

#include <algorithm>

#include "core/drill/drill_json.h"
#include "core/schema/job_reader.h"

namespace antdt::trainer {
namespace {

// What shadow-… derives from the number of workers. It is the largest that the job may have:
// every worker must open the same tables, and a job may grow.
void set_by_workers(schema::JobReader& job, TrainerConfig& config) {
  std::uint32_t workers = 1;
  job.read_largest("roles.worker.count", workers);
  if (config.shadow_alpha == 0) {
    // If all workers exchange with the same centre, it moves by their mean distance at most. A mean
    // of replicas does not swing, however many they are.
    const std::uint32_t parts = config.sync == SyncStrategy::kShadowEasgd ? workers : 2;
    config.shadow_alpha = 1.0 / std::max(2U, parts);
  }
  if (config.optimizer == "adam") config.table_rate = 1.0 / std::max(1U, workers);
}

}  // namespace

Result<TrainerConfig> parse_trainer_config(const std::string& config_json) {
  TrainerConfig config;
  schema::JobReader job(config_json);
  job.read("job.seed", config.seed);
  job.read("trainer.model", config.model);
  job.read("trainer.sync", config.sync);
  job.read("trainer.shadow.every", config.shadow_every);
  job.read("trainer.shadow.alpha", config.shadow_alpha);
  job.read("trainer.shadow.eta", config.shadow_eta);
  job.read("trainer.shadow.threads", config.shadow_threads);
  job.read("trainer.gaia.threshold", config.gaia_threshold);
  job.read("trainer.gaia.whole_every", config.gaia_whole_every);
  std::string solution;
  job.read("control.solution", solution);
  if (solution == "skew-scout") job.read("control.skew_scout.every", config.gaia_visit_every);
  job.read("trainer.optimizer", config.optimizer);
  if (is_shadow(config.sync)) set_by_workers(job, config);
  job.read("trainer.lr", config.learning_rate);
  job.read("trainer.momentum", config.momentum);
  job.read("trainer.weight_decay", config.weight_decay);
  job.read("trainer.embedding_dim", config.embedding_dim);
  job.read("trainer.embedding_gradients", config.embedding_gradients);
  job.read("trainer.hidden", config.hidden);
  job.read("trainer.cin_layers", config.cin_layers);
  job.read("trainer.bottom_hidden", config.bottom_hidden);
  job.read("trainer.threads", config.threads);
  job.read("trainer.device", config.device);
  job.read("trainer.precision", config.precision);
  job.read("trainer.reader", config.reader);
  job.read("trainer.metric", config.metric);
  job.read("trainer.schedule", config.schedule);
  job.read("batch.global", config.global_batch);
  job.read("batch.multiple_of", config.multiple_of);
  job.read("control.share_steps", config.share_steps);
  job.read("failure.hang_after", config.hang_after);
  job.read("cluster.hosts", config.hosts);
  job.read("cluster.interface", config.interface);
  job.read("cluster.ports", config.ports);
  job.read("cluster.encrypt", config.encrypt);
  job.read("trainer.collective", config.collective);
  ANTDT_RETURN_IF_ERROR(job.status());
  ANTDT_TRY(config.emulation, drill::parse_emulation(config_json));
  ANTDT_TRY(const auto rules, drill::parse_rules(config_json));
  config.slows_links = std::ranges::any_of(rules, [](const drill::Rule& rule) {
    return drill::slows_links(rule) && !drill::slows_between_domains(rule);
  });
  ANTDT_TRY(config.domains, parse_domains(config_json));
  if (config.threads == 0) {
    return fail(ErrorKind::kUsage, "trainer.threads is 0: it must be at least 1");
  }
  if (config.shadow_threads == 0) {
    return fail(ErrorKind::kUsage, "trainer.shadow.threads is 0: it must be at least 1");
  }
  return config;
}

}  // namespace antdt::trainer
