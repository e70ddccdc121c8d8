#include "shard_server/accounts/accounts.h"

#include <algorithm>
#include <utility>

#include "shard_server/ledger/record_codec.h"

namespace antdt::shard_server {
namespace {

// Format 2 adds the delivery promise and the partial positions. A job that promises exactly once
// has neither and writes format 1.
constexpr std::uint32_t kAccountsFormat = 1;
constexpr std::uint32_t kFormatWithPartial = 2;

tl::unexpected<Error> too_many_epochs(std::uint32_t epochs) {
  return fail(ErrorKind::kCorrupt, "a job of {} epochs; a job has at most {}", epochs,
              ledger::kMostEpochs);
}

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

}  // namespace

Status Accounts::apply(std::string_view record_bytes) {
  ANTDT_TRY(const ledger::Record record, decode_record(record_bytes));
  return std::visit([this](const auto& r) { return on(r); }, record);
}

// ------------------------------------------------------ the job, its phases

Status Accounts::on(const ledger::JobDeclared& record) {
  if (record.epochs > ledger::kMostEpochs) return too_many_epochs(record.epochs);
  declared_ = record;
  return {};
}

Status Accounts::on(const ledger::DeliveryChosen& record) {
  delivery_ = record.delivery;
  return {};
}

Status Accounts::on(const ledger::JobFinished&) {
  finished_ = true;
  for (auto& [epoch, book] : books_) book.closed = true;
  return {};
}

Status Accounts::on(const ledger::PhaseOpened& record) {
  for (auto& [epoch, book] : books_) book.closed = true;
  for (auto& [member, holding] : holdings_) holding = {};
  training_ = record.kind == PhaseKind::kTrain;
  if (!training_) return {};
  epoch_ = record.epoch.value;
  books_[epoch_].records = declared_.records;
  books_[epoch_].closed = false;
  return {};
}

Status Accounts::on(const ledger::SkipDeclared& record) {
  if (training_) books_[epoch_].skipped.add(record.at);
  return {};
}

// ------------------------------------------------------------------ members

Status Accounts::on(const ledger::MemberAdmitted& record) {
  std::erase_if(holdings_, [&record](const auto& holding) {
    return holding.first.worker == record.member.worker;
  });
  holdings_[record.member];
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
  for (const Member& member : record.members) holdings_[member];
  return {};
}

Status Accounts::on(const ledger::SharesPlanned&) { return {}; }
Status Accounts::on(const ledger::RecallIssued&) { return {}; }

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
  const std::uint64_t missing =
      take_front(holdings_[member], record.records, [&](const Interval& late) {
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
  return {};
}

Status Accounts::commit(Member member, std::uint64_t place) {
  Holding& holding = holdings_[member];
  const std::uint64_t more = place - std::min(place, holding.place);
  const std::uint64_t missing = take_front(holding, more, [this](const Interval& at) { mark(at); });
  holding.place += more - missing;
  if (missing == 0) return {};
  return fail(ErrorKind::kCorrupt,
              "{} (attempt {}) committed {} records and was granted {}: the journal "
              "contradicts itself",
              member.worker, member.attempt, place, holding.place);
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
    if (!book.begun()) continue;
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
    (book.closed ? account.lost : account.remaining) += rest;
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
  book.closed = false;
  book.committed = then.committed_positions();
  book.again = common(book.again, book.committed);
  if (delivery_ == Delivery::kAtMostOnce) book.partial = common(book.partial, book.committed);
  return accounts;
}

Accounts Accounts::before_training() const {
  Accounts accounts;
  accounts.declared_ = declared_;
  accounts.delivery_ = delivery_;
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

// --------------------------------------------------------------------- image

std::string Accounts::image() const {
  Writer out;
  const bool exact = delivery_ == Delivery::kExactlyOnce;
  out(exact ? kAccountsFormat : kFormatWithPartial, declared_.epochs, declared_.records,
      declared_.uses_ledger, finished_, training_, epoch_,
      static_cast<std::uint64_t>(books_.size()));
  for (const auto& [epoch, book] : books_) {
    out(epoch, book.records, book.closed, book.committed.intervals(), book.again.intervals(),
        book.skipped.intervals());
    if (!exact) out(book.partial.intervals());
  }
  out(static_cast<std::uint64_t>(holdings_.size()));
  for (const auto& [member, holding] : holdings_) out(member, holding.place, holding.grants);
  if (!exact) out(delivery_);
  return out.take();
}

Result<Accounts> Accounts::restore(std::string_view image) {
  Reader in(image);
  Accounts accounts;
  std::uint32_t format = 0;
  in(format);
  const bool exact = format == kAccountsFormat;
  if (!in.ok() || (!exact && format != kFormatWithPartial)) {
    return fail(ErrorKind::kCorrupt, "image of the accounts of format {}, this build reads {}",
                format, kFormatWithPartial);
  }
  std::uint64_t books = 0, holdings = 0;
  in(accounts.declared_.epochs, accounts.declared_.records, accounts.declared_.uses_ledger,
     accounts.finished_, accounts.training_, accounts.epoch_, books);
  if (accounts.declared_.epochs > ledger::kMostEpochs) {
    return too_many_epochs(accounts.declared_.epochs);
  }
  for (; books > 0 && in.ok(); --books) {
    std::uint32_t epoch = 0;
    Book book;
    std::vector<Interval> committed, again, skipped, partial;
    in(epoch, book.records, book.closed, committed, again, skipped);
    if (!exact) in(partial);
    for (const Interval i : committed) book.committed.add(i);
    for (const Interval i : again) book.again.add(i);
    for (const Interval i : skipped) book.skipped.add(i);
    for (const Interval i : partial) book.partial.add(i);
    accounts.books_[epoch] = std::move(book);
  }
  in(holdings);
  for (; holdings > 0 && in.ok(); --holdings) {
    Member member;
    Holding holding;
    in(member, holding.place, holding.grants);
    accounts.holdings_[member] = std::move(holding);
  }
  if (!exact) in(accounts.delivery_);
  if (!in.ok() || !in.at_end()) {
    return fail(ErrorKind::kCorrupt, "image of the accounts is damaged ({} bytes)", image.size());
  }
  return accounts;
}

Status Accounts::on(const ledger::LedgerRewound& record) {
  ANTDT_TRY(*this, restore(record.accounts_image));
  holdings_.clear();
  return {};
}

}  // namespace antdt::shard_server
