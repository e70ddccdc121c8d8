// The accounts as bytes, for snapshots of the journal and for checkpoints.
#include <algorithm>
#include <utility>

#include "shard_server/accounts/accounts.h"
#include "shard_server/ledger/record_codec.h"

namespace antdt::shard_server {
namespace {

// Format 2 adds the delivery promise and the partial positions. A job that promises exactly once
// has neither and writes format 1.
constexpr std::uint32_t kAccountsFormat = 1;
constexpr std::uint32_t kFormatWithPartial = 2;
// Format 3 has all of format 2, and what programs skipped. It is written where one did.
constexpr std::uint32_t kFormatWithSkips = 3;
// Format 4 has all of format 3, and to which domains records are pinned.
constexpr std::uint32_t kFormatWithPins = 4;
// Format 5 has all of format 4, and in which epoch the program ended the training.
constexpr std::uint32_t kFormatWithCuts = 5;

}  // namespace

std::string Accounts::image() const {
  Writer out;
  const bool exact = delivery_ == Delivery::kExactlyOnce;
  const bool cuts =
      std::ranges::any_of(books_, [](const auto& entry) { return !entry.second.cut.empty(); });
  const bool pinned = cuts || !pins_.empty();
  const bool skips = pinned || !reasons_.all().empty();
  const std::uint32_t format = cuts     ? kFormatWithCuts
                               : pinned ? kFormatWithPins
                               : skips  ? kFormatWithSkips
                               : exact  ? kAccountsFormat
                                        : kFormatWithPartial;
  out(format, declared_.epochs, declared_.records, declared_.uses_ledger, finished_, training_,
      epoch_, static_cast<std::uint64_t>(books_.size()));
  for (const auto& [epoch, book] : books_) {
    out(epoch, book.records, book.closed, book.committed.intervals(), book.again.intervals(),
        book.skipped.intervals());
    if (format != kAccountsFormat) out(book.partial.intervals());
    if (skips) out(book.by_program);
    if (pinned) out(book.elsewhere);
    if (cuts) out(book.cut);
  }
  out(static_cast<std::uint64_t>(holdings_.size()));
  for (const auto& [member, holding] : holdings_) {
    out(member, holding.place, holding.grants);
    if (skips) out(holding.skips.all());
    if (pinned) out(holding.domain);
  }
  if (format != kAccountsFormat) out(delivery_);
  if (skips) out(reasons_);
  if (pinned) out(pins_);
  return out.take();
}

Result<Accounts> Accounts::restore(std::string_view image) {
  Reader in(image);
  Accounts accounts;
  std::uint32_t format = 0;
  in(format);
  const bool exact = format == kAccountsFormat;
  const bool cuts = format == kFormatWithCuts;
  const bool pinned = cuts || format == kFormatWithPins;
  const bool skips = pinned || format == kFormatWithSkips;
  if (!in.ok() || (!exact && !skips && format != kFormatWithPartial)) {
    return fail(ErrorKind::kCorrupt, "image of the accounts of format {}, this build reads {}",
                format, kFormatWithCuts);
  }
  std::uint64_t books = 0, holdings = 0;
  in(accounts.declared_.epochs, accounts.declared_.records, accounts.declared_.uses_ledger,
     accounts.finished_, accounts.training_, accounts.epoch_, books);
  ANTDT_RETURN_IF_ERROR(check_epochs(accounts.declared_));
  for (; books > 0 && in.ok(); --books) {
    std::uint32_t epoch = 0;
    Book book;
    std::vector<Interval> committed, again, skipped, partial;
    in(epoch, book.records, book.closed, committed, again, skipped);
    if (!exact) in(partial);
    if (skips) in(book.by_program);
    if (pinned) in(book.elsewhere);
    if (cuts) in(book.cut);
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
    std::vector<SkippedAt> said;
    if (skips) in(said);
    for (const SkippedAt& skip : said) holding.skips.add(skip);
    if (pinned) in(holding.domain);
    accounts.holdings_[member] = std::move(holding);
  }
  if (!exact) in(accounts.delivery_);
  if (skips) in(accounts.reasons_);
  if (pinned) in(accounts.pins_);
  if (!in.ok() || !in.at_end() || !accounts.skips_are_possible() ||
      !accounts.pins_.are_possible()) {
    return fail(ErrorKind::kCorrupt, "image of the accounts is damaged ({} bytes)", image.size());
  }
  if (pinned) {
    for (auto& [epoch, book] : accounts.books_) book.domains = accounts.domains_of(book.records);
  }
  return accounts;
}

bool Accounts::skips_are_possible() const {
  const std::size_t reasons = reasons_.all().size();
  if (reasons > SkipReasons::kMost) return false;
  const bool books = std::ranges::all_of(books_, [&](const auto& entry) {
    return entry.second.by_program.is_possible(reasons, entry.second.committed.size());
  });
  return books && std::ranges::all_of(holdings_, [&](const auto& entry) {
           return std::ranges::all_of(entry.second.skips.all(), [&](const SkippedAt& skip) {
             return !skip.at.empty() && skip.reason < reasons;
           });
         });
}

}  // namespace antdt::shard_server
