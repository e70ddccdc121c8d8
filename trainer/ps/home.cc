#include "trainer/ps/home.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "core/overloaded.h"
#include "trainer/ps/placement.h"

namespace antdt::ps {

// The updates before the group are counted only once (PsIdled).
Home::Home(Consistency consistency, std::uint32_t index, std::uint32_t servers,
           std::uint64_t version)
    : consistency_(consistency),
      index_(index),
      servers_(servers),
      closer_(consistency == Consistency::kBarrier, index == 0 ? version : 0),
      distribution_(index, servers) {}

bool Home::is_home_of(WorkerId worker) const {
  return home_of(consistency_, worker, servers_) == index_;
}

void Home::add_workers(const std::vector<Member>& workers, std::uint32_t backups, Turn turn) {
  std::vector<Member> own;
  std::ranges::copy_if(workers, std::back_inserter(own),
                       [&](Member m) { return is_home_of(m.worker); });
  feed(closer::WorkersAdded{std::move(own), backups}, turn);
}

void Home::revoke(const std::vector<wire::PsMember>& leaving, Turn turn) {
  for (const wire::PsMember& m : leaving) {
    if (is_home_of(m.worker)) feed(closer::WorkerRevoked{{m.worker, m.attempt}}, turn);
  }
}

std::vector<wire::PsPlaces> Home::left(const std::vector<wire::PsMember>& members) const {
  std::vector<wire::PsPlaces> places;
  for (const wire::PsMember& m : members) {
    if (is_home_of(m.worker)) places.push_back(closer_.places({m.worker, m.attempt}));
  }
  return places;
}

void Home::commit(const Asker& from, const wire::PsCommit& m, Turn turn) {
  committing_[from.member] = from;
  feed(closer::CommitHeard{from.member, m}, turn);
}

void Home::idle(Member worker, Turn turn) { feed(closer::IdleHeard{worker}, turn); }

void Home::set_last_cut(std::uint64_t number, Turn turn) { feed(closer::LastCutSet{number}, turn); }

bool Home::mark_cut(std::uint64_t number, const std::string& directory, Turn turn) {
  if (index_ >= homes_of(consistency_, servers_)) return false;
  const std::uint64_t before = closer_.decisions();
  feed(closer::CutMarked{number, directory}, turn);
  return closer_.decisions() > before;
}

void Home::feed(const closer::Input& input, Turn turn) {
  closer::Effects effects;
  closer_.step(input, effects);
  for (closer::Effect& effect : effects) {
    std::visit(Overloaded{
                   [&](closer::Decide& e) {
                     // The decision is applied here first, so a worker that hears of it and pulls
                     // from here sees it, unless it waits for a cut.
                     std::ignore = turn.server.apply(index_, e.decision, turn.replies);
                     distribution_.add(e.decision);
                     turn.decided.push_back(std::move(e.decision));
                   },
                   [&](closer::AnswerCommit& e) { answer(e.to, std::move(e.decided), turn); },
                   [&](closer::RefuseCommit& e) { answer(e.to, std::move(e.refused), turn); },
               },
               effect);
  }
}

void Home::answer(Member member, ServerReply body, Turn turn) {
  const auto asker = committing_.find(member);
  if (asker == committing_.end()) return;
  turn.replies.push_back({asker->second, std::move(body)});
  committing_.erase(asker);
}

Status Home::restore(const CloserImage& closer, const DistributionImage& distribution) {
  ANTDT_RETURN_IF_ERROR(closer_.restore(closer));
  return distribution_.restore(distribution);
}

}  // namespace antdt::ps
