#include "trainer/loop/trainer_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>

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

bool names(const Json& rule, const std::string& worker) {
  const auto workers = rule.find("workers");
  if (workers == rule.end()) return true;
  return std::any_of(workers->begin(), workers->end(),
                     [&](const Json& name) { return name == "*" || name == worker; });
}

InjectionRule rule_of(const Json& json) {
  InjectionRule rule;
  rule.slowdown = json.value("slowdown", 1.0);
  rule.delay = from_seconds(json.value("delay_us", 0.0) * 1e-6);
  rule.delay_per_sample = from_seconds(json.value("delay_per_sample_us", 0.0) * 1e-6);
  rule.from = from_seconds(json.value("from_ms", 0.0) * 1e-3);
  rule.until = from_seconds(json.value("until_ms", 0.0) * 1e-3);
  return rule;
}

}  // namespace

Result<TrainerConfig> parse_trainer_config(const std::string& config_json, WorkerId worker) {
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
    read(json, "trainer", "hidden", config.hidden);
    read(json, "trainer", "cin_layers", config.cin_layers);
    read(json, "trainer", "bottom_hidden", config.bottom_hidden);
    read(json, "trainer", "threads", config.threads);
    read(json, "batch", "global", config.global_batch);
    read(json, "cluster", "hosts", config.hosts);
    read(json, "cluster", "interface", config.interface);
    if (const auto rules = json.find("inject"); rules != json.end() && rules->is_array()) {
      for (const Json& rule : *rules) {
        if (names(rule, to_string(worker))) config.inject.push_back(rule_of(rule));
      }
    }
  } catch (const Json::exception& e) {
    return fail(ErrorKind::kUsage, "cannot read the job's configuration: {}", e.what());
  }
  if (config.threads == 0) {
    return fail(ErrorKind::kUsage, "trainer.threads is 0: it must be at least 1");
  }
  return config;
}

}  // namespace antdt::trainer
