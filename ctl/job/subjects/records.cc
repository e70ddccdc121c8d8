#include "ctl/job/subjects/records.h"

#include <utility>

#include "core/check.h"
#include "core/overloaded.h"
#include "ctl/job/parts.h"

namespace antdt::ctl::job {

namespace {

// Whether other machines depend on this effect.
bool leads_on(const shard_server::ledger::Effect& effect) {
  return std::holds_alternative<shard_server::ledger::EndPhase>(effect) ||
         std::holds_alternative<shard_server::ledger::StopJob>(effect);
}

}  // namespace

Records::Records(Parts& parts, shard_server::Ledger ledger, shard_server::Accounts accounts)
    : parts_(parts), ledger_(std::move(ledger)), accounts_(std::move(accounts)) {}

void Records::step(const shard_server::ledger::Input& event, Work& work) {
  effects_.clear();
  ledger_.step(event, work.now, effects_);
  auto effect = effects_.begin();
  for (; effect != effects_.end(); ++effect) {
    carry_out(*effect, work);
    if (leads_on(*effect)) break;
  }
  // Everything that follows from a completed phase comes before the ledger's later effects.
  if (effect == effects_.end()) return;
  for (++effect; effect != effects_.end(); ++effect) work.then(std::move(*effect));
}

void Records::on(const JobCreated& /*e*/, Work& work) {
  const JobSpec& spec = parts_.config.spec;
  work.save_image();
  step(shard_server::ledger::JobDeclared{spec.epochs, spec.train_records,
                                         spec.protocol == Protocol::kAntdt},
       work);
  if (spec.delivery != Delivery::kExactlyOnce) {
    step(shard_server::ledger::DeliveryChosen{spec.delivery}, work);
  }
}

template <class Request>
void Records::take(const Request& request, Work& work) {
  const RunHistory& history = parts_.history;
  const auto before =
      history.holding(ledger_, parts_.membership, request.member, request.generation);
  step(request, work);
  if (before) work.remember(RunHistory::changed(ledger_, request.member, *before));
}

void Records::fetch(const shard_server::ledger::FetchRequested& e, Work& work) { take(e, work); }

void Records::recalled(const shard_server::ledger::RecallAnswered& e, Work& work) { take(e, work); }

void Records::carry_out(shard_server::ledger::Effect& effect, Work& work) {
  namespace ledger = shard_server::ledger;
  std::visit(
      Overloaded{
          [&](ledger::PersistRecord& e) { persist(std::move(e.bytes), work); },
          [&](ledger::SendGrants& e) {
            if (const auto kept = parts_.history.kept_through(e.generation)) {
              e.grants.recorded = *kept;
            }
            work.send(e.member, e.generation, std::move(e.grants), e.seq);
          },
          [&](ledger::SendRefusal& e) {
            // This is the worker's problem, so it is not shown as the last thing that happened to
            // the job.
            work.say(PublishNote{"refused",
                                 fmt::format("{} (attempt {}) was refused: {}", e.member.worker,
                                             e.member.attempt, e.refused.reason),
                                 ""});
            if (e.seq == 0) return;
            work.send(e.member, parts_.group.generation(), std::move(e.refused), e.seq);
          },
          [&](ledger::SendRecall& e) { work.send(e.member, e.generation, e.recall, e.number); },
          [&](ledger::EndPhase& e) { work.then(PhaseCompleted{e.phase}); },
          [&](ledger::NoteReturned& e) {
            work.note("returned", fmt::format("{} (attempt {}) gave back {} records of epoch {}",
                                              e.member.worker, e.member.attempt, e.range.at.size(),
                                              e.epoch.value + 1));
          },
          [&](ledger::StopJob& e) {
            work.then(lifecycle::JobFailed{ExitClass::kData, 4, e.reason});
          },
      },
      effect);
}

void Records::persist(std::string bytes, Work& work) {
  const Status counted = accounts_.apply(bytes);
  ANTDT_CHECK(counted.has_value(), "the accounts refuse what the ledger decided: {}",
              counted.error().message);
  work.say(PersistRecord{shard_server::kLedgerKind, std::move(bytes)});
}

Status Records::rewind(Lineage lineage, std::string ledger_image, std::string accounts_image,
                       Work& work) {
  ANTDT_TRY(auto rewound,
            ledger_.rewind(lineage, std::move(ledger_image), std::move(accounts_image)));
  persist(std::move(rewound.bytes), work);
  return {};
}

const shard_server::Holder* Records::holder_of(Member member) const {
  const auto holder = ledger_.holders().find(member.worker);
  const bool known = holder != ledger_.holders().end() && holder->second.attempt == member.attempt;
  return known ? &holder->second : nullptr;
}

Result<Records::Images> Records::images_at(const std::vector<wire::MemberPlace>& places) const {
  Images images;
  ANTDT_TRY(images.ledger, ledger_.image_at(places));
  ANTDT_TRY(const auto then, shard_server::Ledger::restore(parts_.config.ledger, images.ledger));
  images.accounts = accounts_.at(then).image();
  return images;
}

}  // namespace antdt::ctl::job
