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
// Format 3 has all of format 2; then the pins of both data sets, the cursor of each section, and
// the domain of each holder. It is written where records are pinned.
constexpr std::uint32_t kImageFormatWithPins = 3;
// Format 4 has all of format 3, and then the named sums of the evaluation. It is written where
// there are some.
constexpr std::uint32_t kImageFormatWithSums = 4;

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

// `then` may be the pins of a data set that has grown since.
Status same_pins(std::string_view name, const Pins& then, const Pins& now) {
  if (then.are_possible() && now.extend(then)) return {};
  return fail(ErrorKind::kCorrupt,
              "ledger image is of {} data whose records are pinned to other domains. Give the job "
              "the data.pin, and each [[domain]] the data, with which it began, or begin a new run",
              name);
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
  const Supply& supply = state.supply_;
  const Fields fields = fields_of(supply);
  const bool pinned = !state.train_.pins.empty() || !state.eval_.pins.empty();
  const std::uint32_t format = !state.evaluation_.named.empty() ? kImageFormatWithSums
                               : pinned                         ? kImageFormatWithPins
                               : !fields.skips.empty()          ? kFormatWithLeftOut
                                                                : kImageFormat;
  DataSet train = state.train_;
  const bool trains = state.phase_.number != 0 && state.phase_.kind == PhaseKind::kTrain;
  if (trains) train.records = supply.stream_.size();
  out(format, train, state.eval_, state.phase_, fields.cursors.front(), fields.returned,
      fields.skips, state.holders_.committed_, state.evaluation_,
      static_cast<std::uint64_t>(state.holders_.holders_.size()));
  for (const auto& [worker, holder] : state.holders_.holders_) out(worker, holder);
  if (format >= kFormatWithLeftOut) out(fields.left_out);
  if (format < kImageFormatWithPins) return out.take();
  out(state.train_.pins.first(train.records), state.eval_.pins, fields.cursors);
  for (const auto& [worker, holder] : state.holders_.holders_) out(holder.domain);
  if (format == kImageFormatWithSums) out(state.evaluation_.named);
  return out.take();
}

LedgerImage::Fields LedgerImage::fields_of(const Supply& supply) {
  Fields fields;
  const auto append = [](const auto& from, auto& to) {
    to.insert(to.end(), from.begin(), from.end());
  };
  for (const SectionSupply& section : supply.sections_) {
    fields.cursors.push_back(section.cursor_);
    append(section.returned_.ranges(), fields.returned);
    append(section.skips_.intervals(), fields.skips);
    append(section.left_out_.intervals(), fields.left_out);
  }
  return fields;
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
  if (!in.ok() || format < kImageFormat || format > kImageFormatWithSums) {
    return fail(ErrorKind::kCorrupt, "ledger image of format {}, this build reads {}", format,
                kImageFormatWithSums);
  }
  in(train, eval);
  ANTDT_RETURN_IF_ERROR(same_data("training", train, state.train_));
  ANTDT_RETURN_IF_ERROR(same_data("evaluation", eval, state.eval_));
  Fields fields;
  fields.cursors.resize(1);
  in(state.phase_, fields.cursors.front(), fields.returned, fields.skips, state.holders_.committed_,
     state.evaluation_);
  read_holders(in, state);
  // An earlier release did not store this: all skipped records count as left out.
  fields.left_out = fields.skips;
  if (format >= kFormatWithLeftOut) in(fields.left_out);
  if (format >= kImageFormatWithPins) {
    in(train.pins, eval.pins, fields.cursors);
    for (auto& [worker, holder] : state.holders_.holders_) in(holder.domain);
  }
  if (format == kImageFormatWithSums) in(state.evaluation_.named);
  if (!in.ok() || !in.at_end()) return damaged("it cannot be read");
  if (!wire::check_sums(state.evaluation_.named)) return damaged("its named sums cannot be");
  ANTDT_RETURN_IF_ERROR(same_pins("training", train.pins, state.train_.pins));
  ANTDT_RETURN_IF_ERROR(same_pins("evaluation", eval.pins, state.eval_.pins));
  open_stream(state, train.records);
  ANTDT_RETURN_IF_ERROR(fill(state.supply_, fields));
  if (format >= kFormatWithLeftOut && left_out_differs(state)) {
    return damaged("what is left out cannot be");
  }
  return follow(state, fields.returned);
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

// What was returned follows when the rest is known to be possible.
Status LedgerImage::fill(Supply& supply, const Fields& fields) {
  if (fields.cursors.size() != supply.sections_.size()) return damaged("its cursors cannot be");
  for (std::size_t i = 0; i < fields.cursors.size(); ++i) {
    SectionSupply& section = supply.sections_[i];
    section.cursor_ = fields.cursors[i];
    const Interval all = section.positions();
    if (section.cursor_ < all.from || section.cursor_ > all.to) {
      return damaged("the cursor is past the end");
    }
  }
  const auto within = [&](const std::vector<Interval>& skips, IntervalSet SectionSupply::*to) {
    return std::ranges::all_of(skips, [&](const Interval& skip) {
      if (skip.empty() || skip.to > supply.stream_.size()) return false;
      for (SectionSupply& section : supply.sections_) {
        (section.*to)
            .add({std::max(skip.from, section.positions().from),
                  std::min(skip.to, section.positions().to)});
      }
      return true;
    });
  };
  if (!within(fields.skips, &SectionSupply::skips_) ||
      !within(fields.left_out, &SectionSupply::left_out_)) {
    return damaged("what is skipped cannot be");
  }
  for (SectionSupply& section : supply.sections_) section.count_skips_ahead();
  return {};
}

bool LedgerImage::left_out_differs(const LedgerState& state) {
  return std::ranges::any_of(state.supply_.sections_, [](const SectionSupply& section) {
    return std::ranges::any_of(section.left_out_.intervals(), [&](const Interval& skip) {
      return !section.skips_.outside(skip).empty();
    });
  });
}

void LedgerImage::open_stream(LedgerState& state, std::uint64_t train_records) {
  if (state.phase_.number == 0) return;
  const PhaseKind kind = state.phase_.kind;
  const std::uint64_t records = kind == PhaseKind::kTrain ? train_records : 0;
  state.supply_ = Supply(EpochStream(state.data_of(kind, records), state.phase_.epoch, kind));
}

const SectionSupply* LedgerImage::granted_from(const Supply& supply, Interval at) {
  if (at.empty()) return nullptr;
  for (const SectionSupply& section : supply.sections_) {
    if (at.from >= section.positions().from && at.to <= section.cursor_) return &section;
  }
  return nullptr;
}

bool LedgerImage::can_be_said_again(const Answer& answer, const LedgerState& state) {
  if (answer.phase != state.phase_.number) return true;
  return std::ranges::all_of(answer.granted, [&](const Interval& granted) {
    return granted_from(state.supply_, granted) != nullptr;
  });
}

Status LedgerImage::follow(LedgerState& state, const std::vector<Range>& returned) {
  IntervalSet claimed;  // a position may be claimed only once
  const auto claim = [&](const std::vector<Range>& ranges, const Holder* by) {
    for (const Range& range : ranges) {
      const SectionSupply* const section = granted_from(state.supply_, range.at);
      if (section == nullptr || !claimed.inside(range.at).empty()) return false;
      const bool pinned = section->domain().value != 0;
      if (by != nullptr && pinned && by->domain != section->domain()) return false;
      claimed.add(range.at);
    }
    return true;
  };
  for (const auto& [worker, holder] : state.holders_.holders_) {
    if (!state.knows(holder.domain)) {
      return damaged(fmt::format("{} is in domain {}, which is none", worker, holder.domain));
    }
    std::uint64_t granted = 0;
    for (const Range& range : holder.grants) granted += range.at.to - range.at.from;
    if (holder.end < holder.place || granted != holder.outstanding() ||
        !claim(holder.grants, &holder) || !claim(holder.recent, &holder)) {
      return damaged(fmt::format("the grants of {} cannot be", worker));
    }
    if (!can_be_said_again(holder.last, state)) {
      return damaged(fmt::format("the last answer to {} cannot be", worker));
    }
    state.holders_.hold(holder, granted);
  }
  if (!claim(returned, nullptr)) return damaged("what was returned cannot be");
  for (const Range& range : returned) state.supply_.section_at(range.at.from).returned_.add(range);
  if (state.holders_.committed_ + state.holders_.outstanding_ + state.supply_.returned() >
      state.supply_.granted_once())
    return damaged("too much is committed");
  state.holders_.count_members();
  return {};
}

}  // namespace antdt::shard_server
