#include "trainer/ps/cut_orders.h"

#include <algorithm>
#include <utility>

namespace antdt::ps {

const wire::PsSaved* CutOrders::outcome(std::uint64_t number) const {
  const auto found = cuts_.find(number);
  return found != cuts_.end() && found->second.done ? &found->second.saved : nullptr;
}

bool CutOrders::overtaken(std::uint64_t number) const {
  return !cuts_.contains(number) && !cuts_.empty() && number < cuts_.rbegin()->first;
}

CutOrders::Cut& CutOrders::at(std::uint64_t number) {
  if (!cuts_.contains(number) && cuts_.size() >= kKept) {
    // A checkpoint that is being written is not forgotten, unless all are being written.
    const auto old =
        std::ranges::find_if(cuts_, [](const auto& c) { return !c.second.begun || c.second.done; });
    cuts_.erase(old != cuts_.end() ? old : cuts_.begin());
  }
  Cut& cut = cuts_[number];
  cut.saved.number = number;
  return cut;
}

void CutOrders::know(std::uint64_t number) { at(number); }

void CutOrders::marked(std::uint64_t number, std::vector<wire::PsPlaces> places) {
  at(number).saved.places = std::move(places);
}

std::vector<wire::PsSaved> CutOrders::begun(std::uint64_t number, std::uint64_t version) {
  std::vector<wire::PsSaved> passed;
  for (auto& [earlier, cut] : cuts_) {
    if (earlier >= number || cut.begun || cut.done) continue;
    wire::PsSaved saved;
    saved.number = earlier;
    saved.error = kOvertaken;
    cut.saved = passed.emplace_back(std::move(saved));
    cut.done = true;
  }
  Cut& cut = at(number);
  cut.begun = true;
  cut.saved.version = version;
  return passed;
}

void CutOrders::paused(std::uint64_t number, std::uint64_t pause_us) {
  at(number).saved.pause_us = pause_us;
}

const wire::PsSaved& CutOrders::written(std::uint64_t number,
                                        std::vector<wire::CheckpointFile> files) {
  Cut& cut = at(number);
  cut.saved.files = std::move(files);
  cut.done = true;
  return cut.saved;
}

const wire::PsSaved& CutOrders::failed(std::uint64_t number, std::string error) {
  Cut& cut = at(number);
  cut.saved.error = std::move(error);
  cut.done = true;
  return cut.saved;
}

std::vector<std::uint64_t> CutOrders::writing() const {
  std::vector<std::uint64_t> numbers;
  for (const auto& [number, cut] : cuts_) {
    if (cut.begun && !cut.done) numbers.push_back(number);
  }
  return numbers;
}

}  // namespace antdt::ps
