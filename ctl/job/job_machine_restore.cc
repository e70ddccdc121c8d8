// Training goes on from a checkpoint: all of the model, or of lost servers their part.
#include <algorithm>
#include <tuple>
#include <utility>

#include "ctl/job/job_machine.h"

namespace antdt::ctl {
namespace {

constexpr std::uint64_t kEverything = ~std::uint64_t{0};

}  // namespace

void JobMachine::on(const in::CheckpointFound& e) {
  if (lifecycle_.outcome()) return;  // the job began to end while it was looked for
  // Nobody is left who could say how far they were: all that they held.
  for (const Member dead : std::exchange(dead_suspects_, {})) suspect(dead, 0, kEverything);
  if (stop_for_suspects()) return;
  const auto begins = beginning(e);
  const Lineage lineage{membership_.lineage().value + 1};
  auto rewound =
      begins ? ledger_.rewind(lineage, begins->ledger, begins->accounts)
             : Result<shard_server::ledger::PersistRecord>(tl::unexpected<Error>(begins.error()));
  if (!rewound) {
    return feed(job::Event(job::Failed{"checkpoint", 1,
                                       fmt::format("checkpoint {} does not fit this job: {}",
                                                   e.directory, rewound.error().message)}));
  }
  persist_ledger(std::move(rewound->bytes));
  if (begun_) begun_failed("training has gone back to an earlier one");
  const std::uint64_t phase = ledger_.phase().number;
  epochs_.resize(std::min<std::size_t>(epochs_.size(), ledger_.phase().epoch.value));
  progress_ = {};
  if (phase > 0) {
    epochs_.resize(ledger_.phase().epoch.value + 1);
    progress_.begin_phase(phase, now_);
  }
  image_dirty_ = true;
  note("restored",
       fmt::format("{}: lineage {} begins {}", begins->who, lineage,
                   e.directory.empty() ? "at the start, there is no checkpoint"
                                       : fmt::format("from {} (step {})", e.directory, e.step)));
  said_.clear();
  feed(job::Event(job::Restored{phase}));
  feed(MembershipEvent(Begin{lineage, e.directory}));
  if (uses_servers()) feed(servers::Input(servers::RestoreChosen{e.directory, begins->version}));
}

void JobMachine::on(const in::FilesMoved&) {
  membership_.excuse(now_);
  if (uses_servers()) feed(servers::Input(servers::RestoreAdvanced{}));
  feed(job::Event(job::CheckpointMoved{}));
}

// Whoever hears it goes on to read `checkpoint`; "": it reads none.
void JobMachine::send_to_reader(Member to, Generation generation, out::ToWorkerBody body,
                                const std::string& checkpoint) {
  out_->emplace_back(out::ToWorker{to, generation, 0, std::move(body), checkpoint});
}

// A join is said again, and an old one may come late.
void JobMachine::hear_said(Member m, const wire::PsSaid& said) {
  wire::PsSaid& newest = said_[m];
  const auto order = [](const wire::PsSaid& s) {
    return std::tuple(s.generation, s.phase, s.place);
  };
  if (order(newest) < order(said)) newest = said;
}

// Where nobody goes on with what it has, that of the checkpoint.
Result<JobMachine::Beginning> JobMachine::beginning(const in::CheckpointFound& e) const {
  using shard_server::Accounts;
  Beginning then{e.ledger_image, e.accounts_image, e.step.value, "nobody holds the training state"};
  if (e.directory.empty()) {
    then.ledger = shard_server::Ledger(config_.ledger).image();
    then.accounts = accounts_.before_training().image();
  }
  const std::vector<Member> keepers = servers_.keepers();
  if (!uses_servers() || keepers.empty()) return then;
  const std::vector<shard_server::OldPlace> places = places_in_doubt();
  ANTDT_TRY(const Accounts checkpoint, Accounts::restore(then.accounts));
  ANTDT_TRY(const Accounts accounts, accounts_.in_part(checkpoint, places));
  then.accounts = accounts.image();
  then.who = "with what they have go on";
  for (const Member m : keepers) then.who += fmt::format(" {}", m.worker);
  if (config_.spec.delivery == Delivery::kAtLeastOnce) return then;
  std::vector<wire::MemberPlace> committed;
  for (const auto& old : places) committed.push_back({old.member.worker, old.place});
  ANTDT_TRY(then.ledger, ledger_.image_at(committed));
  then.version = std::max(then.version, progress_.step().value);
  return then;
}

// How far what workers hold may be in the model: as far as they have asked a home to apply
// it. Of one that did not come to say so, all of it. An evaluation puts nothing into it.
std::vector<shard_server::OldPlace> JobMachine::places_in_doubt() const {
  std::vector<shard_server::OldPlace> places;
  if (ledger_.phase().kind != shard_server::PhaseKind::kTrain) return places;
  for (const auto& [worker, holder] : ledger_.holders()) {
    if (!holder.active) continue;
    const Member member{worker, holder.attempt};
    const auto said = said_.find(member);
    std::uint64_t place = holder.end;
    if (said != said_.end() && said->second.generation == holder.generation) {
      const bool in_phase = said->second.phase == ledger_.phase().number;
      place = std::clamp(in_phase ? said->second.place : 0, holder.place, holder.end);
    }
    places.push_back({member, place});
  }
  return places;
}

}  // namespace antdt::ctl
