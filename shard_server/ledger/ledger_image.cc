// The ledger's state as bytes.
#include <algorithm>
#include <utility>

#include "shard_server/ledger/ledger.h"
#include "shard_server/ledger/record_codec.h"

namespace antdt::shard_server {
namespace {

constexpr std::uint32_t kImageFormat = 1;
// With what of the skipped records is left out; of a phase without any it is format 1.
constexpr std::uint32_t kFormatWithLeftOut = 2;

}  // namespace

constexpr Shuffle last_of(Shuffle) { return Shuffle::kNone; }

template <class A>
void io(A& a, typename A::template Ref<DataSet> x) {
  a(x.records, x.shard_records, x.shuffle, x.seed);
}
template <class A>
void io(A& a, typename A::template Ref<Phase> x) {
  a(x.number, x.kind, x.epoch);
}
template <class A>
void io(A& a, typename A::template Ref<Answer> x) {
  a(x.seq, x.phase, x.status, x.retry_ms, x.granted);
}
template <class A>
void io(A& a, typename A::template Ref<Holder> x) {
  a(x.attempt, x.generation, x.active, x.place, x.end, x.grants, x.recent, x.step_records,
    x.hold_records, x.last, x.recalls, x.recall_pending, x.recall_keep_to);
}

class LedgerImage {
 public:
  static std::string write(const Ledger& ledger) {
    Writer out;
    const bool skips = !ledger.skips_.empty();
    out(skips ? kFormatWithLeftOut : kImageFormat, ledger.config_.train, ledger.config_.eval,
        ledger.phase_, ledger.cursor_, ledger.returned_.ranges(), ledger.skips_.intervals(),
        ledger.committed_, ledger.evaluation_, static_cast<std::uint64_t>(ledger.holders_.size()));
    for (const auto& [worker, holder] : ledger.holders_) out(worker, holder);
    if (skips) out(ledger.left_out_.intervals());
    return out.take();
  }

  static Status read(std::string_view image, Ledger& ledger) {
    Reader in(image);
    std::uint32_t format = 0;
    DataSet train, eval;
    in(format);
    const bool tells_left_out = format == kFormatWithLeftOut;
    if (!in.ok() || (format != kImageFormat && !tells_left_out)) {
      return fail(ErrorKind::kCorrupt, "ledger image of format {}, this build reads {}", format,
                  kFormatWithLeftOut);
    }
    in(train, eval);
    ANTDT_RETURN_IF_ERROR(same_data("training", train, ledger.config_.train));
    ANTDT_RETURN_IF_ERROR(same_data("evaluation", eval, ledger.config_.eval));
    std::vector<Range> returned;
    std::vector<Interval> skips;
    in(ledger.phase_, ledger.cursor_, returned, skips, ledger.committed_, ledger.evaluation_);
    read_holders(in, ledger);
    // An earlier release did not remember it: what is skipped counts as left out.
    std::vector<Interval> left_out = skips;
    if (tells_left_out) in(left_out);
    if (!in.ok() || !in.at_end()) return damaged("it cannot be read");
    open_stream(ledger);
    for (const Interval& skip : skips) ledger.skips_.add(skip);
    for (const Interval& skip : left_out) ledger.left_out_.add(skip);
    if (tells_left_out && left_out_differs(ledger)) return damaged("what is left out cannot be");
    return follow(ledger, returned);
  }

 private:
  static tl::unexpected<Error> damaged(std::string_view why) {
    return fail(ErrorKind::kCorrupt, "ledger image is damaged: {}", why);
  }

  static Status same_data(std::string_view name, const DataSet& then, const DataSet& now) {
    if (then.records == now.records && then.shard_records == now.shard_records &&
        then.shuffle == now.shuffle && then.seed == now.seed) {
      return {};
    }
    return fail(ErrorKind::kCorrupt,
                "ledger image is of other {} data: {} records in shards of {} (shuffle {}, seed "
                "{}), now {} in shards of {} (shuffle {}, seed {}). Give the job the data and the "
                "settings that it began with, or begin a new run",
                name, then.records, then.shard_records, static_cast<int>(then.shuffle), then.seed,
                now.records, now.shard_records, static_cast<int>(now.shuffle), now.seed);
  }

  static void read_holders(Reader& in, Ledger& ledger) {
    std::uint64_t count = 0;
    in(count);
    for (std::uint64_t i = 0; i < count && in.ok(); ++i) {
      WorkerId worker;
      Holder holder;
      in(worker, holder);
      ledger.holders_[worker] = std::move(holder);
    }
  }

  // From what was declared to be skipped.
  static bool left_out_differs(const Ledger& ledger) {
    return std::ranges::any_of(ledger.left_out_.intervals(), [&](const Interval& skip) {
      return !ledger.skips_.outside(skip).empty();
    });
  }

  static void open_stream(Ledger& ledger) {
    if (ledger.phase_.number == 0) return;
    const bool train = ledger.phase_.kind == PhaseKind::kTrain;
    ledger.stream_ = EpochStream(train ? ledger.config_.train : ledger.config_.eval,
                                 ledger.phase_.epoch, ledger.phase_.kind);
  }

  // A request that comes again is answered with the ranges that it got.
  static bool can_be_said_again(const Answer& answer, const Ledger& ledger) {
    if (answer.phase != ledger.phase_.number) return true;
    return std::ranges::all_of(answer.granted, [&](const Interval& granted) {
      return !granted.empty() && granted.to <= ledger.cursor_;
    });
  }

  // Fills in what follows from the state and checks that the state can be.
  static Status follow(Ledger& ledger, const std::vector<Range>& returned) {
    const std::uint64_t size = ledger.stream_.size();
    if (ledger.cursor_ > size) return damaged("the cursor is past the end");
    IntervalSet claimed;  // nothing is in two places
    const auto claim = [&](const std::vector<Range>& ranges) {
      for (const Range& range : ranges) {
        if (range.at.empty() || range.at.to > ledger.cursor_) return false;
        if (!claimed.inside(range.at).empty()) return false;
        claimed.add(range.at);
      }
      return true;
    };
    for (const auto& [worker, holder] : ledger.holders_) {
      std::uint64_t granted = 0;
      for (const Range& range : holder.grants) granted += range.at.to - range.at.from;
      if (holder.end < holder.place || granted != holder.outstanding() || !claim(holder.grants) ||
          !claim(holder.recent)) {
        return damaged(fmt::format("the grants of {} cannot be", worker));
      }
      if (!can_be_said_again(holder.last, ledger)) {
        return damaged(fmt::format("the last answer to {} cannot be", worker));
      }
      ledger.outstanding_ += granted;
    }
    if (!claim(returned)) return damaged("what was returned cannot be");
    for (const Range& range : returned) ledger.returned_.add(range);
    for (const Interval& skip : ledger.skips_.intervals()) {
      if (skip.to > size) return damaged("what is skipped cannot be");
    }
    ledger.skips_ahead_ = total_size(ledger.skips_.inside({ledger.cursor_, size}));
    if (ledger.committed_ + ledger.outstanding_ + ledger.returned_.size() > ledger.cursor_)
      return damaged("too much is committed");
    ledger.count_members();
    return {};
  }
};

std::string Ledger::image() const { return LedgerImage::write(*this); }

Result<Ledger> Ledger::restore(LedgerConfig config, std::string_view image) {
  Ledger ledger(config);
  ANTDT_RETURN_IF_ERROR(LedgerImage::read(image, ledger));
  return ledger;
}

Result<std::string> Ledger::image_at(const std::vector<wire::MemberPlace>& places) const {
  Ledger then = *this;
  for (const wire::MemberPlace& at : places) {
    const auto found = then.holders_.find(at.worker);
    if (found == then.holders_.end() || at.place > found->second.end) {
      return fail(ErrorKind::kRefused,
                  "a checkpoint with {} at place {}, which was granted {} records", at.worker,
                  at.place, found == then.holders_.end() ? 0 : found->second.end);
    }
    Holder& holder = found->second;
    std::uint64_t kept = 0;
    for (const Range& range : holder.recent) kept += range.at.size();
    if (at.place + kept < holder.place) {
      return fail(ErrorKind::kRefused,
                  "a checkpoint with {} at place {}, which is at {} already: it took too long to "
                  "be written",
                  at.worker, at.place, holder.place);
    }
    at.place < holder.place ? then.uncommit(holder, at.place) : then.commit(holder, at.place);
  }
  return then.image();
}

}  // namespace antdt::shard_server
