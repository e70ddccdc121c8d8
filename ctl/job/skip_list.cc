#include "ctl/job/skip_list.h"

#include <algorithm>

#include "core/wire/codec.h"

namespace antdt::ctl::job {
namespace {

struct ImageSkips {
  std::vector<Skip> skips;
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("skips", m.skips);
  }
};

}  // namespace

Status SkipList::learn(const shard_server::JournalContent& journal) {
  const std::string* newest = nullptr;
  for (const auto* entries : {&journal.snapshot, &journal.records}) {
    for (const shard_server::JournalEntry& entry : *entries) {
      if (entry.kind == kSkipRecord) newest = &entry.bytes;
    }
  }
  if (newest == nullptr) return {};
  ANTDT_TRY(ImageSkips image, wire::decode<ImageSkips>(*newest));
  for (Skip& skip : image.skips) {
    const bool is_known = std::ranges::any_of(skips_, [&](const Skip& s) {
      return s.epoch == skip.epoch && s.order.from == skip.order.from &&
             s.order.to == skip.order.to;
    });
    if (!is_known) add(skip.epoch, std::move(skip.order));
  }
  return {};
}

std::string SkipList::record() const {
  return skips_.empty() ? std::string() : wire::encode(ImageSkips{skips_});
}

std::vector<Skip> SkipList::take_due(const shard_server::Phase& open, Lineage lineage) {
  std::vector<Skip> due;
  if (open.number == 0 || open.kind != shard_server::PhaseKind::kTrain) return due;
  for (Skip& skip : skips_) {
    if (skip.epoch != open.epoch || skip.lineage >= lineage) continue;
    skip.lineage = lineage;
    due.push_back(skip);
    changed_ = true;
  }
  return due;
}

}  // namespace antdt::ctl::job
