#include "ctl/job/subjects/suspicions.h"

#include <utility>

#include "ctl/job/parts.h"
#include "ctl/job/work.h"

namespace antdt::ctl::job {
namespace {

// Steps of a dead worker whose records are suspect: the last two, which may not be stable, and the
// one after them.
constexpr std::uint64_t kSuspectSteps = 3;
constexpr std::uint64_t kEverything = ~std::uint64_t{0};

}  // namespace

void Suspicions::add(Member dead, std::uint64_t place, std::uint64_t records, Work& work) {
  const shard_server::Ledger& ledger = parts_.records.ledger();
  const shard_server::Holder* holder = parts_.records.holder_of(dead);
  if (holder == nullptr || ledger.phase().kind != shard_server::PhaseKind::kTrain) return;
  suspects_.add({ledger.phase().epoch, dead, shard_server::held_by(*holder, place, records)});
  work.save_image();
}

void Suspicions::add_last_steps(Member dead, std::uint64_t place, Work& work) {
  const auto& holders = parts_.records.ledger().holders();
  const auto holder = holders.find(dead.worker);
  if (holder == holders.end()) return;
  add(dead, place, kSuspectSteps * holder->second.step_records, work);
}

void Suspicions::add_all_of_members(Work& work) {
  for (const Member dead : std::exchange(members_, {})) add(dead, 0, kEverything, work);
}

// The worker's share must be read now: it has none in the plan any more when its home answers.
void Suspicions::add_server_worker(Member dead) {
  const auto& holders = parts_.records.ledger().holders();
  const auto holder = holders.find(dead.worker);
  if (holder == holders.end()) return;
  server_workers_[dead] = kSuspectSteps * holder->second.step_records;
}

bool Suspicions::judge_server_worker(Member dead, std::uint64_t place, Work& work) {
  const auto found = server_workers_.find(dead);
  if (found == server_workers_.end()) return false;
  add(dead, place, found->second, work);
  server_workers_.erase(found);
  return true;
}

bool Suspicions::end_job_if_shared(Work& work) const {
  const std::uint32_t limit = parts_.config.ledger.retry_limit;
  const auto at = suspects_.shared_by(limit);
  if (!at) return false;
  const shard_server::SuspiciousDeath& last = suspects_.deaths().back();
  work.then(lifecycle::JobFailed{
      ExitClass::kData, 4,
      shard_server::suspects_text(parts_.config.ledger.run, last.epoch, *at, limit, last.member)});
  return true;
}

void Suspicions::clear() {
  suspects_.clear();
  members_.clear();
}

std::vector<ImageDeath> Suspicions::image() const {
  std::vector<ImageDeath> deaths;
  for (const shard_server::SuspiciousDeath& d : suspects_.deaths()) {
    ImageDeath death{d.epoch, d.member.worker, d.member.attempt, {}};
    for (const shard_server::Interval& i : d.held) {
      death.bounds.insert(death.bounds.end(), {i.from, i.to});
    }
    deaths.push_back(std::move(death));
  }
  return deaths;
}

void Suspicions::restore(const std::vector<ImageDeath>& deaths) {
  std::vector<shard_server::SuspiciousDeath> known;
  for (const ImageDeath& d : deaths) {
    known.push_back({d.epoch, {d.worker, d.attempt}, {}});
    for (std::size_t i = 0; i + 1 < d.bounds.size(); i += 2) {
      known.back().held.push_back({d.bounds[i], d.bounds[i + 1]});
    }
  }
  suspects_.restore(std::move(known));
}

}  // namespace antdt::ctl::job
