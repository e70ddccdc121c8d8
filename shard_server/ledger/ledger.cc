#include "shard_server/ledger/ledger.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "core/wire/envelope.h"
#include "core/wire/membership_messages.h"
#include "shard_server/ledger/grant_policy.h"
#include "shard_server/ledger/ledger_image.h"
#include "shard_server/ledger/record_checks.h"
#include "shard_server/ledger/record_codec.h"
#include "shard_server/suspects/suspects.h"

namespace antdt::shard_server::ledger {
namespace {

constexpr std::uint32_t kRetryMs = 20;
// Nothing can come for a worker whose domain is done until the phase of the others is over.
constexpr std::uint32_t kDomainDoneRetryMs = 100;

// What is left for the workers of a domain; in a phase whose records are not pinned, for all
// workers.
PhaseNeed phase_need(const LedgerState& state, DomainNumber domain) {
  const Holders::Sums sums = state.sums_for(domain);
  return {state.supply().ungranted_in(domain), sums.outstanding, sums.members, sums.step_records};
}
MemberNeed member_need(const Holder& holder) {
  return {holder.outstanding(), holder.step_records, holder.hold_records};
}

// Decides what a member is granted. `drops_late`: see LedgerConfig.
FetchAnswered decide(const LedgerState& state, const FetchRequested& event, const Holder& holder,
                     bool drops_late) {
  FetchAnswered answer;
  answer.member = event.member;
  answer.seq = event.seq;
  answer.place = event.request.place;
  answer.partials = event.request.partials;

  // Computed as if the place were committed and the late records given back already.
  const std::uint64_t goes = event.request.place - holder.place + event.request.late;
  MemberNeed member = member_need(holder);
  PhaseNeed phase = phase_need(state, holder.domain);
  member.held -= goes;
  phase.outstanding -= goes;
  // Records that came too late of this worker go to other workers, as long as any of them holds
  // records and so will ask for more.
  std::optional<WorkerId> but_of;
  const std::uint64_t kept_for_others = state.supply().late_of(event.member.worker, holder.domain);
  if (kept_for_others > 0 && phase.outstanding > member.held) {
    but_of = event.member.worker;
    phase.ungranted -= kept_for_others;
  }

  const bool recalled = holder.recall_pending && member.held > 0;
  const std::uint64_t size = recalled ? 0 : grant_size(event.request.want, member, phase);
  if (size > 0) {
    answer.status = AnswerStatus::kGranted;
    answer.granted = state.supply().next(size, holder.domain, but_of);
    return answer;
  }
  const bool gives_back = event.request.late > 0 && !drops_late;
  const bool domain_done = phase.ungranted == 0 && phase.outstanding == 0 && !gives_back;
  const bool all_done =
      state.supply().ungranted() == 0 && state.holders().outstanding() == goes && !gives_back;
  answer.status = all_done ? AnswerStatus::kEnd : AnswerStatus::kWait;
  if (!all_done) answer.retry_ms = domain_done ? kDomainDoneRetryMs : kRetryMs;
  return answer;
}

}  // namespace

Ledger::Ledger(LedgerConfig config)
    : config_(std::move(config)), state_(config_.train, config_.eval) {}

void Ledger::step(const Input& input, MonoTime now, Effects& out) {
  std::visit([&](const auto& i) { on(i, now, out); }, input);
  check_invariants();
}

// Each position is in at most one of committed, held and returned, and the cursor has passed all of
// them.
void Ledger::check_invariants() const {
  const Supply& supply = state_.supply();
  ANTDT_CHECK(committed() + outstanding() + supply.returned() <= supply.granted_once() &&
                  supply.granted_once() <= records(),
              "phase {}: {} records are committed, {} held and {} returned; {} of {} were granted",
              phase().number, committed(), outstanding(), supply.returned(), supply.granted_once(),
              records());
}

Status Ledger::replay(std::string_view record_bytes) {
  ANTDT_TRY(const Record record, decode_record(record_bytes));
  return std::visit(
      [this](const auto& r) -> Status {
        if (auto fits = check(state_, r); !fits) {
          return fail(ErrorKind::kCorrupt, "journal record does not fit what came before it: {}",
                      fits.error().message);
        }
        LedgerState::Changes changes;
        state_.apply(r, changes);
        return {};
      },
      record);
}

std::string Ledger::image() const { return LedgerImage::write(state_); }

Result<Ledger> Ledger::restore(LedgerConfig config, std::string_view image) {
  Ledger ledger(std::move(config));
  ANTDT_TRY(ledger.state_, LedgerImage::read(ledger.config_.train, ledger.config_.eval, image));
  return ledger;
}

Result<std::string> Ledger::image_at(const std::vector<wire::MemberPlace>& places) const {
  LedgerState then = state_;
  for (const wire::MemberPlace& at : places) {
    const Holder* holder = then.holders().find(at.worker);
    if (holder == nullptr || at.place > holder->end) {
      return fail(ErrorKind::kRefused,
                  "a checkpoint with {} at place {}, which was granted {} records", at.worker,
                  at.place, holder == nullptr ? 0 : holder->end);
    }
    std::uint64_t kept = 0;
    for (const Range& range : holder->recent) kept += range.at.size();
    if (at.place + kept < holder->place) {
      return fail(ErrorKind::kRefused,
                  "a checkpoint with {} at place {}, which is at {} already: it took too long to "
                  "be written",
                  at.worker, at.place, holder->place);
    }
    then.move_to(at.worker, at.place);
  }
  return LedgerImage::write(then);
}

Result<PersistRecord> Ledger::rewind(Lineage lineage, std::string ledger_image,
                                     std::string accounts_image) {
  LedgerRewound record{lineage, std::move(ledger_image), std::move(accounts_image)};
  ANTDT_RETURN_IF_ERROR(check(state_, record));
  LedgerState::Changes changes;
  state_.apply(record, changes);
  may_be_recalled_ = true;
  return PersistRecord{encode_record(record)};
}

// ------------------------------------------------------------------- helpers

template <class R>
void Ledger::write_down(const R& record, Effects& out) {
  const bool was_complete = complete();
  out.emplace_back(PersistRecord{encode_record(record)});
  LedgerState::Changes changes;
  state_.apply(record, changes);
  for (const auto& [member, range] : changes) {
    out.emplace_back(NoteReturned{member, phase().epoch, range});
    if (range.retries < config_.retry_limit) continue;
    out.emplace_back(
        StopJob{suspects_text(config_.run, phase().epoch, range.at, range.retries, member)});
  }
  if (!was_complete && complete()) out.emplace_back(EndPhase{phase().number});
}

template <class R>
bool Ledger::write_down_checked(const R& event, Member sender, Effects& out) {
  if (auto fits = check(state_, event); !fits) {
    out.emplace_back(SendRefusal{sender, 0, {wire::RefusalCode::kInvalid, fits.error().message}});
    return false;
  }
  write_down(event, out);
  return true;
}

// ----------------------------------------------------------- phases, members

template <class Declaration>
void Ledger::on(const Declaration& event, MonoTime, Effects& out) {
  write_down_checked(event, {}, out);
}

// A journal may have pins of fewer records, from before the data grew; those of today are written.
void Ledger::on(const DataPinned& event, MonoTime, Effects& out) {
  if (event.pins == config_.train.pins) return write_down(event, out);
  out.emplace_back(SendRefusal{
      {}, 0, {wire::RefusalCode::kInvalid, "other pins than those of this job's data"}});
}

void Ledger::on(const PhaseOpened& event, MonoTime, Effects& out) {
  if (!write_down_checked(event, {}, out)) return;
  if (complete()) out.emplace_back(EndPhase{phase().number});  // the phase has no records
}

void Ledger::on(const MemberAdmitted& event, MonoTime, Effects& out) {
  // The member was announced once more, after a restart of the job daemon.
  if (state_.holders().find_current(event.member, event.generation) != nullptr) return;
  write_down_checked(event, event.member, out);
}

void Ledger::on(const MemberLost& event, MonoTime, Effects& out) {
  if (check(state_, event)) write_down(event, out);
}

void Ledger::on(const MemberLeft& event, MonoTime, Effects& out) {
  if (check(state_, event)) write_down(event, out);
}

void Ledger::on(const GenerationSettled& event, MonoTime, Effects& out) {
  write_down_checked(event, {}, out);
}

void Ledger::on(const SharesPlanned& event, MonoTime, Effects& out) {
  const auto is_known = [this](const MemberShare& share) {
    const auto found = holders().find(share.worker);
    return found != holders().end() && found->second.step_records == share.step_records &&
           found->second.hold_records == share.hold_records;
  };
  const auto has_share = [](const auto& entry) {
    return entry.second.step_records > 0 || entry.second.hold_records > 0;
  };
  const auto shares_now = std::count_if(holders().begin(), holders().end(), has_share);
  if (static_cast<std::size_t>(shares_now) == event.shares.size() &&
      std::all_of(event.shares.begin(), event.shares.end(), is_known)) {
    return;
  }
  write_down(event, out);
}

void Ledger::on(const SkipDeclared& event, MonoTime, Effects& out) {
  write_down_checked(event, {}, out);
}

void Ledger::on(const PhaseCut& event, MonoTime, Effects& out) {
  write_down_checked(event, {}, out);
}

// --------------------------------------------------------- fetch and commit

void Ledger::on(const FetchRequested& event, MonoTime now, Effects& out) {
  const Holder* holder = state_.holders().find_current(event.member, event.generation);
  const auto reply = [&](wire::Grants grants) {
    if (holder != nullptr) grants.recalls_over = holder->recalls - (holder->recall_pending ? 1 : 0);
    out.emplace_back(SendGrants{event.member, event.generation, event.seq, std::move(grants)});
  };
  if (holder != nullptr && event.seq == holder->last.seq && event.seq != 0) {
    return reply(grants_of(holder->last));
  }
  if (holder == nullptr || event.seq < holder->last.seq || event.request.phase > phase().number) {
    return reply({event.request.phase, wire::GrantStatus::kStale, {}, 0});
  }
  // The next phase opened before this member heard of the end of its phase.
  if (event.request.phase < phase().number)
    return reply({event.request.phase, wire::GrantStatus::kEnd, {}, 0});
  if (event.request.partials.empty() && event.request.late == 0 &&
      event.request.place < holder->place) {
    // A repeated request that later, one-way progress messages have overtaken.
    FetchRequested overtaken = event;
    overtaken.request.place = holder->place;
    return on(overtaken, now, out);
  }
  if (auto fits = check(state_, event); !fits) {
    out.emplace_back(
        SendRefusal{event.member, event.seq, {wire::RefusalCode::kInvalid, fits.error().message}});
    return;
  }
  if (!event.request.skipped.empty()) {
    write_down(RecordsSkipped{event.member, event.request.skipped}, out);
  }
  answer(event, *holder, out);
  reply(grants_of(holder->last));
  if (holder->last.status == AnswerStatus::kWait && event.request.want > 0) {
    recall_surplus(*holder, now, out);
  }
}

void Ledger::answer(const FetchRequested& event, const Holder& holder, Effects& out) {
  FetchAnswered answered = decide(state_, event, holder, config_.drops_late);
  if (event.request.late == 0) return write_down(answered, out);
  write_down(LateReturned{std::move(answered), event.request.late, config_.drops_late}, out);
}

wire::Grants Ledger::grants_of(const Answer& answer) const {
  switch (answer.status) {
    case AnswerStatus::kEnd:
      return {answer.phase, wire::GrantStatus::kEnd, {}, 0};
    case AnswerStatus::kWait:
      return {answer.phase, wire::GrantStatus::kWait, {}, answer.retry_ms};
    case AnswerStatus::kGranted:
      break;
  }
  // All grants of an earlier phase are committed, so a worker that still asks for it is behind.
  if (answer.phase != phase().number) return {answer.phase, wire::GrantStatus::kEnd, {}, 0};
  wire::Grants grants{answer.phase, wire::GrantStatus::kGranted, {}, 0};
  const EpochStream& stream = state_.supply().stream();
  std::uint64_t shards = 0;
  for (const Interval& interval : answer.granted) shards += stream.shards_in(interval);
  grants.pieces.reserve(shards);
  for (const Interval& interval : answer.granted) stream.append_pieces(interval, grants.pieces);
  return grants;
}

void Ledger::on(const ProgressReported& event, MonoTime, Effects& out) {
  const Holder* holder = state_.holders().find_current(event.member, event.generation);
  if (holder == nullptr || event.phase != phase().number || event.place <= holder->place) return;
  write_down_checked(event, event.member, out);
}

// -------------------------------------------------------------------- recall

void Ledger::recall_surplus(const Holder& waiting, MonoTime now, Effects& out) {
  const PhaseNeed phase = phase_need(state_, waiting.domain);
  const bool needy =
      phase.ungranted == 0 && waiting.outstanding() < fair_need(member_need(waiting), phase);
  // At the end of a phase everybody waits and few hold records to give back. Scanning all holders
  // with every fetch would cost the square of their number.
  if (!needy && !may_be_recalled_) return;
  may_be_recalled_ = false;
  const bool pinned = state_.supply().is_pinned();
  for (const auto& [worker, holder] : holders()) {
    if (!holder.active) continue;
    may_be_recalled_ = may_be_recalled_ || holder.recall_pending;
    if (holder.recall_pending) {
      if (now - recall_sent_[worker] >= config_.recall_again_after) {
        send_recall(worker, holder, now, out);
      }
    } else if (needy && &holder != &waiting && (!pinned || holder.domain == waiting.domain)) {
      const std::uint64_t recall = surplus(member_need(holder), phase);
      if (recall == 0) continue;
      write_down(RecallIssued{{worker, holder.attempt}, holder.recalls + 1, holder.end - recall},
                 out);
      send_recall(worker, holder, now, out);
      may_be_recalled_ = true;
    }
  }
}

void Ledger::send_recall(WorkerId worker, const Holder& holder, MonoTime now, Effects& out) {
  recall_sent_[worker] = now;
  out.emplace_back(SendRecall{{worker, holder.attempt},
                              holder.generation,
                              holder.recalls,
                              {phase().number, holder.recall_keep_to}});
}

void Ledger::on(const RecallAnswered& event, MonoTime, Effects& out) {
  const Holder* holder = state_.holders().find_current(event.member, event.generation);
  if (holder == nullptr || event.phase != phase().number || !holder->recall_pending) return;
  if (event.number != 0 && event.number != holder->recalls) return;  // it answers an earlier recall
  // A number of records above what it holds would end below its place, and is refused.
  const std::uint64_t end =
      event.records ? holder->end - std::min(holder->end, *event.records) : event.end;
  write_down_checked(RecallSettled{event.member, event.generation, event.number, event.phase, end},
                     event.member, out);
}

}  // namespace antdt::shard_server::ledger
