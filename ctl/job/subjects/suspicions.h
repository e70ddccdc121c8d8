// Records that workers may have died of. When a worker dies while it works, the records of its last
// steps are suspect. When several deaths share some of them, the job ends and names these records
// (shard_server/suspects/suspects.h). The deaths are durable, except those whose place is not known
// yet.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/ids.h"
#include "ctl/job/job_image.h"
#include "shard_server/suspects/suspects.h"

namespace antdt::ctl::job {

struct Parts;
class Work;

class Suspicions {
 public:
  explicit Suspicions(Parts& parts) : parts_(parts) {}

  // A member of a collective died. Its place is known when the others settle. If nobody can report
  // it, everything that the member held is suspect.
  void add_member(Member dead) { members_.push_back(dead); }
  void forget_members() { members_.clear(); }
  void add_last_steps(Member dead, std::uint64_t place, Work& work);
  void add_all_of_members(Work& work);
  // A worker of servers died. Its place is known when its home has answered. False if none of its
  // records are suspect.
  void add_server_worker(Member dead);
  [[nodiscard]] bool judge_server_worker(Member dead, std::uint64_t place, Work& work);
  void forget_server_workers() { server_workers_.clear(); }

  // True if so many workers died of the same records that the job ends.
  [[nodiscard]] bool end_job_if_shared(Work& work) const;
  // An operator wants the records tried again.
  void clear();

  [[nodiscard]] std::vector<ImageDeath> image() const;
  void restore(const std::vector<ImageDeath>& deaths);

 private:
  // Adds `records` records from `place` on, out of what the worker holds.
  void add(Member dead, std::uint64_t place, std::uint64_t records, Work& work);

  Parts& parts_;
  shard_server::Suspects suspects_;
  std::vector<Member> members_;
  std::map<Member, std::uint64_t> server_workers_;  // how many records are suspect
};

}  // namespace antdt::ctl::job
