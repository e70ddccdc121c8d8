// Which server has heard which order. Everything that a server has to know is in one message
// (wire::PsServe), the order. Orders are numbered, and each is repeated to a server until that
// server has answered it.
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

  // Number of the newest order. Durable.
  [[nodiscard]] std::uint64_t number() const { return number_; }
  // All servers have to hear something new.
  void begin_next() { ++number_; }
  // A new group begins: its orders are numbered from 1, and no server has heard one.
  void begin_group();
  // The group is over.
  void end_group() { heard_.clear(); }

  void said(Member server, MonoTime now) { said_[server] = now; }
  void heard(Member server, std::uint64_t number);
  // The server's role has changed, so it must hear the newest order again.
  void forget(Member server) { heard_.erase(server); }

  [[nodiscard]] bool has_heard_any(Member server) const { return heard_.contains(server); }
  [[nodiscard]] bool has_heard_newest(Member server) const;
  // The newest order that all of these servers have heard.
  [[nodiscard]] std::uint64_t heard_by_all(const std::vector<GroupServer>& servers) const;
  [[nodiscard]] bool is_repeat_due(Member server, MonoTime now) const;

  // After a restart it is not known which server has heard what, so a new number makes all of them
  // answer.
  void restore(std::uint64_t number) { number_ = number + 1; }

 private:
  [[nodiscard]] std::uint64_t heard_by(Member server) const;

  std::uint64_t number_ = 0;
  std::map<Member, std::uint64_t> heard_;
  std::map<Member, MonoTime> said_;
};

}  // namespace antdt::ctl::servers
