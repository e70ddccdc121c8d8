#include "shard_server/ledger/ledger_image.h"

#include <algorithm>
#include <utility>

#include "shard_server/ledger/record_codec.h"

namespace antdt::shard_server {
namespace {

constexpr std::uint32_t kImageFormat = 1;
// Format 2 adds which of the skipped records are left out. An image of a phase without skipped
// records is in format 1.
constexpr std::uint32_t kFormatWithLeftOut = 2;

tl::unexpected<Error> damaged(std::string_view why) {
  return fail(ErrorKind::kCorrupt, "ledger image is damaged: {}", why);
}

Status same_data(std::string_view name, const DataSet& then, const DataSet& now) {
  if (has_had(now, then.records) && then.shard_records == now.shard_records &&
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

std::string LedgerImage::write(const LedgerState& state) {
  Writer out;
  const bool skips = !state.supply_.skips_.empty();
  DataSet train = state.train_;
  const bool trains = state.phase_.number != 0 && state.phase_.kind == PhaseKind::kTrain;
  if (trains) train.records = state.supply_.stream_.size();
  out(skips ? kFormatWithLeftOut : kImageFormat, train, state.eval_, state.phase_,
      state.supply_.cursor_, state.supply_.returned_.ranges(), state.supply_.skips_.intervals(),
      state.holders_.committed_, state.evaluation_,
      static_cast<std::uint64_t>(state.holders_.holders_.size()));
  for (const auto& [worker, holder] : state.holders_.holders_) out(worker, holder);
  if (skips) out(state.supply_.left_out_.intervals());
  return out.take();
}

Result<LedgerState> LedgerImage::read(const DataSet& train, const DataSet& eval,
                                      std::string_view image) {
  LedgerState state(train, eval);
  ANTDT_RETURN_IF_ERROR(read_into(state, image));
  return state;
}

Status LedgerImage::read_into(LedgerState& state, std::string_view image) {
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
  ANTDT_RETURN_IF_ERROR(same_data("training", train, state.train_));
  ANTDT_RETURN_IF_ERROR(same_data("evaluation", eval, state.eval_));
  std::vector<Range> returned;
  std::vector<Interval> skips;
  in(state.phase_, state.supply_.cursor_, returned, skips, state.holders_.committed_,
     state.evaluation_);
  read_holders(in, state);
  // An earlier release did not store this: all skipped records count as left out.
  std::vector<Interval> left_out = skips;
  if (tells_left_out) in(left_out);
  if (!in.ok() || !in.at_end()) return damaged("it cannot be read");
  open_stream(state, train.records);
  for (const Interval& skip : skips) state.supply_.skips_.add(skip);
  for (const Interval& skip : left_out) state.supply_.left_out_.add(skip);
  if (tells_left_out && left_out_differs(state)) return damaged("what is left out cannot be");
  return follow(state, returned);
}

void LedgerImage::read_holders(Reader& in, LedgerState& state) {
  std::uint64_t count = 0;
  in(count);
  for (std::uint64_t i = 0; i < count && in.ok(); ++i) {
    WorkerId worker;
    Holder holder;
    in(worker, holder);
    state.holders_.holders_[worker] = std::move(holder);
  }
}

bool LedgerImage::left_out_differs(const LedgerState& state) {
  return std::ranges::any_of(state.supply_.left_out_.intervals(), [&](const Interval& skip) {
    return !state.supply_.skips_.outside(skip).empty();
  });
}

void LedgerImage::open_stream(LedgerState& state, std::uint64_t train_records) {
  if (state.phase_.number == 0) return;
  const PhaseKind kind = state.phase_.kind;
  const std::uint64_t records = kind == PhaseKind::kTrain ? train_records : 0;
  state.supply_.stream_ = EpochStream(state.data_of(kind, records), state.phase_.epoch, kind);
}

bool LedgerImage::can_be_said_again(const Answer& answer, const LedgerState& state) {
  if (answer.phase != state.phase_.number) return true;
  return std::ranges::all_of(answer.granted, [&](const Interval& granted) {
    return !granted.empty() && granted.to <= state.supply_.cursor_;
  });
}

Status LedgerImage::follow(LedgerState& state, const std::vector<Range>& returned) {
  const std::uint64_t size = state.supply_.stream_.size();
  if (state.supply_.cursor_ > size) return damaged("the cursor is past the end");
  IntervalSet claimed;  // a position may be claimed only once
  const auto claim = [&](const std::vector<Range>& ranges) {
    for (const Range& range : ranges) {
      if (range.at.empty() || range.at.to > state.supply_.cursor_) return false;
      if (!claimed.inside(range.at).empty()) return false;
      claimed.add(range.at);
    }
    return true;
  };
  for (const auto& [worker, holder] : state.holders_.holders_) {
    std::uint64_t granted = 0;
    for (const Range& range : holder.grants) granted += range.at.to - range.at.from;
    if (holder.end < holder.place || granted != holder.outstanding() || !claim(holder.grants) ||
        !claim(holder.recent)) {
      return damaged(fmt::format("the grants of {} cannot be", worker));
    }
    if (!can_be_said_again(holder.last, state)) {
      return damaged(fmt::format("the last answer to {} cannot be", worker));
    }
    state.holders_.outstanding_ += granted;
  }
  if (!claim(returned)) return damaged("what was returned cannot be");
  for (const Range& range : returned) state.supply_.returned_.add(range);
  for (const Interval& skip : state.supply_.skips_.intervals()) {
    if (skip.to > size) return damaged("what is skipped cannot be");
  }
  state.supply_.skips_ahead_ =
      total_size(state.supply_.skips_.inside({state.supply_.cursor_, size}));
  if (state.holders_.committed_ + state.holders_.outstanding_ + state.supply_.returned_.size() >
      state.supply_.cursor_)
    return damaged("too much is committed");
  state.holders_.count_members();
  return {};
}

}  // namespace antdt::shard_server
