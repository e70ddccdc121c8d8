#include "trainer/ps/steps/staged_steps.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "core/check.h"

namespace antdt::ps {
namespace {

// Why no member can have concluded this; empty: one can.
std::string impossible_in(const steps::Concluded& concluded) {
  if (concluded.generation == Generation{}) return "members speak in a settled generation only";
  if (concluded.members == 0) return "a generation without members";
  if (!std::isfinite(concluded.weight) || concluded.weight < 0) {
    return fmt::format("a step cannot have the weight {}", concluded.weight);
  }
  if (!std::isfinite(concluded.rate) || concluded.rate <= 0) {
    return fmt::format("a learning rate cannot have the factor {}", concluded.rate);
  }
  return {};
}

}  // namespace

void StagedSteps::step(const steps::Input& input, steps::Effects& out) {
  std::visit([&](const auto& i) { on(i, out); }, input);
  check_invariants();
}

void StagedSteps::on(const steps::RowsWanted& input, steps::Effects& out) {
  if (!follow(input.concluded, out)) return;
  if (input.concluded.step < step_) {
    out.emplace_back(steps::RefuseStale{
        fmt::format("the rows are as after step {}, and were wanted as after step {}", step_,
                    input.concluded.step)});
    return;
  }
  out.emplace_back(steps::RowsAreCurrent{});
}

// A part of a step that was concluded is one that was sent twice.
void StagedSteps::on(const steps::PartArrived& input, steps::Effects& out) {
  if (input.rank >= input.concluded.members) {
    out.emplace_back(steps::RefuseUnfit{
        fmt::format("rank {} of {} members", input.rank, input.concluded.members)});
    return;
  }
  if (!follow(input.concluded, out)) return;
  if (input.concluded.step == step_) parts_[input.rank] = input.part;
  out.emplace_back(steps::PartIsStaged{});
}

bool StagedSteps::follow(const steps::Concluded& concluded, steps::Effects& out) {
  if (std::string why = impossible_in(concluded); !why.empty()) {
    out.emplace_back(steps::RefuseUnfit{std::move(why)});
    return false;
  }
  if (concluded.generation < generation_) {
    out.emplace_back(
        steps::RefuseStale{fmt::format("generation {} of the members is over, {} has "
                                       "begun",
                                       concluded.generation, generation_)});
    return false;
  }
  const bool begins = concluded.generation > generation_;
  if (!begins && concluded.members != members_) {
    out.emplace_back(steps::RefuseUnfit{fmt::format("generation {} has {} members, and not {}",
                                                    generation_, members_, concluded.members)});
    return false;
  }
  if (!(begins ? begin(concluded, out) : conclude(concluded, out))) return false;
  cut_if_new(concluded, out);
  return true;
}

// From: any. To: after the step of the new generation, for good. Its members are all after that
// step, and so are those of every generation that follows.
bool StagedSteps::begin(const steps::Concluded& concluded, steps::Effects& out) {
  const std::uint64_t wanted = concluded.step.value;
  if (wanted == step_.value + 1) {
    if (!conclude(concluded, out)) return false;
  } else if (wanted + 1 == step_.value && last_ == Last::kUndoable) {
    out.emplace_back(steps::TakeBack{step_});
    step_ = concluded.step;
  } else if (wanted != step_.value) {
    out.emplace_back(steps::RefuseUnfit{
        fmt::format("generation {} of the members begins after step {}, and the rows are as after "
                    "step {}",
                    concluded.generation, concluded.step, step_)});
    return false;
  }
  out.emplace_back(steps::ForgetBefore{});
  last_ = Last::kForGood;
  generation_ = concluded.generation;
  members_ = concluded.members;
  parts_.clear();
  return true;
}

// From: after s. To: after s + 1, undoable, if that is concluded; else the same.
bool StagedSteps::conclude(const steps::Concluded& concluded, steps::Effects& out) {
  if (concluded.step <= step_) return true;
  const bool next = concluded.step == step_.next();
  const bool whole = parts_.size() == members_;
  if (!next || !whole) {
    out.emplace_back(steps::RefuseUnfit{fmt::format(
        "step {} is concluded, and the rows are as after step {} with {} of {} parts of the next "
        "one",
        concluded.step, step_, parts_.size(), members_)});
    return false;
  }
  step_ = concluded.step;
  last_ = Last::kUndoable;
  steps::ApplyStep apply{step_, concluded.weight, concluded.rate, {}};
  if (concluded.weight > 0) {
    for (auto& [rank, part] : parts_) apply.parts.push_back(std::move(part));
  }
  parts_.clear();
  out.emplace_back(std::move(apply));
  return true;
}

// All members name the checkpoint in their first messages after its step, so the rows are of that
// step when it is first heard.
void StagedSteps::cut_if_new(const steps::Concluded& concluded, steps::Effects& out) {
  if (concluded.cut <= cut_ || concluded.step != step_) return;
  cut_ = concluded.cut;
  out.emplace_back(steps::WriteCut{concluded.cut, concluded.directory, step_});
}

void StagedSteps::check_invariants() const {
  ANTDT_CHECK(parts_.size() <= members_, "{} parts of {} members", parts_.size(), members_);
  ANTDT_CHECK(parts_.empty() || parts_.rbegin()->first < members_, "a part of rank {} of {}",
              parts_.rbegin()->first, members_);
  ANTDT_CHECK(last_ == Last::kForGood || generation_ != Generation{},
              "step {} was applied, and no generation of members has spoken", step_);
}

}  // namespace antdt::ps
