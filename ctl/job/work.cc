#include "ctl/job/work.h"

namespace antdt::ctl::job {

std::optional<Item> Agenda::next() {
  for (; !led_to_.empty(); led_to_.pop_back()) waiting_.push_front(std::move(led_to_.back()));
  if (waiting_.empty()) return std::nullopt;
  std::optional<Item> item(std::move(waiting_.front()));
  waiting_.pop_front();
  return item;
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
