#include "trainer/ps/cut_orders.h"

#include <algorithm>
#include <utility>

namespace antdt::ps {

const wire::PsSaved* CutOrders::outcome(std::uint64_t number) const {
  const auto found = cuts_.find(number);
  return found != cuts_.end() && found->second.has_outcome() ? &found->second.saved : nullptr;
}

bool CutOrders::overtaken(std::uint64_t number) const {
  return !cuts_.contains(number) && !cuts_.empty() && number < cuts_.rbegin()->first;
}

// From: kKnown. To: kSaving.
// From: kGivenUp. To: kConcluded.
void CutOrders::Cut::begin() {
  if (state == State::kKnown) state = State::kSaving;
  if (state == State::kGivenUp) state = State::kConcluded;
}

// From: kKnown. To: kGivenUp.
// From: kSaving. To: kConcluded.
void CutOrders::Cut::conclude() {
  if (state == State::kKnown) state = State::kGivenUp;
  if (state == State::kSaving) state = State::kConcluded;
}

CutOrders::Cut& CutOrders::at(std::uint64_t number) {
  if (!cuts_.contains(number) && cuts_.size() >= kKept) {
    // A checkpoint that is being written is not forgotten, unless all are being written.
    const auto old =
        std::ranges::find_if(cuts_, [](const auto& c) { return c.second.state != State::kSaving; });
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
    if (earlier >= number || cut.state != State::kKnown) continue;
    wire::PsSaved saved;
    saved.number = earlier;
    saved.error = kOvertaken;
    cut.saved = passed.emplace_back(std::move(saved));
    cut.conclude();
  }
  Cut& cut = at(number);
  cut.begin();
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
  cut.conclude();
  return cut.saved;
}

const wire::PsSaved& CutOrders::failed(std::uint64_t number, std::string error) {
  Cut& cut = at(number);
  cut.saved.error = std::move(error);
  cut.conclude();
  return cut.saved;
}

std::vector<std::uint64_t> CutOrders::writing() const {
  std::vector<std::uint64_t> numbers;
  for (const auto& [number, cut] : cuts_) {
    if (cut.state == State::kSaving) numbers.push_back(number);
  }
  return numbers;
}

}  // namespace antdt::ps
