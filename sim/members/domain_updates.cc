#include "sim/members/domain_updates.h"

#include <algorithm>

#include "core/ids.h"

namespace antdt::sim {
namespace {

// One in three pieces that were not significant before is so in a step.
bool is_significant(std::uint64_t number, std::size_t piece, Step step) {
  return combine_seed(combine_seed(number, piece), step.value) % 3 == 0;
}

std::uint8_t times_entire(const HeldUpdate& held) { return *std::ranges::min_element(held.there); }

}  // namespace

void add_update(Model& model, std::string_view own, std::uint64_t number,
                const std::shared_ptr<const Update>& update) {
  HeldUpdate held{update, std::string(own), {}, {}};
  held.there.fill(1);
  model.held.emplace(number, std::move(held));
  model.count(*update, 1);
}

DomainMessage send_updates(Model& model, std::string_view own, Step step, bool whole) {
  DomainMessage message{std::string(own), whole, {}};
  for (auto& [number, held] : model.held) {
    if (held.domain != own) continue;
    Pieces now{};
    for (std::size_t piece = 0; piece < kPieces; ++piece) {
      if (held.sent[piece] > 0 || (!whole && !is_significant(number, piece, step))) continue;
      held.sent[piece] = now[piece] = 1;
    }
    if (now != Pieces{}) message.changes.push_back({number, held.update, now});
  }
  // Nothing of them can be withdrawn any more.
  if (whole) std::erase_if(model.held, [&](const auto& at) { return at.second.domain == own; });
  return message;
}

void take_updates(Model& model, const DomainMessage& message, std::vector<Record>& gained) {
  for (const auto& [number, update, pieces] : message.changes) {
    HeldUpdate& held =
        model.held.try_emplace(number, HeldUpdate{update, message.domain, {}, {}}).first->second;
    const std::uint8_t before = times_entire(held);
    for (std::size_t piece = 0; piece < kPieces; ++piece) held.there[piece] += pieces[piece];
    if (times_entire(held) == before) continue;
    model.count(*update, 1);
    gained.insert(gained.end(), update->records.begin(), update->records.end());
  }
  if (!message.whole) return;
  std::erase_if(model.held, [&](const auto& at) {
    return at.second.domain == message.domain && times_entire(at.second) > 0;
  });
}

std::size_t withdraw_others(Model& model, const std::vector<std::string>& domains) {
  return std::erase_if(model.held, [&](const auto& at) {
    const HeldUpdate& held = at.second;
    if (std::ranges::find(domains, held.domain) != domains.end()) return false;
    model.count(*held.update, -times_entire(held));
    return true;
  });
}

bool has_a_piece_twice(const Model& model) {
  return std::ranges::any_of(
      model.held, [](const auto& at) { return *std::ranges::max_element(at.second.there) > 1; });
}

}  // namespace antdt::sim
