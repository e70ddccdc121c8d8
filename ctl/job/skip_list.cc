#include "ctl/job/skip_list.h"

#include <algorithm>

#include "core/wire/codec.h"

namespace antdt::ctl::job {
namespace {

struct ImageSkip {
  Epoch epoch;
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::string reason;
  std::string who;
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("epoch", m.epoch);
    v("from", m.from);
    v("to", m.to);
    v("reason", m.reason);
    v("who", m.who);
  }
};
struct ImageSkips {
  std::vector<ImageSkip> skips;
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
  for (ImageSkip& skip : image.skips) {
    const bool is_known = std::ranges::any_of(skips_, [&](const Skip& s) {
      return s.epoch == skip.epoch && s.order.from == skip.from && s.order.to == skip.to;
    });
    if (is_known) continue;
    add(skip.epoch, {skip.from, skip.to, std::move(skip.reason), std::move(skip.who)});
  }
  return {};
}

std::string SkipList::record() const {
  if (skips_.empty()) return {};
  ImageSkips image;
  for (const Skip& skip : skips_) {
    image.skips.push_back(
        {skip.epoch, skip.order.from, skip.order.to, skip.order.reason, skip.order.who});
  }
  return wire::encode(image);
}

std::string SkipList::take_record() {
  return std::exchange(unwritten_, false) ? record() : std::string();
}

std::vector<Skip> SkipList::take_due(const shard_server::Phase& open, Lineage lineage) {
  std::vector<Skip> due;
  if (open.number == 0 || open.kind != shard_server::PhaseKind::kTrain) return due;
  for (Skip& skip : skips_) {
    if (skip.epoch != open.epoch || skip.lineage >= lineage) continue;
    skip.lineage = lineage;
    due.push_back(skip);
    changed_ = unwritten_ = true;
  }
  return due;
}

}  // namespace antdt::ctl::job
