// Records that workers may have died of. When a worker dies over its work, the records of its last
// steps are suspect; when several deaths share some of them, the job ends and names them
// (shard_server/suspects/suspects.h). The deaths are durable; whose place is not known yet is not.
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

  // A member of a collective died. Where it was is known when the others settle; if nobody can say
  // so, all that it held is suspect.
  void add_member(Member dead) { members_.push_back(dead); }
  void forget_members() { members_.clear(); }
  void add_last_steps(Member dead, std::uint64_t place, Work& work);
  void add_all_of_members(Work& work);
  // A worker of servers died. Where it was is known when its home has spoken. False: nothing of
  // it is suspect.
  void add_server_worker(Member dead);
  [[nodiscard]] bool judge_server_worker(Member dead, std::uint64_t place, Work& work);
  void forget_server_workers() { server_workers_.clear(); }

  // True: so many have died of the same records that the job ends.
  [[nodiscard]] bool end_job_if_shared(Work& work) const;
  // An operator wants it tried again.
  void clear();

  [[nodiscard]] std::vector<ImageDeath> image() const;
  void restore(const std::vector<ImageDeath>& deaths);

 private:
  // From `place` on, so many records of what it holds.
  void add(Member dead, std::uint64_t place, std::uint64_t records, Work& work);

  Parts& parts_;
  shard_server::Suspects suspects_;
  std::vector<Member> members_;
  std::map<Member, std::uint64_t> server_workers_;  // how many records are suspect
};

}  // namespace antdt::ctl::job
