#include "trainer/loop/trainer_config.h"

#include <nlohmann/json.hpp>

#include "core/drill/drill_json.h"

namespace antdt::trainer {
namespace {

using Json = nlohmann::json;

// json[section][key], or the default where it is missing.
template <class T>
void read(const Json& json, const char* section, const char* key, T& value) {
  const auto part = json.find(section);
  if (part == json.end() || !part->is_object()) return;
  const auto found = part->find(key);
  if (found != part->end() && !found->is_null()) value = found->get<T>();
}

}  // namespace

Result<TrainerConfig> parse_trainer_config(const std::string& config_json) {
  TrainerConfig config;
  try {
    const Json json = Json::parse(config_json);
    read(json, "job", "seed", config.seed);
    read(json, "trainer", "model", config.model);
    read(json, "trainer", "sync", config.sync);
    read(json, "trainer", "optimizer", config.optimizer);
    read(json, "trainer", "lr", config.learning_rate);
    read(json, "trainer", "momentum", config.momentum);
    read(json, "trainer", "weight_decay", config.weight_decay);
    read(json, "trainer", "embedding_dim", config.embedding_dim);
    read(json, "trainer", "embedding_gradients", config.embedding_gradients);
    read(json, "trainer", "hidden", config.hidden);
    read(json, "trainer", "cin_layers", config.cin_layers);
    read(json, "trainer", "bottom_hidden", config.bottom_hidden);
    read(json, "trainer", "threads", config.threads);
    read(json, "batch", "global", config.global_batch);
    std::uint32_t hang_after_ms = static_cast<std::uint32_t>(config.hang_after.count());
    read(json, "failure", "hang_after_ms", hang_after_ms);
    config.hang_after = std::chrono::milliseconds(hang_after_ms);
    read(json, "cluster", "hosts", config.hosts);
    read(json, "cluster", "interface", config.interface);
    read(json, "cluster", "ports", config.ports);
    read(json, "cluster", "encrypt", config.encrypt);
  } catch (const Json::exception& e) {
    return fail(ErrorKind::kUsage, "cannot read the job's configuration: {}", e.what());
  }
  ANTDT_TRY(config.emulation, drill::parse_emulation(config_json));
  if (config.threads == 0) {
    return fail(ErrorKind::kUsage, "trainer.threads is 0: it must be at least 1");
  }
  return config;
}

}  // namespace antdt::trainer
