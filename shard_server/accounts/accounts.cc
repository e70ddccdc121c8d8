#include "shard_server/accounts/accounts.h"

#include <algorithm>
#include <utility>

#include "shard_server/ledger/record_codec.h"

namespace antdt::shard_server {
namespace {

void add(const IntervalSet& from, IntervalSet& to) {
  for (const Interval i : from.intervals()) to.add(i);
}

IntervalSet common(const IntervalSet& one, const IntervalSet& other) {
  IntervalSet both;
  for (const Interval i : one.intervals()) {
    for (const Interval part : other.inside(i)) both.add(part);
  }
  return both;
}

// Removes the first `records` records from what a member holds, and calls visit(interval) for each
// interval that is removed. Returns how many of the records the member does not hold.
template <class Holding, class F>
std::uint64_t take_front(Holding& holding, std::uint64_t records, F visit) {
  auto grant = holding.grants.begin();
  while (records > 0 && grant != holding.grants.end()) {
    const std::uint64_t take = std::min(records, grant->size());
    visit(Interval{grant->from, grant->from + take});
    grant->from += take;
    records -= take;
    if (grant->empty()) ++grant;
  }
  holding.grants.erase(holding.grants.begin(), grant);
  return records;
}

// How many of these positions are of other domains; `domains` are the positions of each.
std::uint64_t outside_of(const std::vector<Interval>& domains, DomainNumber own, Interval at) {
  if (own.value == 0 || own.value > domains.size()) return at.size();
  const Interval& all = domains[own.value - 1];
  const Interval both{std::max(at.from, all.from), std::min(at.to, all.to)};
  return at.size() - (both.empty() ? 0 : both.size());
}

}  // namespace

Status Accounts::apply(std::string_view record_bytes) {
  ANTDT_TRY(const ledger::Record record, decode_record(record_bytes));
  return std::visit([this](const auto& r) { return on(r); }, record);
}

// ------------------------------------------------------ the job, its phases

Status Accounts::check_epochs(const ledger::JobDeclared& record) {
  if (record.epochs <= ledger::kMostEpochs) return {};
  return fail(ErrorKind::kCorrupt, "a job of {} epochs; a job has at most {}", record.epochs,
              ledger::kMostEpochs);
}

Status Accounts::on(const ledger::JobDeclared& record) {
  ANTDT_RETURN_IF_ERROR(check_epochs(record));
  declared_ = record;
  return {};
}

Status Accounts::on(const ledger::DeliveryChosen& record) {
  delivery_ = record.delivery;
  return {};
}

Status Accounts::on(const ledger::DataPinned& record) {
  if (!record.pins.are_possible()) {
    return fail(ErrorKind::kCorrupt, "records are pinned to a domain without a name");
  }
  // What is counted of earlier epochs goes by the domains' numbers.
  if (pins_ != Pins{} && !record.pins.extend(pins_)) {
    return fail(ErrorKind::kCorrupt,
                "records are pinned anew to {} domains, and those of {} domains before are not all "
                "pinned as they were: the journal contradicts itself",
                record.pins.names.size(), pins_.names.size());
  }
  pins_ = record.pins;
  return {};
}

Status Accounts::on(const ledger::JobFinished&) {
  finished_ = true;
  for (auto& [epoch, book] : books_) book.closed = true;
  return {};
}

Status Accounts::on(const ledger::PhaseOpened& record) {
  for (auto& [epoch, book] : books_) {
    book.closed = true;
    book.by_program.forget_positions();
  }
  for (auto& [member, holding] : holdings_) holding = {0, {}, {}, holding.domain};
  training_ = record.kind == PhaseKind::kTrain;
  if (!training_) return {};
  epoch_ = record.epoch.value;
  books_[epoch_].records = record.records != 0 ? record.records : declared_.records;
  books_[epoch_].closed = false;
  books_[epoch_].domains = domains_of(books_[epoch_].records);
  return {};
}

Status Accounts::on(const ledger::SkipDeclared& record) {
  if (training_) books_[epoch_].skipped.add(record.at);
  return {};
}

Status Accounts::on(const ledger::PhaseCut& record) {
  if (training_) books_[epoch_].cut = record.reason;
  return {};
}

// ------------------------------------------------------------------ members

Status Accounts::on(const ledger::MemberAdmitted& record) {
  std::erase_if(holdings_, [&record](const auto& holding) {
    return holding.first.worker == record.member.worker;
  });
  holdings_[record.member].domain = record.domain;
  return {};
}

Status Accounts::on(const ledger::MemberLost& record) {
  holdings_.erase(record.member);
  return {};
}

Status Accounts::on(const ledger::MemberLeft& record) {
  holdings_.erase(record.member);
  return {};
}

Status Accounts::on(const ledger::GenerationSettled& record) {
  for (const OldPlace& old : record.places) {
    // This member was lost before; its place says nothing new.
    if (holdings_.count(old.member) == 0) continue;
    ANTDT_RETURN_IF_ERROR(commit(old.member, old.place));
  }
  holdings_.clear();
  for (std::size_t i = 0; i < record.members.size(); ++i) {
    Holding& holding = holdings_[record.members[i]];
    if (i < record.domains.size()) holding.domain = record.domains[i];
  }
  return {};
}

Status Accounts::on(const ledger::SharesPlanned&) { return {}; }
Status Accounts::on(const ledger::RecallIssued&) { return {}; }

Status Accounts::on(const ledger::LedgerRewound& record) {
  ANTDT_TRY(*this, restore(record.accounts_image));
  holdings_.clear();
  return {};
}

// -------------------------------------------------------- grants and commits

Status Accounts::on(const ledger::FetchAnswered& record) {
  ANTDT_RETURN_IF_ERROR(commit(record.member, record.place));
  auto& grants = holdings_[record.member].grants;
  for (const Range& range : record.granted) grants.push_back(range.at);
  return {};
}

Status Accounts::on(const ledger::ProgressReported& record) {
  return commit(record.member, record.place);
}

Status Accounts::on(const ledger::LateReturned& record) {
  const Member member = record.answered.member;
  ANTDT_RETURN_IF_ERROR(commit(member, record.answered.place));
  Holding& holding = holdings_[member];
  const std::uint64_t missing = take_front(holding, record.records, [&](const Interval& late) {
    holding.skips.take(late);
    if (!record.dropped) return;
    mark(late);
    // under at-most-once a late record counts as partial: it is in no part of the model
    if (training_) books_[epoch_].partial.add(late);
  });
  if (missing > 0) {
    return fail(ErrorKind::kCorrupt,
                "{} (attempt {}) gave back {} records more than it was granted: the journal "
                "contradicts itself",
                member.worker, member.attempt, missing);
  }
  return on(record.answered);
}

Status Accounts::on(const ledger::RecallSettled& record) {
  Holding& holding = holdings_[record.member];
  std::uint64_t keep = record.end - std::min(record.end, holding.place);
  auto grant = holding.grants.begin();
  for (; grant != holding.grants.end() && keep > 0; ++grant) {
    grant->to = std::min(grant->to, grant->from + keep);
    keep -= grant->size();
  }
  holding.grants.erase(grant, holding.grants.end());
  if (holding.skips.empty()) return {};
  IntervalSet held;
  for (const Interval left : holding.grants) held.add(left);
  holding.skips.keep_within(held);
  return {};
}

Status Accounts::on(const ledger::RecordsSkipped& record) {
  if (!training_ || delivery_ != Delivery::kExactlyOnce) return {};
  Holding& holding = holdings_[record.member];
  for (const wire::SkippedRecords& part : record.records) {
    const std::uint32_t reason = reasons_.number_of(part.reason);
    std::uint64_t at = holding.place;  // of the first record of the grant
    std::uint64_t found = 0;
    for (const Interval grant : holding.grants) {
      const std::uint64_t from = std::max(part.from, at);
      const std::uint64_t to = std::min(part.to, at + grant.size());
      if (from < to) {
        holding.skips.add({{grant.from + (from - at), grant.from + (to - at)}, reason});
        found += to - from;
      }
      at += grant.size();
    }
    if (found == part.to - part.from) continue;
    return fail(ErrorKind::kCorrupt,
                "{} (attempt {}) skipped its records {}:{}, and {} of them are not its: the "
                "journal contradicts itself",
                record.member.worker, record.member.attempt, part.from, part.to,
                part.to - part.from - found);
  }
  return {};
}

Status Accounts::commit(Member member, std::uint64_t place) {
  Holding& holding = holdings_[member];
  const std::uint64_t more = place - std::min(place, holding.place);
  const std::uint64_t missing =
      take_front(holding, more, [this, &holding](const Interval& at) { commit_part(holding, at); });
  holding.place += more - missing;
  if (missing == 0) return {};
  return fail(ErrorKind::kCorrupt,
              "{} (attempt {}) committed {} records and was granted {}: the journal "
              "contradicts itself",
              member.worker, member.attempt, place, holding.place);
}

// What is committed again is repeated, whether it was skipped or not.
void Accounts::commit_part(Holding& holding, Interval at) {
  const std::vector<SkippedAt> said = holding.skips.take(at);
  if (!training_) return;
  Book& book = books_[epoch_];
  if (!book.domains.empty()) book.elsewhere += outside_of(book.domains, holding.domain, at);
  std::vector<SkippedAt> skipped;
  for (const SkippedAt& skip : said) {
    for (const Interval first : book.committed.outside(skip.at)) {
      skipped.push_back({first, skip.reason});
    }
  }
  for (const Interval again : book.committed.inside(at)) book.by_program.remove(again);
  mark(at);
  for (const SkippedAt& skip : skipped) book.by_program.add(skip);
}

void Accounts::mark(Interval committed) {
  if (!training_) return;
  Book& book = books_[epoch_];
  for (const Interval again : book.committed.inside(committed)) book.again.add(again);
  if (delivery_ == Delivery::kAtLeastOnce) {
    for (const Interval again : book.partial.inside(committed)) book.again.add(again);
  }
  book.committed.add(committed);
}

// -------------------------------------------------------------- queries

std::vector<EpochAccount> Accounts::epochs() const {
  std::vector<EpochAccount> epochs;
  for (const auto& [epoch, book] : books_) {
    if (!book.begun() || (!book.cut.empty() && book.committed.empty())) continue;
    EpochAccount account;
    account.epoch = epoch;
    account.records = book.records;
    account.repeated = book.again.size();
    if (delivery_ == Delivery::kAtMostOnce) {
      for (const Interval i : book.partial.intervals()) {
        account.lost += total_size(book.again.outside(i));
      }
    }
    account.once = book.committed.size() - account.repeated - account.lost;
    for (const Interval skip : book.skipped.intervals()) {
      account.skipped += total_size(book.committed.outside(skip));
    }
    const std::uint64_t known = book.committed.size() + account.skipped;
    const std::uint64_t rest = book.records - std::min(book.records, known);
    const bool cut = !book.cut.empty();
    (cut ? account.skipped : book.closed ? account.lost : account.remaining) += rest;
    count_skips(book, account);
    if (cut) account.left = rest;
    if (cut && rest > 0) {
      account.skipped_by_program.push_back({"the training was ended: " + book.cut, rest});
    }
    count_domains(book, account);
    epochs.push_back(account);
  }
  if (declared_.uses_ledger) return epochs;
  for (std::uint32_t epoch = 0; epoch < declared_.epochs; ++epoch) {
    EpochAccount account;
    account.epoch = epoch;
    account.records = declared_.records;
    (finished_ ? account.unaccounted : account.remaining) = declared_.records;
    epochs.push_back(account);
  }
  return epochs;
}

std::string Accounts::cut(std::uint32_t epoch) const {
  const auto book = books_.find(epoch);
  return book == books_.end() ? std::string() : book->second.cut;
}

std::uint64_t Accounts::records_before(std::uint32_t epoch, std::uint64_t otherwise) const {
  std::uint64_t sum = otherwise * epoch;
  for (const auto& [number, book] : books_) {
    if (number < epoch && book.begun()) sum = sum - otherwise + book.records;
  }
  return sum;
}

void Accounts::count_skips(const Book& book, EpochAccount& account) const {
  const std::uint64_t total = std::min(account.once, book.by_program.total());
  account.once -= total;
  account.skipped += total;
  const std::vector<std::uint64_t>& by_reason = book.by_program.by_reason();
  for (std::size_t i = 0; i < by_reason.size(); ++i) {
    if (by_reason[i] == 0) continue;
    account.skipped_by_program.push_back({reasons_.all().at(i), by_reason[i]});
  }
}

// The stream has the records of each domain behind those of the domain before it.
std::vector<Interval> Accounts::domains_of(std::uint64_t records) const {
  std::vector<Interval> positions(pins_.names.size());
  for (const PinnedRun& run : pins_.first(records).runs) {
    positions[run.domain.value - 1].to += run.records;
  }
  std::uint64_t end = 0;
  for (Interval& domain : positions) {
    domain = {end, end + domain.to};
    end = domain.to;
  }
  return positions;
}

void Accounts::count_domains(const Book& book, EpochAccount& account) const {
  account.elsewhere = book.elsewhere;
  for (std::size_t i = 0; i < book.domains.size(); ++i) {
    if (book.domains[i].empty()) continue;  // a domain of later epochs, or of the evaluation
    account.domains.push_back({pins_.names[i], book.domains[i].size(),
                               total_size(book.committed.inside(book.domains[i]))});
  }
}

Accounts Accounts::at(const Ledger& then) const {
  Accounts accounts = *this;
  accounts.holdings_.clear();
  const Phase& phase = then.phase();
  if (phase.number == 0) return before_training();
  for (auto& [epoch, book] : accounts.books_) {
    if (epoch <= phase.epoch.value) continue;
    Book later;
    if (delivery_ == Delivery::kAtLeastOnce) later.partial = std::move(book.partial);
    book = std::move(later);
  }
  std::erase_if(accounts.books_, [&](const auto& book) {
    return book.first > phase.epoch.value && book.second.partial.empty();
  });
  accounts.training_ = phase.kind == PhaseKind::kTrain;
  accounts.epoch_ = phase.epoch.value;
  if (!accounts.training_) return accounts;
  Book& book = accounts.books_[phase.epoch.value];
  // Some of what is held now is committed then, and the reverse.
  const IntervalSet committed = then.committed_positions();
  book.by_program.keep_within(committed);
  if (training_ && epoch_ == phase.epoch.value) {
    for (const auto& [member, holding] : holdings_) {
      for (const SkippedAt& skip : holding.skips.all()) {
        for (const Interval part : committed.inside(skip.at)) {
          book.by_program.add({part, skip.reason});
        }
      }
    }
  }
  book.closed = false;
  book.committed = committed;
  book.again = common(book.again, book.committed);
  if (delivery_ == Delivery::kAtMostOnce) book.partial = common(book.partial, book.committed);
  return accounts;
}

Accounts Accounts::before_training() const {
  Accounts accounts;
  accounts.declared_ = declared_;
  accounts.delivery_ = delivery_;
  accounts.pins_ = pins_;
  return accounts;
}

Result<Accounts> Accounts::in_part(const Accounts& checkpoint,
                                   const std::vector<OldPlace>& may_be_in) const {
  Accounts now = *this;
  for (const OldPlace& old : may_be_in) {
    ANTDT_RETURN_IF_ERROR(now.commit(old.member, old.place));
  }
  if (delivery_ == Delivery::kAtMostOnce) {
    for (auto& [epoch, book] : now.books_) {
      const auto then = checkpoint.books_.find(epoch);
      for (const Interval i : book.committed.intervals()) {
        if (then == checkpoint.books_.end()) {
          book.partial.add(i);
        } else {
          for (const Interval since : then->second.committed.outside(i)) book.partial.add(since);
        }
      }
    }
    now.finished_ = false;
    if (now.training_) now.books_[now.epoch_].closed = false;
    return now;
  }
  Accounts then = checkpoint;
  for (const auto& [epoch, book] : now.books_) {
    IntervalSet& partial = then.books_[epoch].partial;
    add(book.partial, partial);
    add(book.committed, partial);
  }
  return then;
}

IntervalSet Accounts::partial(std::uint32_t epoch) const {
  const auto book = books_.find(epoch);
  return book == books_.end() ? IntervalSet() : book->second.partial;
}

}  // namespace antdt::shard_server
