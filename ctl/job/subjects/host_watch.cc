#include "ctl/job/subjects/host_watch.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ctl/job/parts.h"

namespace antdt::ctl::job {
namespace {

// Room of a host if the role requests no resources.
constexpr std::uint32_t kAnyNumber = 1'000'000;
// How long an agent that came back may take to report an exit that it saw.
constexpr Duration kVanishedAfter = std::chrono::seconds(5);

}  // namespace

void HostWatch::on(const HostWelcomed& e, Work& work) {
  const std::string room = e.host.room < kAnyNumber
                               ? fmt::format(", with room for {} workers of this job", e.host.room)
                               : "";
  work.note("host", fmt::format("{} is there{}", e.host.name, room));
  work.then(lifecycle::HostCameUp{e.host});
  work.then(HostListed{e});
}

void HostWatch::on(const HostListed& e, Work& work) {
  const HostWelcomed& welcome = e.welcome;
  const auto runs = [&](Member member) {
    return std::ranges::any_of(welcome.running, [&](const wire::RunningProcess& p) {
      return p.worker == member.worker && p.attempt == member.attempt;
    });
  };
  // A process that was replaced while its host was away must end, and may change nothing.
  for (const wire::RunningProcess& p : welcome.running) {
    const Member member{p.worker, p.attempt};
    const WorkerProcess* w = parts_.lifecycle.find(p.worker);
    const bool current =
        w != nullptr && parts_.lifecycle.is_current(member) && w->place.host == welcome.host.host;
    if (!current) {
      work.say(lifecycle::StopWorker{member, welcome.host.host, Duration::zero()});
    } else if (p.pid != 0) {
      // The report of its start may have been for a job daemon that has ended since, and one that
      // has joined is not asked to start again.
      work.then(lifecycle::WorkerStarted{member, p.pid});
    }
  }
  for (const WorkerProcess& w : parts_.lifecycle.workers()) {
    const bool started = w.state == WorkerProcess::kStarted || w.state == WorkerProcess::kJoined;
    if (w.place.host == welcome.host.host && started && !runs(w.member())) {
      vanished_[w.member()] = work.now;
    }
  }
}

void HostWatch::on(const HostFellSilent& e, Work& work) {
  std::vector<Member> there;
  for (const WorkerProcess& w : parts_.lifecycle.workers()) {
    if (w.place.host == e.host) there.push_back(w.member());
  }
  parts_.vitals.excuse(there, work.now);
}

void HostWatch::look(Work& work) {
  for (auto at = vanished_.begin(); at != vanished_.end();) {
    if (work.now - at->second < kVanishedAfter) {
      ++at;
      continue;
    }
    work.then(lifecycle::WorkerVanished{at->first});
    at = vanished_.erase(at);
  }
}

}  // namespace antdt::ctl::job
