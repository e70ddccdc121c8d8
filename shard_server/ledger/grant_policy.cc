#include "shard_server/ledger/grant_policy.h"

#include <algorithm>
#include <cmath>

namespace antdt::shard_server {
namespace {

std::uint64_t ceil_divide(std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0); }

bool has_share(const MemberNeed& member, const PhaseNeed& phase) {
  return member.step_records > 0 && phase.share_sum > 0;
}

// The member's part of `records`, rounded down. It is computed in floating point, because the
// product may exceed 64 bits and one record more or less does not matter.
std::uint64_t part_of(std::uint64_t records, std::uint64_t part, std::uint64_t whole) {
  const double share = static_cast<double>(part) / static_cast<double>(whole);
  const double need = std::ceil(static_cast<double>(records) * share - 1e-9);
  return need >= static_cast<double>(records) ? records : static_cast<std::uint64_t>(need);
}

std::uint64_t missing(std::uint64_t target, std::uint64_t held) {
  return target > held ? target - held : 0;
}

}  // namespace

std::uint64_t fair_need(const MemberNeed& member, const PhaseNeed& phase) {
  const std::uint64_t left = phase.ungranted + phase.outstanding;
  if (!has_share(member, phase)) {
    return ceil_divide(left, std::max<std::uint64_t>(phase.members, 1));
  }
  const std::uint64_t need = part_of(left, member.step_records, phase.share_sum);
  return ceil_divide(need, member.step_records) * member.step_records;
}

std::uint64_t grant_size(std::uint64_t want, const MemberNeed& member, const PhaseNeed& phase) {
  std::uint64_t grant = std::min(want, phase.ungranted);
  if (!has_share(member, phase)) {
    const std::uint64_t members = std::max<std::uint64_t>(phase.members, 1);
    return std::min(grant, std::max<std::uint64_t>(ceil_divide(phase.ungranted, 2 * members), 1));
  }
  grant = std::min(grant, missing(fair_need(member, phase), member.held));
  if (member.hold_records > 0) {
    // A member also holds what is computed and not yet stable: two steps. Another half is added so
    // that it need not ask for every batch.
    const std::uint64_t most =
        member.hold_records + member.hold_records / 2 + 2 * member.step_records;
    grant = std::min(grant, missing(most, member.held));
  }
  return grant;
}

std::uint64_t surplus(const MemberNeed& member, const PhaseNeed& phase) {
  const std::uint64_t beyond = missing(member.held, fair_need(member, phase));
  return beyond > std::max<std::uint64_t>(member.step_records, 1) ? beyond : 0;
}

}  // namespace antdt::shard_server
