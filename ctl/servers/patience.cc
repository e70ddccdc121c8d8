#include "ctl/servers/patience.h"

#include <algorithm>

namespace antdt::ctl::servers {

void Patience::expect(const Roll& roll, MonoTime now) {
  std::erase_if(expected_since_, [&](const auto& known) { return !roll.is_expected(known.first); });
  for (const Member m : roll.servers()) expected_since_.try_emplace(m, now);
  for (const Member m : roll.workers()) expected_since_.try_emplace(m, now);
}

std::vector<Member> Patience::silent(const std::vector<Member>& missing, Duration patience,
                                     MonoTime now) {
  std::vector<Member> silent;
  for (const Member member : missing) {
    MonoTime& asked = expected_since_[member];
    if (now - std::max(since_, asked) < patience) continue;
    asked = now;
    silent.push_back(member);
  }
  return silent;
}

}  // namespace antdt::ctl::servers
