// Compares what agents report with what should run on their hosts: what runs there and should not,
// and what should run there and is not known any more.
#pragma once

#include <map>

#include "core/clock.h"
#include "core/ids.h"
#include "ctl/job/work.h"

namespace antdt::ctl::job {

struct Parts;

class HostWatch {
 public:
  explicit HostWatch(Parts& parts) : parts_(parts) {}

  void on(const HostWelcomed& e, Work& work);
  void on(const HostListed& e, Work& work);
  void on(const HostFellSilent& e, Work& work);
  // The process was heard of, or it has ended.
  void is_known(Member member) { vanished_.erase(member); }
  // With each tick: takes the end of a missing process for granted after some time.
  void look(Work& work);

 private:
  Parts& parts_;
  std::map<Member, MonoTime> vanished_;  // since when its agent does not know it
};

}  // namespace antdt::ctl::job
