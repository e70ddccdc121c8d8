// Which processes are expected in the group, which workers have joined, and the keys that identify
// all of them.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/wire/servers/ps_messages.h"
#include "ctl/servers/group_events.h"

namespace antdt::ctl::servers {

class Roll {
 public:
  void expect(const ProcessesExpected& processes);
  [[nodiscard]] bool is_expected(Member member) const;
  // Whether the process is expected now, or in a group of the next size.
  [[nodiscard]] bool may_join(Member member) const;
  // Whether a process that has joined may become a server: not if it is to leave. After a restart
  // of the job daemon the expected processes are not known yet, and none is excluded.
  [[nodiscard]] bool may_serve(Member server) const;
  [[nodiscard]] const std::vector<Member>& servers() const { return servers_; }
  [[nodiscard]] const std::vector<Member>& workers() const { return workers_; }

  void worker_joined(Member worker) { joined_.insert(worker); }
  // Expected workers that have not joined since the last group was over.
  [[nodiscard]] std::vector<Member> absent_workers() const;
  // The workers of a group that is over have to join again.
  void forget_joins() { joined_.clear(); }

  // The process has ended. If a worker has a successor, that is expected next.
  void lose(Member member);

  void note_key(Member member, const std::string& key);
  [[nodiscard]] std::string key_of(Member member) const;
  // The keys of these members, as far as they have one.
  [[nodiscard]] std::vector<wire::PsKey> keys_of(const std::vector<Member>& members) const;

 private:
  std::vector<Member> servers_;
  std::vector<Member> workers_;
  std::vector<Member> added_;
  std::set<Member> joined_;  // workers that have joined
  std::map<Member, std::string> keys_;
};

}  // namespace antdt::ctl::servers
