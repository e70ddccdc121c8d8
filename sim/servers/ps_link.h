// A worker's side of a group of servers: the WorkerCalls that ship
// (trainer/ps/calls/worker_calls.h), on simulated sockets. As on a real socket, packets wait until
// they are read.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "sim/servers/ps_packets.h"
#include "sim/world.h"
#include "trainer/ps/calls/worker_calls.h"

namespace antdt::sim {

class PsLink {
 public:
  struct Outside {
    std::function<MonoTime()> now;
    std::function<void(Duration, World::Action)> later;
    std::function<void(const std::string& address, PsPacket)> ask;
    std::function<std::uint64_t()> new_socket;
    std::function<std::optional<wire::PsRoster>(std::uint64_t than)> newer;
    std::function<void()> due;  // called when the caller has waited long enough
  };
  PsLink(Outside outside, Member self, Generation generation, ps::Consistency consistency,
         const wire::PsRoster& roster);

  [[nodiscard]] ps::WorkerCalls& calls() { return calls_; }
  // The list to which a call appends its effects; they are carried out afterwards.
  [[nodiscard]] ps::requests::Effects& wanted() { return wanted_; }
  void perform_all();

  void answered(PsAnswer&& answer) { unheard_.push_back(std::move(answer)); }
  // Reads the packets that have come.
  void hear();
  // The caller waits until a packet comes, or `due` is called.
  void wait();

 private:
  struct Link {
    std::string address;
    std::uint64_t socket = 0;
  };
  void perform(const ps::requests::OpenRequestLink& effect);
  void perform(const ps::requests::CloseRequestLink& effect) { links_.erase(effect.link); }
  void perform(const ps::requests::SendRequest& effect);
  void perform(const ps::requests::LookForRoster& effect);
  void perform(const ps::requests::CheckReach&) {}  // a simulated host that is up accepts
                                                    // connections

  Outside outside_;
  Life life_;
  const Member self_;
  const Generation generation_;
  ps::WorkerCalls calls_;
  ps::requests::Effects wanted_;
  std::map<ps::requests::LinkId, Link> links_;
  std::deque<PsAnswer> unheard_;
  std::uint64_t waits_ = 0;  // only the newest one is woken
};

}  // namespace antdt::sim
