#include "ctl/job/group/server_cuts.h"

#include <algorithm>
#include <map>
#include <utility>

#include "ctl/job/parts.h"
#include "ctl/job/work.h"

namespace antdt::ctl::job {
namespace {

// After this many failed checkpoints in a row because of the same server, that server is moved.
constexpr std::uint32_t kUnwrittenMost = 3;

}  // namespace

const WorkerProcess* ServerCuts::first_server() const {
  const auto& workers = parts_.lifecycle.workers();
  const auto first = std::ranges::find_if(workers, [&](const WorkerProcess& w) {
    return w.is_server() && parts_.servers.placement().is_first(w.member());
  });
  return first == workers.end() ? nullptr : &*first;
}

void ServerCuts::move_who_cannot_write(const servers::ConcludeCut& cut, Work& work) {
  if (!cut.unwritten || cut.unwritten != unwritten_.server) unwritten_ = {};
  if (!cut.unwritten || parts_.lifecycle.outcome()) return;
  unwritten_.server = *cut.unwritten;
  if (++unwritten_.times < kUnwrittenMost) return;
  const lifecycle::RestartRequested move{
      unwritten_.server,
      fmt::format("{} checkpoints in a row failed because of it ({})", unwritten_.times, cut.error),
      parts_.config.spec.stop_grace};
  if (const Status possible = parts_.operators.check(move); !possible) {
    const std::string why = possible.error().message;
    if (std::exchange(unwritten_.said, why) == why) return;
    return work.note("cannot-move", fmt::format("{} should be moved, since {}; it cannot be: {}",
                                                unwritten_.server.worker, move.reason, why));
  }
  unwritten_ = {};
  work.then(move);
}

void ServerCuts::on(const servers::ConcludeCut& cut, Work& work) {
  move_who_cannot_write(cut, work);
  const shard_server::Ledger& ledger = parts_.records.ledger();
  wire::CheckpointWritten written;
  written.number = cut.number;
  written.phase = ledger.phase().number;
  written.step = Step{cut.version};
  written.directory = parts_.config.ledger.run + "/" + cut.directory;
  written.files = cut.files;
  written.error = cut.error;
  if (written.error.empty() && phase_ != written.phase) {
    written.error =
        fmt::format("phase {} was over before checkpoint {} was written", phase_, cut.number);
  }
  // Only in training there are places to take back to those of the cut.
  const bool trains = parts_.lifecycle.phase().what == wire::PhaseKind::kTrain;
  std::map<Member, const wire::PsPlaces*> places;
  for (const wire::PsPlaces& p : cut.places) {
    if (p.phase == written.phase) places.try_emplace({p.worker, p.attempt}, &p);
  }
  for (const auto& [worker, holder] : ledger.holders()) {
    if (!holder.active || !trains) continue;
    const auto at = places.find({worker, holder.attempt});
    // Workers that have not pushed in this phase are still at its beginning.
    const bool pushed = at != places.end() && !at->second->applied.empty();
    written.places.push_back({worker, pushed ? at->second->applied.back().to : 0});
  }
  if (const WorkerProcess* first = first_server()) {
    parts_.checkpoints.store(written, first->member(), cut.writers, work);
  }
}

}  // namespace antdt::ctl::job
