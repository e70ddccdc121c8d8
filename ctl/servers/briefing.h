// Which server has heard which order. What a server has to know is one message that holds all of
// it (wire::PsServe); it is numbered, and repeated to each server until that one has answered.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "ctl/servers/group_image.h"

namespace antdt::ctl::servers {

class Briefing {
 public:
  static constexpr Duration kRepeat = std::chrono::milliseconds(500);

  // Of the newest order. Durable.
  [[nodiscard]] std::uint64_t number() const { return number_; }
  // Everybody is to hear something new.
  void begin_next() { ++number_; }
  // A new group: its orders are numbered from 1, and nobody has heard one.
  void begin_group();
  // The group is over.
  void end_group() { heard_.clear(); }

  void said(Member server, MonoTime now) { said_[server] = now; }
  void heard(Member server, std::uint64_t number);
  // It has become something else, and has to hear that.
  void forget(Member server) { heard_.erase(server); }

  [[nodiscard]] bool has_heard_any(Member server) const { return heard_.contains(server); }
  [[nodiscard]] bool has_heard_newest(Member server) const;
  // The newest order that all of these have heard.
  [[nodiscard]] std::uint64_t heard_by_all(const std::vector<GroupServer>& servers) const;
  [[nodiscard]] bool is_repeat_due(Member server, MonoTime now) const;

  // After a restart it is not known who has heard what: a new number asks all of them.
  void restore(std::uint64_t number) { number_ = number + 1; }

 private:
  [[nodiscard]] std::uint64_t heard_by(Member server) const;

  std::uint64_t number_ = 0;
  std::map<Member, std::uint64_t> heard_;
  std::map<Member, MonoTime> said_;
};

}  // namespace antdt::ctl::servers
