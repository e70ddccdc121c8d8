#include "ctl/job/parts.h"

#include <algorithm>
#include <utility>

#include "core/wire/packet.h"

namespace antdt::ctl::job {
namespace {

// Whether the loss of a server leaves the rows of the others as they are. With a barrier all
// servers have the same steps, so all go back together.
bool others_keep_rows(const JobSpec& spec) {
  return spec.delivery != Delivery::kExactlyOnce && spec.sync != SyncStrategy::kPsBsp &&
         spec.sync != SyncStrategy::kHybrid;
}

Group& group_of(const JobSpec& spec, RingGroup& ring, HybridGroup& hybrid, ServersGroup& servers) {
  if (spec.sync == SyncStrategy::kHybrid) return hybrid;
  if (spec.servers > 0) return servers;
  return ring;
}

}  // namespace

Parts::Parts(JobMachineConfig the_config, std::unique_ptr<Solution> solution,
             shard_server::Ledger ledger, shard_server::Accounts accounts, Past the_past)
    : config(std::move(the_config)),
      lifecycle(config.spec),
      membership(config.secret, config.hang_after),
      servers({config.spec.servers, config.spec.sync, config.spec.backups, config.hang_after,
               config.spec.server_replicas, others_keep_rows(config.spec), config.host_lost_after}),
      controller(config.control, std::move(solution)),
      vitals(config.hang_after),
      devices(config.devices),
      series(!in_collective(config.spec.sync)),
      server_stats(config.spec.server_replicas > 1),
      history(config.spec.external),
      past(std::move(the_past)),
      records(*this, std::move(ledger), std::move(accounts)),
      suspicions(*this),
      members(*this),
      ring(*this),
      hybrid(*this, ring),
      servers_group(*this),
      group(group_of(config.spec, ring, hybrid, servers_group)),
      phases(*this),
      checkpoints(*this),
      restoring(*this),
      life_orders(*this),
      controlling(*this),
      hosts(*this),
      watching(*this),
      injections(*this),
      operators(*this),
      traced(*this),
      messages(*this) {}

void Parts::restore(JobImage image) {
  membership.restore(image.membership);
  // Where there are members of a collective as well, each of the two has generations of its own.
  servers.restore(image.servers, is_hybrid() ? Generation{} : image.membership.generation);
  servers_group.cuts().ordered(image.cut_phase);
  injections.restore(image.injected);
  devices.restore(image.devices);
  // The servers had written this checkpoint, and nobody knows any more whether it was stored; they
  // write another one.
  const bool of_servers = config.spec.servers > 0;
  if (of_servers && image.servers.cut == 0) image.lifecycle.checkpoint_pending = false;
  series.restore(past.epochs(), image.epochs, image.training, image.lifecycle.seconds);
  lifecycle.restore(std::move(image.lifecycle), group.restored());
  suspicions.restore(image.deaths);
  for (const auto& [id, worker] : past.workers()) times.restore(id, worker.ended, worker.present);
  if (image.decided) server_stats.restore(*image.decided);
}

JobImage Parts::image() const {
  JobImage image;
  image.lifecycle = lifecycle.image();
  image.membership = membership.image();
  image.servers = servers.image();
  image.cut_phase = servers_group.cuts().phase();
  image.injected = injections.image();
  image.devices = devices.said();
  image.plan = controller.plan();
  image.threshold = controller.job_threshold();
  image.deaths = suspicions.image();
  const std::size_t epochs = series.epochs().size();
  image.epochs_before = std::min(past.epochs().size(), epochs);
  for (std::size_t i = image.epochs_before; i < epochs; ++i) {
    image.epochs.push_back(series.image_of(i));
  }
  image.training = series.image(lifecycle.seconds(), now);
  if (server_stats.earlier().pushes_applied > 0) image.decided = server_stats.earlier();
  return image;
}

// The image of a turn holds only what may still change, however long the job runs: the present
// epoch, the one before it (whose evaluation may be under way), and the newest failures.
void Parts::persist_past(Work& work) {
  constexpr std::size_t kPresentEpochs = 2;
  const std::size_t epochs = series.epochs().size();
  past.keep_epochs(epochs);
  while (past.epochs().size() + kPresentEpochs < epochs) {
    past.add(series.image_of(past.epochs().size()));
    work.save_image();
  }
  for (FailureRecord& failure : lifecycle.take_old_failures()) {
    past.add(std::move(failure));
    work.save_image();
  }
  for (auto& [kind, bytes] : past.take_records()) {
    work.say(PersistRecord{kind, std::move(bytes)});
  }
}

void Parts::keep_times(WorkerId worker) {
  past.keep({worker, times.ended_of(worker), times.present_of(worker)});
}

void Parts::keep_all_times() {
  for (const WorkerProcess& w : lifecycle.workers()) {
    if (!w.is_server() && times.present_of(w.place.worker)) keep_times(w.place.worker);
  }
}

bool Parts::trains() const {
  return !ended && lifecycle.state() == JobState::kTraining && (group.whole() || traced.any());
}

}  // namespace antdt::ctl::job
