#include "launcher/config/rules/sync_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include "core/role_protocol.h"
#include "core/schema/job_reader.h"
#include "core/sync_strategy.h"
#include "launcher/config/suggest.h"
#include "launcher/plan/strategies.h"
#include "launcher/start/own_program.h"

namespace antdt::launcher {
namespace {

class SyncChecker {
 public:
  SyncChecker(const JobConfig& config, Problems& problems) : c_(config), problems_(problems) {}

  void run() {
    sync();
    backup_workers();
    settings_of_others();
    embedding_gradients();
    collective();
    replicas();
    gaia();
    skew_scout();
    shadow();
    hybrid();
  }

 private:
  void sync() {
    const std::string& sync = c_.trainer.sync;
    const std::vector<std::string> known = plan::values_of_sync();
    const std::string meant = nearest(sync, known);
    unless(std::ranges::find(known, sync) != known.end(), {"trainer.sync"},
           fmt::format("'{}' is none of \"{}\"{}", sync, fmt::join(known, "\", \""),
                       meant.empty() ? "" : fmt::format(" (did you mean '{}'?)", meant)));
  }

  void backup_workers() {
    const TrainerSection& t = c_.trainer;
    unless(t.backup_workers == 0 || is_sync(SyncStrategy::kPsBsp),
           {"trainer.backup_workers", "trainer.sync"},
           fmt::format("is for trainer.sync = \"ps-bsp\", not \"{}\": remove it", t.sync));
    unless(t.backup_workers < std::max(1U, c_.roles.worker.min),
           {"trainer.backup_workers", "roles.worker.count"},
           fmt::format("{} of {} workers leaves none whose push makes a step: use fewer",
                       t.backup_workers, c_.roles.worker.min));
  }

  void embedding_gradients() {
    const TrainerSection& t = c_.trainer;
    if (t.embedding_gradients != "sparse") return;
    const char* const travels =
        is_sync(SyncStrategy::kDsSync) ? "no gradient travels, and the whole table does"
        : is_sync(SyncStrategy::kGaia) ? "domains look at the whole table for significant updates"
                                       : "only rows in a batch travel";
    unless(is_sync(SyncStrategy::kAllReduce), {"trainer.embedding_gradients", "trainer.sync"},
           fmt::format("is for trainer.sync = \"allreduce\", not \"{}\", under which {}: remove it",
                       t.sync, travels));
    unless(t.momentum == 0, {"trainer.embedding_gradients", "trainer.momentum"},
           "\"sparse\" goes with no momentum: remove that, or use adagrad or adam");
  }

  void collective() {
    const TrainerSection& t = c_.trainer;
    if (t.collective == "auto") return;
    const bool sums = is_sync(SyncStrategy::kAllReduce) || is_sync(SyncStrategy::kHybrid);
    unless(
        sums || has_replicas(), {"trainer.collective", "trainer.sync"},
        fmt::format("is for trainer.sync = \"allreduce\", \"ds-sync\", \"gaia\" or \"hybrid\", not "
                    "\"{}\", under which workers send each other nothing: remove it",
                    t.sync));
    const std::string& protocol = c_.roles.worker.protocol;
    unless(speaks(protocol, Protocol::kAntdt), {"trainer.collective", "roles.worker.protocol"},
           fmt::format("a program of protocol \"{}\" makes its connections itself: remove it",
                       protocol));
    unless(
        t.collective != "nccl" || t.device != "cpu", {"trainer.collective", "trainer.device"},
        "NCCL sums in the memory of CUDA devices, and trainer.device = \"cpu\" uses none: remove "
        "one of the two");
  }

  // Keys that only one kind of synchronisation reads.
  void settings_of_others() {
    const TrainerSection& t = c_.trainer;
    only_for(SyncStrategy::kPsSsp, "trainer.staleness", t.staleness);
    only_for_shadow("trainer.shadow.every", t.shadow.every);
    only_for_shadow("trainer.shadow.alpha", t.shadow.alpha);
    only_for_shadow("trainer.shadow.threads", t.shadow.threads);
    only_for(SyncStrategy::kShadowBmuf, "trainer.shadow.eta", t.shadow.eta);
    only_for(SyncStrategy::kGaia, "trainer.gaia.threshold", t.gaia.threshold);
    only_for(SyncStrategy::kGaia, "trainer.gaia.whole_every", t.gaia.whole_every);
    const SkewScoutSection& scout = c_.control.skew_scout;
    only_for_scout("control.skew_scout.every", scout.every);
    only_for_scout("control.skew_scout.tolerated_loss", scout.tolerated_loss);
    only_for_scout("control.skew_scout.weight_loss", scout.weight_loss);
    only_for_scout("control.skew_scout.weight_bytes", scout.weight_bytes);
  }
  template <class Value>
  void only_for_scout(const char* key, Value value) {
    const Value unsaid = schema::default_value(*schema::find_key(key));
    unless(c_.control.solution == "skew-scout" || value == unsaid, {key, "control.solution"},
           fmt::format("is for control.solution = \"skew-scout\", not \"{}\": remove it",
                       c_.control.solution));
  }
  template <class Value>
  void only_for(SyncStrategy sync, const char* key, Value value) {
    only_for(is_sync(sync), fmt::format("\"{}\"", name_of(sync)), key, value);
  }
  template <class Value>
  void only_for_shadow(const char* key, Value value) {
    only_for(is_shadow_job(), "\"shadow-easgd\", \"shadow-ma\" or \"shadow-bmuf\"", key, value);
  }
  template <class Value>
  void only_for(bool is_one, const std::string& syncs, const char* key, Value value) {
    // effective.toml writes every key, so a default value counts as not written.
    const Value unsaid = schema::default_value(*schema::find_key(key));
    unless(is_one || value == unsaid, {key, "trainer.sync"},
           fmt::format("is for trainer.sync = {}, not \"{}\": remove it", syncs, c_.trainer.sync));
  }

  // Workers exchange parameters in the host's memory, by the loop and the engines of antdt-trainer.
  void replicas() {
    if (!has_replicas()) return;
    const TrainerSection& t = c_.trainer;
    const bool gaia = is_sync(SyncStrategy::kGaia);
    const char* const what = gaia ? "sends updates of" : "averages";
    const std::string& protocol = c_.roles.worker.protocol;
    unless(speaks(protocol, Protocol::kAntdt), {"trainer.sync", "roles.worker.protocol"},
           fmt::format("'{}' is for antdt-trainer: a program of protocol '{}' exchanges what it "
                       "trains itself; remove it",
                       t.sync, protocol));
    unless(!may_have_own_names(c_), {"trainer.sync", "roles.worker.command"},
           fmt::format("'{}' {} the parameters of antdt-trainer, and roles.worker.command names "
                       "another program: use \"allreduce\"",
                       t.sync, what));
    unless(
        t.device != "cuda", {"trainer.sync", "trainer.device"},
        fmt::format("'{}' {} parameters in the host's memory, and trainer.device = \"cuda\" keeps "
                    "them on devices: write device = \"cpu\", or use \"allreduce\"",
                    t.sync, what));
    unless(t.precision == "fp32", {"trainer.sync", "trainer.precision"},
           fmt::format("'{}' is for precision \"fp32\", not \"{}\": write that, or use "
                       "\"allreduce\"",
                       t.sync, t.precision));
    unless(t.collective != "nccl", {"trainer.collective", "trainer.sync"},
           fmt::format("\"nccl\" sums in the memory of devices, and trainer.sync = \"{}\" {} "
                       "parameters in the host's: write \"auto\"",
                       t.sync, what));
  }

  // The sum of the domains' updates is that of all-reduce only for an optimizer whose update is
  // linear in the gradients.
  void gaia() {
    if (!is_sync(SyncStrategy::kGaia)) return;
    const TrainerSection& t = c_.trainer;
    unless(c_.domain.size() >= 2, {"trainer.sync", "domain"},
           fmt::format("'gaia' is for hosts in two or more domains, and this job has {}: write a "
                       "[[domain]] for each place, or use \"allreduce\"",
                       c_.domain.empty() ? "no [[domain]]" : "one [[domain]]"));
    unless(t.model != "emulated", {"trainer.model", "trainer.sync"},
           "'emulated' has no parameters whose updates could be significant: use trainer.sync = "
           "\"allreduce\" or \"ds-sync\"");
    if (t.model == "tally") return;  // it has no optimizer
    const char* const adam = t.optimizer == "adam" ? "Adam" : "Adagrad";
    unless(t.optimizer == "sgd", {"trainer.optimizer", "trainer.sync"},
           fmt::format("each domain would take a whole step of {}, and the model their sum: use "
                       "\"sgd\", or trainer.sync = \"ds-sync\"",
                       adam));
    unless(t.weight_decay == 0, {"trainer.weight_decay", "trainer.sync"},
           "each domain would take the whole decay, and the model their sum: write 0, or use "
           "trainer.sync = \"ds-sync\"");
  }

  // It changes Gaia's threshold by what replicas lose at other domains.
  void skew_scout() {
    if (c_.control.solution != "skew-scout") return;
    const TrainerSection& t = c_.trainer;
    unless(
        is_sync(SyncStrategy::kGaia), {"control.solution", "trainer.sync"},
        fmt::format("'skew-scout' changes the threshold of trainer.sync = \"gaia\", and this job "
                    "has \"{}\": write sync = \"gaia\", or another solution",
                    t.sync));
    if (!is_sync(SyncStrategy::kGaia)) return;
    unless(
        t.model != "tally", {"control.solution", "trainer.model"},
        "'skew-scout' compares how accurate replicas are, and 'tally' only counts: write another "
        "solution");
    unless(t.gaia.threshold > 0, {"trainer.gaia.threshold", "control.solution"},
           "'skew-scout' divides and multiplies the threshold, and 0 stays 0: write more, such as "
           "0.01");
    const std::uint64_t every = c_.control.skew_scout.every;
    if (every == 0) return;
    const std::uint64_t times = std::max<std::uint64_t>(1, t.gaia.whole_every / every);
    unless(
        t.gaia.whole_every % every == 0, {"trainer.gaia.whole_every", "control.skew_scout.every"},
        fmt::format("{} is not a multiple of control.skew_scout.every = {}, so visits would find "
                    "replicas that a whole exchange has just made equal: write {}",
                    t.gaia.whole_every, every, times * every));
  }

  // Each worker trains a replica of its own, which the servers' centre follows.
  void shadow() {
    if (!is_shadow_job()) return;
    const TrainerSection& t = c_.trainer;
    unless(!is_instrument(t.model), {"trainer.model"},
           fmt::format("'{}' has no dense parameters that a worker could keep: use trainer.sync = "
                       "\"ps-asp\"",
                       t.model));
    if (is_sync(SyncStrategy::kShadowEasgd)) elastic();
    unless(!is_sync(SyncStrategy::kShadowBmuf) || t.shadow.eta > 0, {"trainer.shadow.eta"},
           "with 0 the model would never follow the workers' replicas: write a share above 0, or "
           "use trainer.sync = \"shadow-ma\", which is shadow-bmuf with 1");
    unless(t.shadow.threads <= 1 || t.threads <= 1, {"trainer.shadow.threads", "trainer.threads"},
           fmt::format("each of {} threads computes its part of a batch alone, and trainer.threads "
                       "= {} would share out the operations of each: write trainer.threads = 1, or "
                       "trainer.shadow.threads = 1",
                       t.shadow.threads, t.threads));
  }

  // N workers that exchange with the same centre at once leave |1 - alpha (N + 1)| of their
  // distance from it. A mean of replicas is between them whatever the share.
  void elastic() {
    const TrainerSection& t = c_.trainer;
    const std::uint32_t workers = std::max(1U, c_.roles.worker.max);
    const double bound = 2.0 / (workers + 1.0);
    unless(t.shadow.alpha < bound, {"trainer.shadow.alpha", "roles.worker.count"},
           fmt::format("with {} workers that exchange at once, {} moves the centre farther away "
                       "from them than it was: it must be below 2 / (workers + 1) = {:.4g}, and 0 "
                       "is 1 / workers",
                       workers, t.shadow.alpha, bound));
  }

  // Members sum the gradients of the dense parameters in the host's memory, and the rows of
  // embedding tables are on servers of one process each.
  void hybrid() {
    if (!is_sync(SyncStrategy::kHybrid)) return;
    const TrainerSection& t = c_.trainer;
    unless(
        t.model != "tally" && t.model != "emulated", {"trainer.model", "trainer.sync"},
        fmt::format("'{}' has no embedding table whose rows could be on servers: use trainer.sync "
                    "= \"allreduce\" or \"ps-bsp\"",
                    t.model));
    unless(t.device != "cuda" && t.collective != "nccl", {"trainer.sync", "trainer.device"},
           "'hybrid' computes on processors: write device = \"cpu\" and collective = \"auto\", or "
           "use \"allreduce\"");
    unless(t.precision == "fp32", {"trainer.precision", "trainer.sync"},
           fmt::format("'hybrid' is for precision \"fp32\", not \"{}\": write that, or use "
                       "\"allreduce\"",
                       t.precision));
    unless(c_.roles.server.replicas < 2, {"roles.server.replicas", "trainer.sync"},
           "'hybrid' is for servers of one process: write replicas = 1, or use \"ps-bsp\"");
    unless(!c_.control.share_steps, {"control.share_steps", "trainer.sync"},
           "members of a 'hybrid' job cannot share steps: write false, or use \"allreduce\"");
    unless(t.embedding_gradients != "sparse", {"trainer.embedding_gradients", "trainer.sync"},
           "under 'hybrid' the rows of the batch are sent to servers: remove it");
  }

  // Reports a problem with the first key, unless one of the keys has a problem already.
  void unless(bool fine, std::initializer_list<const char*> keys, const std::string& text) {
    if (fine || std::ranges::any_of(keys, [&](const char* k) { return problems_.has(k); })) return;
    problems_.add(*keys.begin(), text);
  }
  // Whether workers' replicas may differ and are exchanged between workers.
  [[nodiscard]] bool has_replicas() const {
    return is_sync(SyncStrategy::kDsSync) || is_sync(SyncStrategy::kGaia);
  }
  [[nodiscard]] bool is_shadow_job() const {
    const auto sync = by_name<SyncStrategy>(c_.trainer.sync);
    return sync && is_shadow(*sync);
  }
  // False for all of them if the name is unknown, which sync() reports.
  [[nodiscard]] bool is_sync(SyncStrategy sync) const {
    return by_name<SyncStrategy>(c_.trainer.sync) == sync;
  }

  const JobConfig& c_;
  Problems& problems_;
};

}  // namespace

void check_sync(const JobConfig& config, Problems& problems) {
  SyncChecker(config, problems).run();
}

}  // namespace antdt::launcher
