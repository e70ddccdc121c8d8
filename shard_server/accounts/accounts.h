// An independent count of what became of every record.
//
// The accounts read the same journal records as the ledger, but share no counter and no decision
// with it: they follow each member's grants and places and mark the positions of every commit. So
// they find a record that was committed twice or never, even if the ledger believes otherwise. Only
// training phases are counted. This is a value type; its size follows what is out of order.
//
// If the job promises less than exactly once (core/delivery.h), and a server was lost while the
// other servers kept their rows, then a record may be in some rows of the model and not in others.
// The positions of such records are kept as `partial`:
//   at-least-once: these records may be in a part of the model; if they are committed afterwards,
//                  they count as repeated
//   at-most-once:  these records may be missing in a part of the model; they are committed, and
//                  count as lost
//
// If records are pinned to domains (DataPinned), the accounts compute anew which positions are of
// which domain, and count what a worker of another domain committed.
//
// A record that its holder's program skipped (RecordsSkipped) is skipped if this holder commits it
// for the first time; else nothing is left of it (program_skips.h). Only under exactly-once: the
// other promises are made around parameter servers, where no program skips.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/delivery.h"
#include "core/ids.h"
#include "core/result.h"
#include "shard_server/accounts/program_skips.h"
#include "shard_server/ledger/interval_set.h"
#include "shard_server/ledger/ledger.h"
#include "shard_server/ledger/records.h"

namespace antdt::shard_server {

// once + repeated + lost + skipped + unaccounted + remaining == records.
struct EpochAccount {
  std::uint32_t epoch = 0;
  std::uint64_t records = 0;
  std::uint64_t once = 0;         // committed exactly once
  std::uint64_t repeated = 0;     // committed more than once, or after they were partial
  std::uint64_t lost = 0;         // not committed when the epoch was closed, or partial since
  std::uint64_t skipped = 0;      // declared by an operator, or by a program; or the epoch was cut
  std::uint64_t left = 0;         // of these: left of the epoch in which the training was ended
  std::uint64_t unaccounted = 0;  // read by a program that does not use the ledger
  std::uint64_t remaining = 0;    // of an epoch that is not closed: not committed yet
  // Of `skipped`: what programs skipped, by reason, and what is left of an epoch in which the
  // program ended the training.
  struct Reason {
    std::string text;
    std::uint64_t records = 0;
  };
  std::vector<Reason> skipped_by_program = {};
  // If records are pinned: of each domain that has some in this epoch, by number.
  struct Domain {
    std::string name;
    std::uint64_t records = 0;
    std::uint64_t trained = 0;  // committed at least once
  };
  std::vector<Domain> domains = {};
  // Commits of records by a worker of another domain than theirs, which must not be.
  std::uint64_t elsewhere = 0;
};

class Accounts {
 public:
  // Applies a journal record of kind kLedgerKind. The error says that the record cannot be read, or
  // that it commits what was never granted.
  [[nodiscard]] Status apply(std::string_view record_bytes);

  // These accounts as they will stand when training begins again from `then`, or from the start.
  [[nodiscard]] Accounts at(const Ledger& then) const;
  [[nodiscard]] Accounts before_training() const;
  // The accounts of a model of which some servers keep their rows while others go back to a
  // checkpoint; `checkpoint` holds the accounts of that checkpoint. `may_be_in` says up to which
  // place the records that a member holds may be in the model although nobody committed them. The
  // error says that this place was never granted.
  [[nodiscard]] Result<Accounts> in_part(const Accounts& checkpoint,
                                         const std::vector<OldPlace>& may_be_in) const;

  [[nodiscard]] std::string image() const;
  [[nodiscard]] static Result<Accounts> restore(std::string_view image);

  // By epoch: those that have begun, or all epochs if the program does not use the ledger. Not one
  // that was cut before any of it was trained.
  [[nodiscard]] std::vector<EpochAccount> epochs() const;
  // How many records all epochs before this one have; those that have not begun count as
  // `otherwise`.
  [[nodiscard]] std::uint64_t records_before(std::uint32_t epoch, std::uint64_t otherwise) const;
  // Why the program ended the training in this epoch; empty: it did not.
  [[nodiscard]] std::string cut(std::uint32_t epoch) const;
  [[nodiscard]] Delivery delivery() const { return delivery_; }
  [[nodiscard]] IntervalSet partial(std::uint32_t epoch) const;
  [[nodiscard]] bool finished() const { return finished_; }
  [[nodiscard]] bool uses_ledger() const { return declared_.uses_ledger; }
  [[nodiscard]] const Pins& pins() const { return pins_; }

 private:
  struct Book {
    std::uint64_t records = 0;
    bool closed = false;
    IntervalSet committed;
    IntervalSet again;    // committed a second time or more
    IntervalSet skipped;  // declared by operators
    EpochSkips by_program;
    std::string cut;  // why it was (PhaseCut); what is not committed counts as skipped then
    IntervalSet partial;
    std::uint64_t elsewhere = 0;    // see EpochAccount
    std::vector<Interval> domains;  // the positions of each; computed from the pins
    [[nodiscard]] bool begun() const { return records > 0; }
  };
  struct Holding {
    std::uint64_t place = 0;
    std::vector<Interval> grants;  // grants from `place` on
    HeldSkips skips;
    DomainNumber domain = {};
  };
  using Holders = std::map<Member, Holding>;

  [[nodiscard]] static Status check_epochs(const ledger::JobDeclared& record);
  [[nodiscard]] Status on(const ledger::JobDeclared& record);
  [[nodiscard]] Status on(const ledger::DeliveryChosen& record);
  [[nodiscard]] Status on(const ledger::DataPinned& record);
  [[nodiscard]] Status on(const ledger::JobFinished& record);
  [[nodiscard]] Status on(const ledger::PhaseOpened& record);
  [[nodiscard]] Status on(const ledger::MemberAdmitted& record);
  [[nodiscard]] Status on(const ledger::MemberLost& record);
  [[nodiscard]] Status on(const ledger::MemberLeft& record);
  [[nodiscard]] Status on(const ledger::GenerationSettled& record);
  [[nodiscard]] Status on(const ledger::FetchAnswered& record);
  [[nodiscard]] Status on(const ledger::ProgressReported& record);
  [[nodiscard]] Status on(const ledger::SharesPlanned& record);
  [[nodiscard]] Status on(const ledger::RecallIssued& record);
  [[nodiscard]] Status on(const ledger::RecallSettled& record);
  [[nodiscard]] Status on(const ledger::LateReturned& record);
  [[nodiscard]] Status on(const ledger::SkipDeclared& record);
  [[nodiscard]] Status on(const ledger::RecordsSkipped& record);
  [[nodiscard]] Status on(const ledger::PhaseCut& record);
  [[nodiscard]] Status on(const ledger::LedgerRewound& record);
  [[nodiscard]] Status commit(Member member, std::uint64_t place);
  void commit_part(Holding& holding, Interval at);
  void mark(Interval committed);
  void count_skips(const Book& book, EpochAccount& account) const;
  // The positions of each domain in an epoch of so many records; the first is domain 1.
  [[nodiscard]] std::vector<Interval> domains_of(std::uint64_t records) const;
  void count_domains(const Book& book, EpochAccount& account) const;
  [[nodiscard]] bool skips_are_possible() const;

  ledger::JobDeclared declared_;
  Delivery delivery_ = Delivery::kExactlyOnce;
  bool finished_ = false;
  bool training_ = false;  // whether the open phase is a training phase, of `epoch_`
  std::uint32_t epoch_ = 0;
  SkipReasons reasons_;
  Pins pins_;
  std::map<std::uint32_t, Book> books_;
  Holders holdings_;
};

}  // namespace antdt::shard_server
