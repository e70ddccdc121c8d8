// What the ledger decides. What a decision changes is in ledger_apply.cc.
#include "shard_server/ledger/ledger.h"

#include <algorithm>
#include <utility>

#include "shard_server/ledger/grant_policy.h"
#include "shard_server/ledger/record_codec.h"
#include "shard_server/ledger/suspects.h"

namespace antdt::shard_server {
namespace {

// Bounds of one answer, so that a message is never large.
constexpr std::uint64_t kMaxPieces = 1024;
constexpr std::size_t kMaxReturnedRanges = 256;
constexpr std::uint32_t kRetryMs = 20;

PhaseNeed phase_need(const Ledger& ledger, std::uint64_t members, std::uint64_t share_sum) {
  return {ledger.ungranted(), ledger.outstanding(), members, share_sum};
}
MemberNeed member_need(const Holder& holder) {
  return {holder.outstanding(), holder.step_records, holder.hold_records};
}

}  // namespace

Ledger::Ledger(LedgerConfig config)
    : config_(config), stream_(DataSet{}, Epoch{}, PhaseKind::kTrain) {}

std::uint64_t Ledger::ungranted() const {
  return returned_.size() + (stream_.size() - cursor_ - skips_ahead_);
}

IntervalSet Ledger::committed_positions() const {
  IntervalSet committed;
  committed.add({0, cursor_});
  for (const Range& range : returned_.ranges()) committed.remove(range.at);
  for (const auto& [worker, holder] : holders_) {
    for (const Range& range : holder.grants) committed.remove(range.at);
  }
  // What was committed before somebody skipped it is committed all the same.
  for (const Interval skip : left_out_.intervals()) committed.remove(skip);
  return committed;
}

Effects Ledger::step(const Event& event, MonoTime now) {
  Effects effects;
  step(event, now, effects);
  return effects;
}

void Ledger::step(const Event& event, MonoTime now, Effects& effects) {
  std::visit([&](const auto& e) { on(e, now, effects); }, event);
}

Status Ledger::replay(std::string_view record_bytes) {
  ANTDT_TRY(const Record record, decode_record(record_bytes));
  return std::visit(
      [this](const auto& r) -> Status {
        if (auto fits = check(r); !fits) {
          return fail(ErrorKind::kCorrupt, "journal record does not fit what came before it: {}",
                      fits.error().message);
        }
        Changes changes;
        apply(r, changes);
        return {};
      },
      record);
}

Result<effect::Persist> Ledger::rewind(Lineage lineage, std::string ledger_image,
                                       std::string accounts_image) {
  record::Rewound record{lineage, std::move(ledger_image), std::move(accounts_image)};
  ANTDT_RETURN_IF_ERROR(check(record));
  Changes changes;
  apply(record, changes);
  return effect::Persist{encode_record(record)};
}

// ------------------------------------------------------------------- helpers

template <class R>
void Ledger::write_down(const R& record, Effects& effects) {
  const bool was_complete = complete();
  effects.emplace_back(effect::Persist{encode_record(record)});
  Changes changes;
  apply(record, changes);
  report(changes, effects);
  if (!was_complete && complete()) effects.emplace_back(effect::PhaseComplete{phase_.number});
}

template <class R>
bool Ledger::write_down_checked(const R& event, Member sender, Effects& effects) {
  if (auto fits = check(event); !fits) {
    effects.emplace_back(effect::Refuse{sender, 0, {"invalid", fits.error().message}});
    return false;
  }
  write_down(event, effects);
  return true;
}

void Ledger::report(const Changes& changes, Effects& effects) const {
  for (const auto& [member, range] : changes) {
    effects.emplace_back(effect::Returned{member, phase_.epoch, range});
    if (range.retries < config_.retry_limit) continue;
    effects.emplace_back(
        effect::StopJob{suspects_text(config_.run, phase_.epoch, range.at, range.retries, member)});
  }
}

Holder* Ledger::current_holder(Member member, Generation generation) {
  const auto found = holders_.find(member.worker);
  if (found == holders_.end()) return nullptr;
  Holder& holder = found->second;
  const bool current =
      holder.active && holder.attempt == member.attempt && holder.generation == generation;
  return current ? &holder : nullptr;
}

// ----------------------------------------------------------- phases, members

template <class Declaration>
void Ledger::on(const Declaration& event, MonoTime, Effects& effects) {
  write_down(event, effects);
}

void Ledger::on(const event::PhaseOpened& event, MonoTime, Effects& effects) {
  if (!write_down_checked(event, {}, effects)) return;
  if (complete()) effects.emplace_back(effect::PhaseComplete{phase_.number});  // of no records
}

void Ledger::on(const event::MemberAdmitted& event, MonoTime, Effects& effects) {
  // Announced once more, after a restart of the job daemon.
  if (current_holder(event.member, event.generation)) return;
  write_down_checked(event, event.member, effects);
}

void Ledger::on(const event::MemberLost& event, MonoTime, Effects& effects) {
  if (check(event)) write_down(event, effects);
}

void Ledger::on(const event::MemberLeft& event, MonoTime, Effects& effects) {
  if (check(event)) write_down(event, effects);
}

void Ledger::on(const event::Settled& event, MonoTime, Effects& effects) {
  write_down_checked(event, {}, effects);
}

void Ledger::on(const event::Shares& event, MonoTime, Effects& effects) {
  const auto is_known = [this](const MemberShare& share) {
    const auto found = holders_.find(share.worker);
    return found != holders_.end() && found->second.step_records == share.step_records &&
           found->second.hold_records == share.hold_records;
  };
  const auto has_share = [](const auto& entry) {
    return entry.second.step_records > 0 || entry.second.hold_records > 0;
  };
  const auto shares_now = std::count_if(holders_.begin(), holders_.end(), has_share);
  if (static_cast<std::size_t>(shares_now) == event.shares.size() &&
      std::all_of(event.shares.begin(), event.shares.end(), is_known)) {
    return;
  }
  write_down(event, effects);
}

void Ledger::on(const event::SkipDeclared& event, MonoTime, Effects& effects) {
  write_down_checked(event, {}, effects);
}

// --------------------------------------------------------- fetch and commit

void Ledger::on(const event::Fetch& event, MonoTime now, Effects& effects) {
  Holder* holder = current_holder(event.member, event.generation);
  const auto reply = [&](wire::Grants grants) {
    if (holder != nullptr) grants.recalls_over = holder->recalls - (holder->recall_pending ? 1 : 0);
    effects.emplace_back(
        effect::Reply{event.member, event.generation, event.seq, std::move(grants)});
  };
  if (holder != nullptr && event.seq == holder->last.seq && event.seq != 0) {
    return reply(grants_of(holder->last));
  }
  if (holder == nullptr || event.seq < holder->last.seq || event.request.phase > phase_.number) {
    return reply({event.request.phase, "stale", {}, 0});
  }
  // The next phase opened before this member had heard of the end.
  if (event.request.phase < phase_.number) return reply({event.request.phase, "end", {}, 0});
  if (event.request.partials.empty() && event.request.late == 0 &&
      event.request.place < holder->place) {
    // A repeated request that the one-way Progress of later steps overtook.
    event::Fetch overtaken = event;
    overtaken.request.place = holder->place;
    return on(overtaken, now, effects);
  }
  if (auto fits = check(event); !fits) {
    effects.emplace_back(
        effect::Refuse{event.member, event.seq, {"invalid", fits.error().message}});
    return;
  }
  answer(event, *holder, effects);
  reply(grants_of(holder->last));
  if (holder->last.status == AnswerStatus::kWait && event.request.want > 0) {
    recall_from_the_rich(*holder, now, effects);
  }
}

void Ledger::answer(const event::Fetch& event, const Holder& holder, Effects& effects) {
  record::Answered answered = decide(event, holder);
  if (event.request.late == 0) return write_down(answered, effects);
  write_down(record::Late{std::move(answered), event.request.late, config_.drops_late}, effects);
}

record::Answered Ledger::decide(const event::Fetch& event, const Holder& holder) const {
  record::Answered answer;
  answer.member = event.member;
  answer.seq = event.seq;
  answer.place = event.request.place;
  answer.partials = event.request.partials;

  // As things will be when the place is committed and what is late is given back.
  const std::uint64_t goes = event.request.place - holder.place + event.request.late;
  MemberNeed member = member_need(holder);
  PhaseNeed phase = phase_need(*this, active_members_, share_sum_);
  member.in_hand -= goes;
  phase.outstanding -= goes;
  // What came too late of it is for others, while any of them has something in hand and
  // so will ask for more.
  std::optional<WorkerId> but_of;
  const std::uint64_t kept_for_others = returned_.late_of(event.member.worker);
  if (kept_for_others > 0 && phase.outstanding > member.in_hand) {
    but_of = event.member.worker;
    phase.ungranted -= kept_for_others;
  }

  const bool recalled = holder.recall_pending && member.in_hand > 0;
  const std::uint64_t size = recalled ? 0 : grant_size(event.request.want, member, phase);
  if (size > 0) {
    answer.status = AnswerStatus::kGranted;
    answer.granted = choose_ranges(size, but_of);
  } else if (phase.ungranted == 0 && phase.outstanding == 0 &&
             (event.request.late == 0 || config_.drops_late)) {
    answer.status = AnswerStatus::kEnd;
  } else {
    answer.status = AnswerStatus::kWait;
    answer.retry_ms = kRetryMs;
  }
  return answer;
}

std::vector<Range> Ledger::choose_ranges(std::uint64_t records,
                                         std::optional<WorkerId> but_of) const {
  std::uint64_t pieces = kMaxPieces;
  std::vector<Range> chosen;
  const auto choose = [&](Range range) {
    if (records == 0 || pieces == 0) return;
    range.at.to = std::min(range.at.to, range.at.from + records);
    range.at.to = std::min(range.at.to, stream_.reach(range.at.from, pieces));
    records -= range.at.size();
    pieces -= stream_.shards_in(range.at);
    chosen.push_back(range);
  };
  if (returned_.size() > 0) {
    for (const Range& range : returned_.front(records, kMaxReturnedRanges, but_of)) choose(range);
    // In the order of the stream: only when all that was returned is taken.
    if (chosen.size() == kMaxReturnedRanges) return chosen;
  }
  if (records == 0 || pieces == 0 || cursor_ == stream_.size()) return chosen;
  if (skips_ahead_ == 0) {
    choose({{cursor_, stream_.size()}, 0});
  } else {
    for (const Interval part : skips_.outside({cursor_, stream_.size()})) choose({part, 0});
  }
  return chosen;
}

wire::Grants Ledger::grants_of(const Answer& answer) const {
  switch (answer.status) {
    case AnswerStatus::kEnd:
      return {answer.phase, "end", {}, 0};
    case AnswerStatus::kWait:
      return {answer.phase, "wait", {}, answer.retry_ms};
    case AnswerStatus::kGranted:
      break;
  }
  // Grants of an earlier phase are all committed: who still asks is behind.
  if (answer.phase != phase_.number) return {answer.phase, "end", {}, 0};
  wire::Grants grants{answer.phase, "granted", {}, 0};
  for (const Interval& interval : answer.granted) stream_.append_pieces(interval, grants.pieces);
  return grants;
}

void Ledger::on(const event::Progress& event, MonoTime, Effects& effects) {
  const Holder* holder = current_holder(event.member, event.generation);
  if (holder == nullptr || event.phase != phase_.number || event.place <= holder->place) return;
  write_down_checked(event, event.member, effects);
}

// -------------------------------------------------------------------- recall

// Nothing is left to grant and somebody waits: those who hold clearly more
// than they need give some back.
void Ledger::recall_from_the_rich(const Holder& poor, MonoTime now, Effects& effects) {
  const PhaseNeed phase = phase_need(*this, active_members_, share_sum_);
  const bool needy =
      phase.ungranted == 0 && poor.outstanding() < fair_need(member_need(poor), phase);
  // At the end of a phase everybody waits, and few give back: looked at with every
  // fetch, all of them would be the members' square.
  if (!needy && !may_be_recalled_) return;
  may_be_recalled_ = false;
  for (auto& [worker, holder] : holders_) {
    if (!holder.active) continue;
    may_be_recalled_ = may_be_recalled_ || holder.recall_pending;
    if (holder.recall_pending) {
      if (now - holder.recall_sent >= config_.recall_again_after) {
        send_recall(worker, holder, now, effects);
      }
    } else if (needy && &holder != &poor) {
      const std::uint64_t recall = surplus(member_need(holder), phase);
      if (recall == 0) continue;
      write_down(
          record::RecallIssued{{worker, holder.attempt}, holder.recalls + 1, holder.end - recall},
          effects);
      send_recall(worker, holder, now, effects);
      may_be_recalled_ = true;
    }
  }
}

void Ledger::send_recall(WorkerId worker, Holder& holder, MonoTime now, Effects& effects) const {
  holder.recall_sent = now;
  effects.emplace_back(effect::SendRecall{{worker, holder.attempt},
                                          holder.generation,
                                          holder.recalls,
                                          {phase_.number, holder.recall_keep_to}});
}

void Ledger::on(const event::Recalled& event, MonoTime, Effects& effects) {
  const Holder* holder = current_holder(event.member, event.generation);
  if (holder == nullptr || event.phase != phase_.number || !holder->recall_pending) return;
  if (event.number != 0 && event.number != holder->recalls) return;  // of an earlier recall
  // More than it has ends below its place, and is refused.
  const std::uint64_t end =
      event.records ? holder->end - std::min(holder->end, *event.records) : event.end;
  write_down_checked(
      record::Recalled{event.member, event.generation, event.number, event.phase, end},
      event.member, effects);
}

}  // namespace antdt::shard_server
