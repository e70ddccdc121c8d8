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
    ds_sync();
    shadow();
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
    unless(is_sync(SyncStrategy::kAllReduce), {"trainer.embedding_gradients", "trainer.sync"},
           fmt::format(
               "is for trainer.sync = \"allreduce\", not \"{}\", under which {}: remove it", t.sync,
               is_sync(SyncStrategy::kDsSync) ? "no gradient travels, and the whole table does"
                                              : "only rows in a batch travel"));
    unless(t.momentum == 0, {"trainer.embedding_gradients", "trainer.momentum"},
           "\"sparse\" goes with no momentum: remove that, or use adagrad or adam");
  }

  void collective() {
    const TrainerSection& t = c_.trainer;
    if (t.collective == "auto") return;
    unless(
        is_sync(SyncStrategy::kAllReduce) || is_sync(SyncStrategy::kDsSync),
        {"trainer.collective", "trainer.sync"},
        fmt::format("is for trainer.sync = \"allreduce\" or \"ds-sync\", not \"{}\", under which "
                    "workers send each other nothing: remove it",
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
    only_for(SyncStrategy::kShadowEasgd, "trainer.shadow.every", t.shadow.every);
    only_for(SyncStrategy::kShadowEasgd, "trainer.shadow.alpha", t.shadow.alpha);
  }
  template <class Value>
  void only_for(SyncStrategy sync, const char* key, Value value) {
    // effective.toml writes every key, so a default value counts as not written.
    const Value unsaid = schema::default_value(*schema::find_key(key));
    unless(is_sync(sync) || value == unsaid, {key, "trainer.sync"},
           fmt::format("is for trainer.sync = \"{}\", not \"{}\": remove it", name_of(sync),
                       c_.trainer.sync));
  }

  // Groups average parameters in the host's memory, by the loop and the engines of antdt-trainer.
  void ds_sync() {
    if (!is_sync(SyncStrategy::kDsSync)) return;
    const TrainerSection& t = c_.trainer;
    const std::string& protocol = c_.roles.worker.protocol;
    unless(
        speaks(protocol, Protocol::kAntdt), {"trainer.sync", "roles.worker.protocol"},
        fmt::format("'ds-sync' is for antdt-trainer: a program of protocol '{}' exchanges what it "
                    "trains itself; remove it",
                    protocol));
    unless(!may_have_own_names(c_), {"trainer.sync", "roles.worker.command"},
           "'ds-sync' averages the parameters of antdt-trainer, and roles.worker.command names "
           "another program: use \"allreduce\"");
    unless(
        t.device != "cuda", {"trainer.sync", "trainer.device"},
        "'ds-sync' averages parameters in the host's memory, and trainer.device = \"cuda\" keeps "
        "them on devices: write device = \"cpu\", or use \"allreduce\"");
    unless(t.precision == "fp32", {"trainer.sync", "trainer.precision"},
           fmt::format("'ds-sync' is for precision \"fp32\", not \"{}\": write that, or use "
                       "\"allreduce\"",
                       t.precision));
    unless(t.collective != "nccl", {"trainer.collective", "trainer.sync"},
           "\"nccl\" sums in the memory of devices, and trainer.sync = \"ds-sync\" averages in the "
           "host's: write \"auto\"");
  }

  // Each worker trains a replica of its own, which the servers' centre follows.
  void shadow() {
    if (!is_sync(SyncStrategy::kShadowEasgd)) return;
    const TrainerSection& t = c_.trainer;
    const bool counts = t.model == "tally" || t.model == "tally3" || t.model == "emulated";
    unless(!counts, {"trainer.model"},
           fmt::format("'{}' has no dense parameters that a worker could keep: use trainer.sync = "
                       "\"ps-asp\"",
                       t.model));
  }

  // Reports a problem with the first key, unless one of the keys has a problem already.
  void unless(bool fine, std::initializer_list<const char*> keys, const std::string& text) {
    if (fine || std::ranges::any_of(keys, [&](const char* k) { return problems_.has(k); })) return;
    problems_.add(*keys.begin(), text);
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
