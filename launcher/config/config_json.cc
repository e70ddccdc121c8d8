#include "launcher/config/config_json.h"

#include <concepts>
#include <set>
#include <type_traits>

#include "core/json_integer.h"
#include "core/os/fs.h"
#include "launcher/config/older_job.h"

namespace antdt::launcher {

namespace {

using Json = nlohmann::ordered_json;

template <class M, class T>
concept Of = std::same_as<std::remove_const_t<M>, T>;  // T, const or not

// The fields' names, used for both directions, in the order of job.json.
void fields(Of<Resources> auto& m, auto&& v) {
  v("cpus", m.cpus);
  v("memory_bytes", m.memory_bytes);
  v("gpus", m.gpus);
  v("shared_gpus", m.shared_gpus);
  v("bind_to_gpus", m.bind_to_gpus);
}
void fields(Of<BadRecords> auto& m, auto&& v) {
  v("action", m.action);
  v("max", m.max);
}
void fields(Of<Column> auto& m, auto&& v) {
  v("name", m.name);
  v("kind", m.kind);
}
void fields(Of<JobSection> auto& m, auto&& v) {
  v("name", m.name);
  v("id", m.id);
  v("directory", m.directory);
  v("epochs", m.epochs);
  v("seed", m.seed);
}
void fields(Of<ClusterSection> auto& m, auto&& v) {
  v("hosts", m.hosts);
  v("interface", m.interface);
  v("ports", m.ports);
  v("keys", m.keys);
  v("encrypt", m.encrypt);
  v("store", m.store);
  v("store_ca", m.store_ca);
  v("store_cert", m.store_cert);
  v("store_key", m.store_key);
  v("store_user", m.store_user);
  v("store_password_file", m.store_password_file);
  v("store_prefix", m.store_prefix);
  v("store_lease_ms", m.store_lease);
  v("standbys", m.standbys);
}
void fields(Of<RoleSection> auto& m, auto&& v) {
  v("count", m.count);
  v("min", m.min);
  v("max", m.max);
  v("command", m.command);
  v("protocol", m.protocol);
  v("restart", m.restart);
  v("resources", m.resources);
  v("env", m.env);
  v("replicas", m.replicas);
  v("trace", m.trace);
}
void fields(Of<RolesSection> auto& m, auto&& v) {
  v("worker", m.worker);
  v("server", m.server);
}
void fields(Of<DataSection> auto& m, auto&& v) {
  v("format", m.format);
  v("paths", m.paths);
  v("eval_paths", m.eval_paths);
  v("labels", m.labels);
  v("eval_labels", m.eval_labels);
  v("records", m.records);
  v("eval_records", m.eval_records);
  v("pin", m.pin);
  v("shard_batches", m.shard_batches);
  v("shard_records", m.shard_records);
  v("shuffle", m.shuffle);
  v("delivery", m.delivery);
  v("index", m.index);
  v("on_bad_record", m.on_bad_record);
  v("encode", m.encode);
  v("hash_buckets", m.hash_buckets);
  v("vocabulary_min_count", m.vocabulary_min_count);
  v("separator", m.separator);
  v("header", m.header);
  v("columns", m.columns);
}
void fields(Of<BatchSection> auto& m, auto&& v) {
  v("global", m.global);
  v("unit", m.unit);
  v("adjust", m.adjust);
  v("multiple_of", m.multiple_of);
  v("min", m.min);
  v("max", m.max);
}
void fields(Of<ShadowSection> auto& m, auto&& v) {
  v("every", m.every);
  v("alpha", m.alpha);
  v("eta", m.eta);
  v("threads", m.threads);
}
void fields(Of<GaiaSection> auto& m, auto&& v) {
  v("threshold", m.threshold);
  v("whole_every", m.whole_every);
}
void fields(Of<TrainerSection> auto& m, auto&& v) {
  v("model", m.model);
  v("sync", m.sync);
  v("collective", m.collective);
  v("backup_workers", m.backup_workers);
  v("staleness", m.staleness);
  v("shadow", m.shadow);
  v("gaia", m.gaia);
  v("optimizer", m.optimizer);
  v("lr", m.lr);
  v("momentum", m.momentum);
  v("weight_decay", m.weight_decay);
  v("embedding_dim", m.embedding_dim);
  v("embedding_gradients", m.embedding_gradients);
  v("hidden", m.hidden);
  v("cin_layers", m.cin_layers);
  v("bottom_hidden", m.bottom_hidden);
  v("threads", m.threads);
  v("device", m.device);
  v("precision", m.precision);
  v("reader", m.reader);
  v("metric", m.metric);
  v("schedule", m.schedule);
}
void fields(Of<SkewScoutSection> auto& m, auto&& v) {
  v("every", m.every);
  v("tolerated_loss", m.tolerated_loss);
  v("weight_loss", m.weight_loss);
  v("weight_bytes", m.weight_bytes);
}
void fields(Of<ControlSection> auto& m, auto&& v) {
  v("solution", m.solution);
  v("command", m.command);
  v("skew_scout", m.skew_scout);
  v("mode", m.mode);
  v("transient_window_ms", m.transient_window);
  v("persistent_window_ms", m.persistent_window);
  v("allow", m.allow);
  v("max_actions_per_hour", m.max_actions_per_hour);
  v("share_steps", m.share_steps);
}
void fields(Of<FailureSection> auto& m, auto&& v) {
  v("host_lost_after_ms", m.host_lost_after);
  v("hang_after_ms", m.hang_after);
  v("orphan_timeout_ms", m.orphan_timeout);
  v("stop_grace_ms", m.stop_grace);
  v("budgets", m.budgets);
  v("budget_refill_ms", m.budget_refill);
}
void fields(Of<CheckpointSection> auto& m, auto&& v) {
  v("every_ms", m.every);
  v("keep", m.keep);
  v("copies", m.copies);
}
void fields(Of<LogsSection> auto& m, auto&& v) {
  v("max_bytes", m.max_bytes);
  v("history_bytes", m.history_bytes);
}
void fields(Of<MetricsSection> auto& m, auto&& v) {
  v("listen", m.listen);
  v("tensorboard", m.tensorboard);
}
void fields(Of<HooksSection> auto& m, auto&& v) { v("event", m.event); }
void fields(Of<DeviceEntry> auto& m, auto&& v) {
  v("workers", m.workers);
  v("host", m.host);
  v("class", m.name);
  v("max_micro_batch", m.max_micro_batch);
}
void fields(Of<Domain> auto& m, auto&& v) {
  v("name", m.name);
  v("hosts", m.hosts);
  v("workers", m.workers);
  v("data", m.data);
  v("described", m.described);
}
void fields(Of<EmulatedDevice> auto& m, auto&& v) {
  v("class", m.name);
  v("workers", m.workers);
  v("flat_us", m.flat);
  v("flat_until", m.flat_until);
  v("per_sample_us", m.per_sample);
  v("memory", m.memory);
}
void fields(Of<EmulatedSection> auto& m, auto&& v) {
  v("noise", m.noise);
  v("parameters", m.parameters);
  v("device", m.device);
}
void fields(Of<Injection> auto& m, auto&& v) {
  v("workers", m.workers);
  v("host", m.host);
  v("domain", m.domain);
  v("to_workers", m.to_workers);
  v("to_host", m.to_host);
  v("to_domain", m.to_domain);
  v("both_ways", m.both_ways);
  v("slowdown", m.slowdown);
  v("delay_us", m.delay);
  v("delay_per_sample_us", m.delay_per_sample);
  v("data_delay_us", m.data_delay);
  v("latency_us", m.latency);
  v("bandwidth_bytes", m.bandwidth);
  v("throttle", m.throttle);
  v("trace", m.trace);
  v("trace_every_ms", m.trace_every);
  v("kill", m.kill);
  v("from_ms", m.from);
  v("until_ms", m.until);
  v("every_ms", m.every);
  v("for_ms", m.lasts);
  v("chance", m.chance);
}
void fields(Of<JobConfig> auto& m, auto&& v) {
  v("job", m.job);
  v("cluster", m.cluster);
  v("roles", m.roles);
  v("data", m.data);
  v("batch", m.batch);
  v("trainer", m.trainer);
  v("user", m.user);
  v("device", m.device);
  v("domain", m.domain);
  v("emulated", m.emulated);
  v("control", m.control);
  v("failure", m.failure);
  v("checkpoint", m.checkpoint);
  v("logs", m.logs);
  v("metrics", m.metrics);
  v("hooks", m.hooks);
  v("inject", m.inject);
}

template <class T>
concept HasFields = requires(T& value) {
  fields(value, [](const char*, auto&) {});
};
template <class T>
concept IsDuration = requires(T value) {
  value.count();
  typename T::period;
};
template <class T>
concept IsTables = std::same_as<T, std::vector<Column>> ||
    std::same_as<T, std::vector<Injection>> || std::same_as<T, std::vector<DeviceEntry>> ||
    std::same_as<T, std::vector<Domain>> || std::same_as<T, std::vector<EmulatedDevice>>;

template <class T>
Json write(const T& value) {
  if constexpr (HasFields<const T>) {
    Json object = Json::object();
    fields(value, [&](const char* name, const auto& field) { object[name] = write(field); });
    return object;
  } else if constexpr (IsDuration<T>) {
    return value.count();
  } else if constexpr (IsTables<T>) {
    Json list = Json::array();
    for (const auto& item : value) list.push_back(write(item));
    return list;
  } else {
    return value;
  }
}

// Reads fields by name. Remembers the first field that is missing or has a wrong type, and the
// first name that is not a field.
class JsonReader {
 public:
  template <class T>
  void read(const Json& json, const std::string& path, T& value) {
    if (json.is_null()) return report(path, "is missing");
    if constexpr (HasFields<T>) {
      read_fields(json, path, value);
    } else if constexpr (IsDuration<T>) {
      typename T::rep count{};
      read_plain(json, path, count);
      value = T(count);
    } else if constexpr (IsTables<T>) {
      if (!json.is_array()) return report(path, "is not a list");
      value.resize(json.size());
      for (std::size_t i = 0; i < json.size(); ++i) {
        read(json[i], path + "[" + std::to_string(i) + "]", value[i]);
      }
    } else {
      read_plain(json, path, value);
    }
  }
  [[nodiscard]] const std::string& problem() const { return problem_; }
  [[nodiscard]] const std::string& unknown() const { return unknown_; }

 private:
  template <class T>
  void read_fields(const Json& json, const std::string& path, T& value) {
    if (!json.is_object()) return report(path, "is not an object");
    std::set<std::string> known;
    if (path.empty()) known.insert("schema");
    fields(value, [&](const char* name, auto& field) {
      known.insert(name);
      const std::string full = below(path, name);
      const auto it = json.find(name);
      if (it == json.end()) return report(full, "is missing");
      read(*it, full, field);
    });
    for (const auto& [name, ignored] : json.items()) {
      if (unknown_.empty() && !known.contains(name)) unknown_ = below(path, name);
    }
  }
  static std::string below(const std::string& path, const std::string& name) {
    return path.empty() ? name : path + "." + name;
  }
  template <class T>
  void read_plain(const Json& json, const std::string& path, T& value) {
    try {
      if constexpr (std::integral<T> && !std::same_as<T, bool>) {
        value = json_integer<T>(json);
      } else {
        value = json.get<T>();
      }
    } catch (const nlohmann::json::exception& e) {
      report(path, e.what());
    }
  }
  void report(const std::string& path, const std::string& what) {
    if (problem_.empty()) problem_ = path + " " + what;
  }
  std::string problem_;
  std::string unknown_;
};

}  // namespace

Json config_to_json(const JobConfig& config) {
  Json json = {{"schema", 1}};
  json.update(write(config));
  return json;
}

Result<JobConfig> config_from_json(const Json& json, bool complete) {
  JobConfig config;
  JsonReader reader;
  reader.read(json, "", config);
  if (!complete) return config;
  // If an unknown key were ignored, it would be another job. A misspelled key is also found here.
  if (!reader.unknown().empty()) {
    return fail(ErrorKind::kUsage,
                "the job has a key that this build of AntDT does not know: {}. It was written by "
                "a newer one; use the programs of one build",
                reader.unknown());
  }
  if (!reader.problem().empty()) {
    return fail(ErrorKind::kCorrupt, "the job configuration cannot be read: {}", reader.problem());
  }
  return config;
}

std::string to_json(const JobConfig& config) {
  Json json = config_to_json(config);
  if (!config.pins.empty()) json["pins"] = to_json(config.pins);
  return json.dump(2) + "\n";
}

Result<JobConfig> from_json(const std::string& text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    return fail(ErrorKind::kCorrupt, "the job configuration cannot be read: it is no JSON");
  }
  add_missing_keys(json);
  return config_from_json(json, /*complete=*/true);
}

Result<JobConfig> load_effective(const std::string& run_dir) {
  const std::string path = run_dir + "/job.json";
  ANTDT_TRY(const std::string text, read_file(path));
  auto config = from_json(text);
  if (!config && config.error().kind == ErrorKind::kUsage) {
    return fail(ErrorKind::kUsage, "{}: {}", path, config.error().message);
  }
  if (!config) {
    return fail(config.error().kind, "{}: {}; is {} a run directory that antdt run made?", path,
                config.error().message, run_dir);
  }
  return config;
}

}  // namespace antdt::launcher
