#include "ctl/job/work.h"

#include <cstddef>

namespace antdt::ctl::job {

Item* Agenda::next() {
  if (!led_to_.empty()) {
    rounds_.push_back({std::move(led_to_)});
    led_to_.clear();
    if (!spare_.empty()) {
      led_to_ = std::move(spare_.back());
      spare_.pop_back();
    }
  }
  while (!rounds_.empty()) {
    Round& round = rounds_.back();
    if (round.taken < round.items.size()) return &round.items[round.taken++];
    round.items.clear();
    spare_.push_back(std::move(round.items));
    rounds_.pop_back();
  }
  return nullptr;
}

void Work::send(Member to, Generation generation, WorkerMessage body, std::uint64_t seq) {
  out_.emplace_back(SendToWorker{to, generation, seq, std::move(body)});
}

void Work::send_to_reader(Member to, Generation generation, WorkerMessage body,
                          const std::string& checkpoint) {
  out_.emplace_back(SendToWorker{to, generation, 0, std::move(body), checkpoint});
}

void Work::note(std::string kind, std::string text, std::string extra_json) {
  last_note_ = text;
  out_.emplace_back(PublishNote{std::move(kind), std::move(text), std::move(extra_json)});
}

void Work::remember(std::vector<shard_server::history::Entry> entries) {
  for (auto& entry : entries) out_.emplace_back(RememberEntry{std::move(entry)});
}

}  // namespace antdt::ctl::job
