// Encodes the ledger's records as bytes of the journal, and decodes them.
//
// A record is a number for its kind, then its fields (shard_server/archive.h). The numbers are part
// of the journal's format: never reuse one, never change one.
#pragma once

#include <string>
#include <string_view>

#include "core/result.h"
#include "shard_server/archive.h"
#include "shard_server/ledger/records.h"

namespace antdt::shard_server {

template <class R>
[[nodiscard]] std::string encode_record(const R& record);
[[nodiscard]] Result<ledger::Record> decode_record(std::string_view bytes);

constexpr PhaseKind last_of(PhaseKind) { return PhaseKind::kEval; }
constexpr AnswerStatus last_of(AnswerStatus) { return AnswerStatus::kEnd; }

template <class Archive>
void io(Archive& a, typename Archive::template Ref<Interval> x) {
  a(x.from, x.to);
}
template <class Archive>
void io(Archive& a, typename Archive::template Ref<Range> x) {
  a(x.at, x.retries);
}
template <class Archive>
void io(Archive& a, typename Archive::template Ref<wire::EvalPartial> x) {
  a(x.records, x.loss_sum, x.correct, x.bins, x.negatives, x.positives);  // `named` stands apart
}
template <class Archive>
void io(Archive& a, typename Archive::template Ref<wire::NamedSum> x) {
  a(x.name, x.sum);
}

}  // namespace antdt::shard_server
