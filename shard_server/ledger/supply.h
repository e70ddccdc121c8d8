// The records of the open phase that nobody holds: those ahead of the cursor, which were never
// granted, and those that were given back. Records that an operator lets the job skip are neither.
// If records are pinned to domains, each domain has a supply of its own.
//
// Values, a part of the ledger's state. Everything in them is durable.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "shard_server/ledger/interval_set.h"
#include "shard_server/ledger/records.h"
#include "shard_server/ledger/return_queue.h"
#include "shard_server/ledger/stream.h"

namespace antdt::shard_server {

// The supply of one section of the stream. Positions are those of the whole stream.
class SectionSupply {
 public:
  explicit SectionSupply(EpochStream::Part part) : part_(part), cursor_(part.positions.from) {}

  [[nodiscard]] DomainNumber domain() const { return part_.domain; }
  [[nodiscard]] Interval positions() const { return part_.positions; }
  [[nodiscard]] std::uint64_t cursor() const { return cursor_; }
  // How many records may be granted.
  [[nodiscard]] std::uint64_t ungranted() const {
    return returned_.size() + (part_.positions.to - cursor_ - skips_ahead_);
  }
  [[nodiscard]] const ReturnQueue& returned() const { return returned_; }
  // See Supply.
  [[nodiscard]] std::vector<Range> next(const EpochStream& stream, std::uint64_t records,
                                        std::optional<WorkerId> but_of) const;
  [[nodiscard]] Status check_free(const std::vector<Range>& ranges, WorkerId to) const;
  void remove_untrained(IntervalSet& trained) const;
  void take(Interval interval);
  void give_back(Range range, std::optional<WorkerId> late_of);
  void skip(Interval interval);

 private:
  friend class Supply;
  friend class LedgerImage;
  // Whether a grant begins where the section was granted up to `cursor`, skipped positions aside.
  [[nodiscard]] bool is_next(Interval at, std::uint64_t cursor) const;
  void leave_out(Interval skipped);
  void count_skips_ahead();

  EpochStream::Part part_;
  std::uint64_t cursor_;  // positions from here on were never granted
  ReturnQueue returned_;
  IntervalSet skips_;  // positions declared as skipped in this phase
  // The skipped positions that nobody trains any more. The others were committed before, or
  // somebody holds them and may still commit them.
  IntervalSet left_out_;
  // how many declared positions lie at the cursor or after it; computed from the above
  std::uint64_t skips_ahead_ = 0;
};

class Supply {
 public:
  Supply() : Supply(EpochStream(DataSet{}, Epoch{}, PhaseKind::kTrain)) {}
  explicit Supply(EpochStream stream);

  [[nodiscard]] const EpochStream& stream() const { return stream_; }
  // Whether each record is for the workers of one domain only. The evaluation may be for all
  // workers although the training records are pinned.
  [[nodiscard]] bool is_pinned() const { return sections_.front().domain().value != 0; }
  // How many positions the cursors have passed.
  [[nodiscard]] std::uint64_t granted_once() const;
  // How many records may be granted: to anybody, and to workers of this domain.
  [[nodiscard]] std::uint64_t ungranted() const;
  [[nodiscard]] std::uint64_t ungranted_in(DomainNumber domain) const;
  [[nodiscard]] std::uint64_t returned() const;
  // Returned records that came too late of this worker, which is of this domain, and are meant for
  // another one.
  [[nodiscard]] std::uint64_t late_of(WorkerId worker, DomainNumber domain) const;
  // The next records to grant to workers of this domain, no more than one message can hold, without
  // those that came too late of `but_of`.
  [[nodiscard]] std::vector<Range> next(std::uint64_t records, DomainNumber domain,
                                        std::optional<WorkerId> but_of) const;
  // Whether all of these can be granted to a worker of this domain, one after the other. The error
  // names the first that cannot.
  [[nodiscard]] Status check_free(const std::vector<Range>& ranges, WorkerId to,
                                  DomainNumber domain) const;
  // Removes from `trained` what nobody has trained: what may be granted, and what was left out.
  void remove_untrained(IntervalSet& trained) const;
  // One for each domain that has records; a single one if no record is pinned.
  [[nodiscard]] const std::vector<SectionSupply>& sections() const { return sections_; }

  // A grant and what is given back lie within one section.
  void take(Interval interval) { section_at(interval.from).take(interval); }
  void give_back(Range range, std::optional<WorkerId> late_of = {}) {
    section_at(range.at.from).give_back(range, late_of);
  }
  // Declares these positions as skipped: nobody is granted them any more. A worker that holds some
  // of them goes on with them.
  void skip(Interval interval);

 private:
  friend class LedgerImage;
  // The supply of a domain's workers; null if nothing is for them. Without pins there is one for
  // all of them.
  [[nodiscard]] const SectionSupply* section_of(DomainNumber domain) const;
  [[nodiscard]] SectionSupply& section_at(std::uint64_t position);

  EpochStream stream_;
  std::vector<SectionSupply> sections_;  // at least one, by position and by domain
};

}  // namespace antdt::shard_server
