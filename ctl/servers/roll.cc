#include "ctl/servers/roll.h"

#include <algorithm>
#include <iterator>

namespace antdt::ctl::servers {
namespace {

bool holds(const std::vector<Member>& members, Member member) {
  return std::ranges::find(members, member) != members.end();
}

}  // namespace

void Roll::expect(const ProcessesExpected& processes) {
  servers_ = processes.servers;
  workers_ = processes.workers;
  added_ = processes.added;
}

bool Roll::is_expected(Member member) const {
  return holds(member.worker.role == 's' ? servers_ : workers_, member);
}

bool Roll::may_join(Member member) const { return is_expected(member) || holds(added_, member); }

bool Roll::may_serve(Member server) const { return servers_.empty() || is_expected(server); }

std::vector<Member> Roll::absent_workers() const {
  std::vector<Member> absent;
  std::ranges::copy_if(workers_, std::back_inserter(absent),
                       [&](Member m) { return !joined_.contains(m); });
  return absent;
}

void Roll::lose(Member member) {
  joined_.erase(member);
  keys_.erase(member);
  std::erase(workers_, member);
}

void Roll::note_key(Member member, const std::string& key) {
  if (!key.empty()) keys_[member] = key;
}

std::string Roll::key_of(Member member) const {
  const auto found = keys_.find(member);
  return found == keys_.end() ? std::string() : found->second;
}

std::vector<wire::PsKey> Roll::keys_of(const std::vector<Member>& members) const {
  std::vector<wire::PsKey> all;
  for (const Member m : members) {
    const auto found = keys_.find(m);
    if (found != keys_.end()) all.push_back({m.worker, m.attempt, found->second});
  }
  return all;
}

}  // namespace antdt::ctl::servers
