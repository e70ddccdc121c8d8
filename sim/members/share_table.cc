#include "sim/members/share_table.h"

#include <utility>

namespace antdt::sim {
namespace {

using worker::sharing::Answer;
using worker::sharing::Asked;
using worker::sharing::Offered;

constexpr double kLost = 0.05;
constexpr double kRepeated = 0.05;

const Offered& offer_in(const worker::sharing::Input& input) {
  const auto* const asked = std::get_if<Asked>(&input);
  return asked != nullptr ? asked->offer : std::get<Offered>(input);
}

}  // namespace

void ShareTable::carry(std::uint32_t member, std::function<void()> what) {
  Rng& rng = world_.rng();
  if (rng.chance(kLost)) return;
  const int copies = rng.chance(kRepeated) ? 2 : 1;
  for (int copy = 0; copy < copies; ++copy) {
    const bool late = rng.chance(0.05);
    const Duration delay =
        rng.time(std::chrono::microseconds(20),
                 late ? std::chrono::milliseconds(40) : std::chrono::milliseconds(1));
    world_.after(life_, delay, [this, member, what] {
      if (reaches_(member)) what();
    });
  }
}

void ShareTable::send(const worker::sharing::Input& input, const std::vector<Record>& part,
                      Heard heard) {
  const std::uint32_t member = offer_in(input).member;
  carry(member, [this, member, input, part, heard = std::move(heard)] {
    if (std::holds_alternative<Asked>(input)) parts_[member].heard = heard;
    arrive(input, part);
  });
}

void ShareTable::arrive(const worker::sharing::Input& input, const std::vector<Record>& part) {
  const Offered& offer = offer_in(input);
  Part& of = parts_[offer.member];
  if (offer.step > of.step || of.records.empty()) {
    of.step = offer.step;
    of.records = part;
  }
  worker::sharing::Effects answers;
  desk_.step(input, world_.now(), answers);
  for (Answer& a : answers) answer(std::move(a));
}

void ShareTable::answer(Answer answer) {
  std::vector<Record> records;
  if (answer.run) {
    auto& run = *answer.run;
    if (overlaps_ && run.owner != answer.member && run.from > 0) --run.from;
    const auto& all = parts_[run.owner].records;
    records.assign(all.begin() + run.from, all.begin() + run.to);
  }
  const std::uint32_t member = answer.member;
  carry(member, [heard = parts_[member].heard, answer = std::move(answer),
                 records = std::move(records)] { heard(answer, records); });
}

}  // namespace antdt::sim
