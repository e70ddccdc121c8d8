// What became of every record, counted a second time.
//
// Fed with the same journal records as the ledger, but shares no counter and
// no decision with it: it follows each member's grants and places and marks
// the positions of every commit, so a record that was committed twice or never
// is seen here even if the ledger believes otherwise. Only training phases are
// counted. Value type; its size follows what is out of order.
//
// Under another promise than exactly once (core/delivery.h) a model on servers may have a
// record in a part of its rows and not in the others, where a server was lost and the
// others went on with what they have. These positions are kept, `partial`:
//   at-least-once: they may be in a part; committed after that they are repeated
//   at-most-once:  they may be missing in a part; they are committed, and lost
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/delivery.h"
#include "core/ids.h"
#include "core/result.h"
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
  std::uint64_t skipped = 0;      // declared, with a reason
  std::uint64_t unaccounted = 0;  // read by a program that does not use the ledger
  std::uint64_t remaining = 0;    // of an epoch that is not closed: not committed yet
};

class Accounts {
 public:
  // A record of kind kLedgerKind. An error is a record that cannot be read or
  // that commits what was never granted.
  [[nodiscard]] Status apply(std::string_view record_bytes);

  // These accounts as they will stand when training begins again from `then`,
  // and when it begins from the start.
  [[nodiscard]] Accounts at(const Ledger& then) const;
  [[nodiscard]] Accounts before_training() const;
  // When servers go on with what they have and others begin again with what is in a
  // checkpoint, whose accounts these are. `may_be_in`: up to here what members hold may be
  // in the model, though nobody committed it. An error: that was never granted.
  [[nodiscard]] Result<Accounts> in_part(const Accounts& checkpoint,
                                         const std::vector<OldPlace>& may_be_in) const;

  [[nodiscard]] std::string image() const;
  [[nodiscard]] static Result<Accounts> restore(std::string_view image);

  // By epoch; those that have begun, or, of a program without the ledger, all.
  [[nodiscard]] std::vector<EpochAccount> epochs() const;
  [[nodiscard]] Delivery delivery() const { return delivery_; }
  [[nodiscard]] IntervalSet partial(std::uint32_t epoch) const;
  [[nodiscard]] bool finished() const { return finished_; }
  [[nodiscard]] bool uses_ledger() const { return declared_.uses_ledger; }

 private:
  struct Book {
    std::uint64_t records = 0;
    bool closed = false;
    IntervalSet committed;
    IntervalSet again;  // committed a second time or more
    IntervalSet skipped;
    IntervalSet partial;
    [[nodiscard]] bool begun() const { return records > 0; }
  };
  struct Hand {
    std::uint64_t place = 0;
    std::vector<Interval> grants;  // from `place` on
  };
  using Hands = std::map<Member, Hand>;

  [[nodiscard]] Status on(const ledger::JobDeclared& record);
  [[nodiscard]] Status on(const ledger::DeliveryChosen& record);
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
  [[nodiscard]] Status on(const ledger::LedgerRewound& record);
  [[nodiscard]] Status commit(Member member, std::uint64_t place);
  void mark(Interval committed);

  ledger::JobDeclared declared_;
  Delivery delivery_ = Delivery::kExactlyOnce;
  bool finished_ = false;
  bool training_ = false;  // the open phase is a training phase, of `epoch_`
  std::uint32_t epoch_ = 0;
  std::map<std::uint32_t, Book> books_;
  Hands hands_;
};

}  // namespace antdt::shard_server
