// What the journal stores of a group of parameter servers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/wire/servers/ps_messages.h"

namespace antdt::ctl::servers {

// A server process that has joined.
struct GroupServer {
  WorkerId worker;
  Attempt attempt;
  std::string endpoint;
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("worker", m.worker);
    v("attempt", m.attempt);
    v("endpoint", m.endpoint);
  }
  [[nodiscard]] Member member() const { return {worker, attempt}; }
};

// One server of the group: its one or two processes.
struct ReplicaSet {
  std::uint64_t view = 0;  // 0: servers of this job are single processes
  WorkerId primary;
  std::optional<WorkerId> backup;
  std::optional<WorkerId> joining;  // becomes the backup; while it is set, there is no backup
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("view", m.view);
    v("primary", m.primary);
    v("backup", m.backup);
    v("joining", m.joining);
  }
  [[nodiscard]] std::optional<WorkerId> other() const { return backup ? backup : joining; }
  [[nodiscard]] bool has(WorkerId worker) const { return worker == primary || worker == other(); }
};

// What survives a restart of the job daemon.
struct ServerGroupImage {
  Generation generation;
  std::uint8_t state = 0;  // ServerGroup::State
  bool state_lost = false;
  std::vector<GroupServer> servers;     // that have joined
  std::vector<wire::PsMember> workers;  // workers of the group
  std::vector<wire::PsMember> leaving;
  std::uint64_t number = 0;
  std::string restore;
  std::uint64_t version = 0;
  std::uint64_t cut = 0;                 // number of the checkpoint that is being made; 0: none
  std::optional<std::uint32_t> backups;  // set if it differs from the job file's
  double rate = 1;
  std::vector<wire::PsKey> keys;
  std::vector<ReplicaSet> replica_sets;  // by index; empty in journals of earlier releases
  std::vector<wire::PsMember> keepers = {};
  std::uint32_t count = 0;   // number of servers; 0: the number in the job file
  std::uint32_t fewest = 0;  // servers that the model fits; 0: unknown
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("generation", m.generation);
    v("state", m.state);
    v("state_lost", m.state_lost);
    v("servers", m.servers);
    v("workers", m.workers);
    v("leaving", m.leaving);
    v("number", m.number);
    v("restore", m.restore);
    v("version", m.version);
    v("cut", m.cut);
    v("backups", m.backups);
    v("rate", m.rate);
    v("keys", m.keys);
    v("seats", m.replica_sets);
    v("keepers", m.keepers);
    v("count", m.count);
    v("fewest", m.fewest);
  }
};

inline Member from_wire(const wire::PsMember& m) { return {m.worker, m.attempt}; }
inline wire::PsMember to_wire(Member member) { return {member.worker, member.attempt}; }

inline std::vector<Member> all_from_wire(const std::vector<wire::PsMember>& members) {
  std::vector<Member> all;
  std::ranges::transform(members, std::back_inserter(all), from_wire);
  return all;
}
inline std::vector<wire::PsMember> all_to_wire(const std::vector<Member>& members) {
  std::vector<wire::PsMember> all;
  std::ranges::transform(members, std::back_inserter(all), to_wire);
  return all;
}

}  // namespace antdt::ctl::servers
