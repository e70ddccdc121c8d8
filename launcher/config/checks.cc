#include "launcher/config/checks.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>
#include <optional>
#include <set>
#include <vector>

#include "core/delivery.h"
#include "core/ids.h"
#include "core/os/net.h"
#include "core/role_protocol.h"
#include "core/schema/etcd_address.h"
#include "core/schema/job_reader.h"
#include "core/sync_strategy.h"
#include "launcher/config/agent_address.h"
#include "launcher/config/rules/drill_checks.h"
#include "launcher/config/rules/pin_checks.h"
#include "launcher/config/rules/sync_checks.h"
#include "launcher/plan/strategies.h"
#include "launcher/start/own_program.h"

namespace antdt::launcher {
namespace {

// How long a job daemon that stands by takes to go on with the job, once the lease has ended.
constexpr auto kTakesOver = std::chrono::seconds(10);

bool is_key_prefix(std::string_view text) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./@";
  return text.size() <= 200 && text.starts_with('/') && text.ends_with('/') &&
         text.find_first_not_of(kAllowed) == std::string_view::npos;
}

std::optional<std::uint32_t> parse_port(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value >= 1 && value <= 65535 ? std::optional(value) : std::nullopt;
}

// The files of libraries that a worker loads (docs/python.md, docs/operations/nccl.md).
bool is_users_to_choose(std::string_view variable) {
  constexpr std::array<std::string_view, 3> kFiles = {"ANTDT_LIBRARY", "ANTDT_NCCL_LIBRARY",
                                                      "ANTDT_CUDART_LIBRARY"};
  return std::ranges::find(kFiles, variable) != kFiles.end();
}

class Checker {
 public:
  Checker(const JobConfig& config, Problems& problems) : c_(config), problems_(problems) {}

  void run() {
    unless(is_plain_name(c_.job.name), {"job.name"},
           fmt::format("'{}' cannot name a directory: use 1 to 64 letters, digits, '-', '_' and "
                       "'.', not '.' or '-' first",
                       c_.job.name));
    check_sync(c_, problems_);
    hosts();
    ports();
    encrypt();
    store();
    worker();
    servers();
    data_format();
    data_parts();
    delivery();
    batch();
    own_names();
    trainer();
    unless(c_.control.persistent_window > c_.control.transient_window,
           {"control.persistent_window", "control.transient_window"},
           "must be longer than control.transient_window");
    own_solution();
    allowed();
    shared_steps();
    monitoring();
    check_drills(c_, problems_);
    check_pins(c_, problems_);
  }

 private:
  // Reports a problem with the first key, unless one of the keys has a problem already.
  void unless(bool fine, std::initializer_list<const char*> keys, const std::string& text) {
    if (fine || std::ranges::any_of(keys, [&](const char* k) { return problems_.has(k); })) return;
    problems_.add(*keys.begin(), text);
  }

  void hosts() {
    std::set<std::string> seen;
    for (std::size_t i = 0; i < c_.cluster.hosts.size(); ++i) {
      const std::string& host = c_.cluster.hosts[i];
      const std::string key = fmt::format("cluster.hosts[{}]", i);
      if (!is_end_point(host)) {
        problems_.add(key, fmt::format("'{}' must be \"host\" or \"host:port\", as in \"n1\", "
                                       "\"10.0.0.1:7700\" or \"[2001:db8::1]:7700\"",
                                       host));
      }
      if (!seen.insert(host).second) problems_.add(key, fmt::format("'{}' is listed twice", host));
    }
  }

  void ports() {
    const std::string& text = c_.cluster.ports;
    if (text.empty()) return;
    const std::size_t dash = text.find('-');
    const auto first = parse_port(text.substr(0, dash));
    const auto last = dash == std::string::npos ? std::nullopt : parse_port(text.substr(dash + 1));
    unless(first && last && *first <= *last, {"cluster.ports"},
           fmt::format("'{}' must be \"first-last\", as in \"29400-29999\"", text));
  }

  void encrypt() {
    const std::string& protocol = c_.roles.worker.protocol;
    unless(!c_.cluster.encrypt || speaks(protocol, Protocol::kAntdt),
           {"cluster.encrypt", "roles.worker.protocol"},
           fmt::format("cannot be had for a program of protocol '{}', which makes its connections "
                       "itself: let it encrypt them, or use a private network",
                       protocol));
  }

  void store() {
    const ClusterSection& cluster = c_.cluster;
    for (const auto& [key, value] :
         {std::pair{"cluster.store_ca", cluster.store_ca},
          {"cluster.store_cert", cluster.store_cert},
          {"cluster.store_key", cluster.store_key},
          {"cluster.store_user", cluster.store_user},
          {"cluster.store_password_file", cluster.store_password_file}}) {
      unless(value.empty() || !cluster.store.empty(), {key, "cluster.store"},
             "is for a journal in etcd: write cluster.store as well");
    }
    unless(cluster.store_cert.empty() == cluster.store_key.empty(),
           {"cluster.store_key", "cluster.store_cert"},
           "comes with cluster.store_cert: write both or none");
    unless(cluster.store_cert.empty() || !cluster.store_ca.empty(),
           {"cluster.store_cert", "cluster.store_ca"},
           "needs TLS: write cluster.store_ca as well, the authority of etcd's own certificates");
    unless(cluster.store_user.empty() == cluster.store_password_file.empty(),
           {"cluster.store_user", "cluster.store_password_file"},
           "comes with cluster.store_password_file: write both or none");
    unless(is_key_prefix(cluster.store_prefix), {"cluster.store_prefix"},
           "must begin and end with '/', as \"/antdt/alice/\" does, with letters, digits and _ - . "
           "/ @ "
           "between, and 200 characters at most");
    unless(cluster.store_lease.count() % 1000 == 0, {"cluster.store_lease"},
           "must be whole seconds: etcd counts in them");
    if (cluster.store.empty() || problems_.has("cluster.store")) return;
    const auto away = cluster.store_lease + kTakesOver;
    unless(cluster.standbys == 0 || cluster.hosts.empty() || c_.failure.orphan_timeout >= away,
           {"failure.orphan_timeout", "cluster.store_lease"},
           fmt::format("must be at least {} s, cluster.store_lease and 10 s: else agents end the "
                       "job's processes before a job daemon on another host goes on with them",
                       std::chrono::duration_cast<std::chrono::seconds>(away).count()));
    const auto members = etcd_members(cluster.store);
    if (!members) return problems_.add("cluster.store", members.error().message);
    const auto exposed = exposed_etcd_members({.members = *members});
    unless(!cluster.store_ca.empty() || exposed.empty(), {"cluster.store_ca", "cluster.store"},
           fmt::format("is missing: without TLS, what the job sends to {} can be read and changed "
                       "on the way. Name the authority that signed the certificates of etcd's "
                       "members",
                       fmt::join(exposed, " and ")));
  }

  void worker() {
    const RoleSection& role = c_.roles.worker;
    unless(!role.command.empty() && !role.command[0].empty(), {"roles.worker.command"},
           "must name a program");
    unless(speaks(role.protocol, Protocol::kAntdt) || restart(role) != Restart::kMember,
           {"roles.worker.restart", "roles.worker.protocol"},
           fmt::format("'member' needs a program that joins a running group, which one of protocol "
                       "'{}' cannot: use 'gang' or 'never'",
                       role.protocol));
    unless(speaks(role.protocol, Protocol::kAntdt) || role.min == role.max,
           {"roles.worker.count", "roles.worker.protocol"},
           fmt::format("a program of protocol '{}' has a fixed number of workers: write one number",
                       role.protocol));
    environment("roles.worker.env.", role);
  }

  void monitoring() {
    const std::string& listen = c_.metrics.listen;
    unless(listen.empty() || is_end_point(listen, /*any=*/true), {"metrics.listen"},
           fmt::format("'{}' must be \"address:port\", as in \"127.0.0.1:9400\"", listen));
    const std::vector<std::string>& hook = c_.hooks.event;
    unless(hook.empty() || !hook[0].empty(), {"hooks.event"}, "must name a program");
  }

  void own_solution() {
    const ControlSection& control = c_.control;
    const bool named = !control.command.empty() && !control.command[0].empty();
    unless(control.solution != "command" || named, {"control.command", "control.solution"},
           "must name the program that decides: control.solution is 'command'");
    unless(control.solution == "command" || control.command.empty(),
           {"control.command", "control.solution"},
           fmt::format("is not used by control.solution = '{}': write solution = \"command\", or "
                       "remove it",
                       control.solution));
  }

  void shared_steps() {
    if (!c_.control.share_steps) return;
    unless(is_sync(SyncStrategy::kAllReduce), {"control.share_steps", "trainer.sync"},
           fmt::format("is for sync = \"allreduce\": under \"{}\" {}; remove it", c_.trainer.sync,
                       is_sync(SyncStrategy::kDsSync) ? "each worker's update is its own"
                       : is_sync(SyncStrategy::kGaia) ? "a domain sums its own gradients"
                                                      : "no step waits in the same way"));
    unless(c_.batch.adjust == "both", {"control.share_steps", "batch.adjust"},
           fmt::format("cuts a worker's part of a step into micro-batches of any size, which "
                       "batch.adjust = \"{}\" forbids: write adjust = \"both\", or remove it",
                       c_.batch.adjust));
    const bool built_in =
        speaks(c_.roles.worker.protocol, Protocol::kAntdt) && !may_have_own_names(c_);
    unless(built_in, {"control.share_steps", "roles.worker.command"},
           "is for antdt-trainer, whose loop can compute other workers' records: remove it");
  }

  void environment(const std::string& section, const RoleSection& role) {
    for (const auto& [name, value] : role.env) {
      if (name.empty() || name.find('=') != std::string::npos) {
        problems_.add(section + name, "cannot be the name of a variable");
      } else if (name.starts_with("ANTDT_") && !is_users_to_choose(name)) {
        problems_.add(section + name, "is set by antdt itself: choose another name");
      } else if (role.resources.gpus > 0 &&
                 (name == "CUDA_VISIBLE_DEVICES" || name == "CUDA_DEVICE_ORDER")) {
        problems_.add(
            section + name,
            "is set by the agent for the GPUs that it leases (resources.gpus): remove one "
            "of the two");
      }
    }
  }

  // False for all of them if the name is unknown, which sync() reports.
  [[nodiscard]] bool is_sync(SyncStrategy sync) const {
    return by_name<SyncStrategy>(c_.trainer.sync) == sync;
  }
  [[nodiscard]] bool on_servers() const {
    const auto sync = by_name<SyncStrategy>(c_.trainer.sync);
    return sync && antdt::on_servers(*sync);
  }
  [[nodiscard]] static std::optional<Restart> restart(const RoleSection& role) {
    return by_name<Restart>(role.restart);
  }

  void servers() {
    const RoleSection& server = c_.roles.server;
    unless(!server.command.empty() && !server.command[0].empty(), {"roles.server.command"},
           "must name a program");
    environment("roles.server.env.", server);
    unless(!problems_.written("roles.server") || problems_.written("roles.server.count"),
           {"roles.server.count"},
           "is missing: write how many servers the job has, or remove [roles.server]");
    if (c_.trainer.sync == plan::kAutoSync) return;
    unless(server.count == 0 || on_servers(), {"roles.server.count", "trainer.sync"},
           fmt::format("there is nothing for servers to do under trainer.sync = \"{}\": write "
                       "sync = \"ps-bsp\" there, or remove [roles.server]",
                       c_.trainer.sync));
    if (!on_servers()) return;
    unless(server.count > 0, {"trainer.sync", "roles.server.count"},
           fmt::format("'{}' keeps the model on servers, and the job has none: add [roles.server] "
                       "with count = 1 or more, or use \"allreduce\"",
                       c_.trainer.sync));
    workers_of_servers();
  }

  // Settings that a job with its model on servers must not have.
  void workers_of_servers() {
    const RoleSection& worker = c_.roles.worker;
    unless(speaks(worker.protocol, Protocol::kAntdt), {"roles.worker.protocol", "trainer.sync"},
           fmt::format("a program of protocol '{}' knows nothing of parameter servers: use "
                       "\"antdt\", or trainer.sync = \"allreduce\"",
                       worker.protocol));
    unless(restart(worker) != Restart::kGang,
           {"roles.worker.restart", "roles.worker.protocol", "trainer.sync"},
           "'gang' is for workers that cannot go on without a lost one; those of parameter "
           "servers can: use 'member' or 'never'");
  }

  void data_format() {
    const DataSection& d = c_.data;
    unless(!d.format.empty(), {"data.format", "roles.worker.protocol"},
           "is missing: \"criteo\", \"csv\", \"idx\" or \"index\" (or \"none\" for a program that "
           "reads its own data)");
    if (d.format.empty()) return;
    const bool files = d.format == "criteo" || d.format == "csv" || d.format == "idx";
    const auto only = [&](bool fine, const char* key, const char* where) {
      unless(fine, {key, "data.format"},
             fmt::format("is for format {}, not \"{}\": remove it", where, d.format));
    };
    only(files || d.paths.empty(), "data.paths", "\"criteo\", \"csv\" and \"idx\"");
    only(files || d.eval_paths.empty(), "data.eval_paths", "\"criteo\", \"csv\" and \"idx\"");
    only(d.format == "idx" || d.labels.empty(), "data.labels", "\"idx\"");
    only(d.format == "idx" || d.eval_labels.empty(), "data.eval_labels", "\"idx\"");
    only(d.format == "csv" || d.columns.empty(), "data.columns", "\"csv\"");
    only(d.format == "index" || d.records == 0, "data.records", "\"index\"");
    only(d.format == "index" || d.eval_records == 0, "data.eval_records", "\"index\"");
    unless(!files || !d.paths.empty(), {"data.paths", "data.format"},
           fmt::format("is missing: format \"{}\" needs files to train on", d.format));
    unless(d.format != "index" || d.records > 0, {"data.records", "data.format"},
           "is missing: format \"index\" needs the number of records");
  }

  void data_parts() {
    const DataSection& d = c_.data;
    const auto paired = [&](const char* key, const char* of, std::size_t labels,
                            std::size_t images) {
      unless(
          d.format != "idx" || labels == images, {key, of, "data.format"},
          fmt::format("has {} files for the {} of {}: one for each is needed", labels, images, of));
    };
    paired("data.labels", "data.paths", d.labels.size(), d.paths.size());
    paired("data.eval_labels", "data.eval_paths", d.eval_labels.size(), d.eval_paths.size());
    unless(d.separator.size() == 1, {"data.separator"},
           fmt::format("'{}' must be one character", d.separator));
    if (d.format != "csv") return;
    const auto labels = std::ranges::count(d.columns, "label", &Column::kind);
    unless(!d.columns.empty(), {"data.columns", "data.format"},
           "is missing: format \"csv\" needs { name, kind } for each field of a line");
    unless(d.columns.empty() || labels == 1, {"data.columns", "data.format"},
           fmt::format("has {} columns of kind \"label\": exactly one is needed", labels));
  }

  void delivery() {
    const std::string& delivery = c_.data.delivery;
    const std::optional<Delivery> promise = parse_delivery(delivery);
    if (promise == Delivery::kExactlyOnce) return;
    const auto sync = by_name<SyncStrategy>(c_.trainer.sync);
    const bool waits_for_nobody =
        sync == SyncStrategy::kPsAsp || sync == SyncStrategy::kPsSsp || (sync && is_shadow(*sync));
    const bool may_be_late =
        is_sync(SyncStrategy::kPsBsp) &&
        (c_.trainer.backup_workers > 0 || c_.control.solution == "backup-workers" ||
         c_.control.solution == "nd");
    unless(waits_for_nobody || (may_be_late && promise == Delivery::kAtMostOnce), {"data.delivery"},
           fmt::format("'{}' is refused under sync = \"{}\": {}, so exactly-once costs nothing "
                       "there; remove the line{}",
                       delivery, c_.trainer.sync,
                       on_servers() ? "a step counts once on all servers or on none"
                                    : "a step is applied by all workers or by none",
                       is_sync(SyncStrategy::kPsBsp) && promise == Delivery::kAtMostOnce
                           ? ", or set trainer.backup_workers: then pushes may come too late, and "
                             "their records are dropped"
                           : ""));
    unless(!waits_for_nobody || c_.roles.server.replicas < 2,
           {"data.delivery", "roles.server.replicas"},
           fmt::format("'{}' is refused with replicas = 2: a lost process of a server loses "
                       "nothing there, so exactly-once costs nothing; remove the line",
                       delivery));
  }

  void batch() {
    const BatchSection& b = c_.batch;
    const std::uint64_t workers = c_.roles.worker.max;
    const std::uint64_t least = std::max(b.min, b.multiple_of);
    unless(b.max == 0 || b.max >= b.min, {"batch.max", "batch.min"},
           fmt::format("{} is less than batch.min {}", b.max, b.min));
    unless(b.max == 0 || b.max >= b.multiple_of, {"batch.max", "batch.multiple_of"},
           fmt::format("{} is less than batch.multiple_of {}", b.max, b.multiple_of));
    unless(b.global >= workers * least,
           {"batch.global", "batch.min", "batch.multiple_of", "roles.worker.count"},
           fmt::format("{} is too small for {} workers with at least {} each: make it {} or more, "
                       "or use fewer workers",
                       b.global, workers, least, workers * least));
    unless(b.global % b.multiple_of == 0, {"batch.global", "batch.multiple_of"},
           fmt::format("{} is no multiple of batch.multiple_of {}", b.global, b.multiple_of));
    const bool accumulates = b.adjust == "accumulation" || b.adjust == "both";
    const std::uint64_t most = std::uint64_t{b.max} * c_.roles.worker.min;
    unless(b.max == 0 || accumulates || most >= b.global,
           {"batch.max", "batch.global", "batch.adjust", "roles.worker.count"},
           fmt::format("{} for each of {} workers makes less than batch.global {}: raise it, or "
                       "allow accumulation with batch.adjust = \"both\"",
                       b.max, c_.roles.worker.min, b.global));
  }

  // The server of a pair, or one that is moved, restarts by itself in any job.
  void allowed() {
    const RoleSection& worker = c_.roles.worker;
    const bool gang = worker.restart == "gang" && speaks(worker.protocol, Protocol::kAntdt);
    const bool named =
        std::ranges::find(c_.control.allow, "kill-restart") != c_.control.allow.end();
    unless(!gang || c_.roles.server.count > 0 || !named, {"control.allow", "roles.worker.restart"},
           "\"kill-restart\" starts one worker again by itself, and with restart = \"gang\" the "
           "workers are started again all together: remove it, or set roles.worker.restart = "
           "\"member\"");
  }

  // A program that is not antdt-trainer may have more names; it is asked once it is found
  // (launcher/commands/run/ask_program.h).
  void own_names() {
    if (may_have_own_names(c_)) return;
    for (const NameProblem& found : unknown_names(c_)) {
      if (!problems_.has(found.key)) problems_.add(found.key, found.text);
    }
  }

  void trainer() {
    const TrainerSection& t = c_.trainer;
    unless(t.momentum == 0 || t.optimizer == "sgd", {"trainer.momentum", "trainer.optimizer"},
           fmt::format("is for optimizer \"sgd\", not \"{}\": remove it", t.optimizer));
    unless(t.lr > 0, {"trainer.lr"}, "must be more than 0");
    if (!speaks(c_.roles.worker.protocol, Protocol::kAntdt) || c_.data.format.empty()) return;
    unless(t.model != "resnet" || c_.data.format == "idx", {"trainer.model", "data.format"},
           fmt::format("'resnet' needs images (format \"idx\"), not \"{}\"", c_.data.format));
    const bool embeds = t.model == "deepfm" || t.model == "xdeepfm" || t.model == "dlrm";
    unless(!embeds || c_.data.format == "criteo" || c_.data.format == "csv",
           {"trainer.model", "data.format"},
           fmt::format("'{}' needs format \"criteo\" or \"csv\", not \"{}\"", t.model,
                       c_.data.format));
    unless(t.model != "xdeepfm" || !t.cin_layers.empty(), {"trainer.cin_layers"},
           "is empty: 'xdeepfm' needs one layer at least");
    if (is_instrument(t.model)) tally();
    if (on_servers()) model_on_servers();
  }

  void model_on_servers() {
    const TrainerSection& t = c_.trainer;
    unless(t.model != "resnet", {"trainer.model", "trainer.sync"},
           "'resnet' is not for parameter servers: all of its parameters are needed for each "
           "sample, so every step would move the whole model; use trainer.sync = \"allreduce\"");
    unless(t.momentum == 0, {"trainer.momentum", "trainer.optimizer"},
           fmt::format("is not for trainer.sync = \"{}\": servers keep no momentum; remove it, or "
                       "use \"allreduce\"",
                       t.sync));
  }

  // The optimizer's kind and rate have defaults, which this model ignores. A value that was set
  // explicitly must not be ignored silently.
  void tally() {
    const TrainerSection& t = c_.trainer;
    const auto only = [&](bool fine, const char* key) {
      unless(fine, {key, "trainer.model"},
             fmt::format("is for models that have an optimizer, which '{}' has not: remove it",
                         t.model));
    };
    unless(c_.data.format == "index", {"trainer.model", "data.format"},
           fmt::format("'{}' counts records that are their own number: it needs format "
                       "\"index\", not \"{}\"",
                       t.model, c_.data.format));
    unless(t.model != "tally3" || on_servers(), {"trainer.model", "trainer.sync"},
           "'tally3' shows whether a record's counters on several servers agree: it needs "
           "trainer.sync = \"ps-bsp\"; with \"allreduce\" use 'tally'");
    only(t.momentum == 0, "trainer.momentum");
    only(t.weight_decay == 0, "trainer.weight_decay");
  }

  const JobConfig& c_;
  Problems& problems_;
};

}  // namespace

void derive(JobConfig& config) {
  for (std::string& host : config.cluster.hosts) {
    host = agent_end_point(host).value_or(host);  // what is none is reported by the checks
  }
  const bool antdt = speaks(config.roles.worker.protocol, Protocol::kAntdt);
  if (config.roles.worker.restart.empty()) config.roles.worker.restart = antdt ? "member" : "gang";
  if (config.data.format.empty() && !antdt) config.data.format = "none";
  RoleSection& server = config.roles.server;
  server.min = server.max = server.count;
  server.protocol = "antdt";
  server.restart = config.roles.worker.restart;
  config.data.shard_records = config.data.shard_batches * config.batch.global;
}

void check(const JobConfig& config, Problems& problems) { Checker(config, problems).run(); }

}  // namespace antdt::launcher
