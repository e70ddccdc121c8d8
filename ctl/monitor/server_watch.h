// How long parameter servers take for a request, and which of them are slow. A value:
// no clock, no I/O.
//
// Keys are spread over the servers by their hash, and a push comes to all of them: each has
// the same requests, whatever the workers do. So the mean time for a request tells how fast
// a server is, and a server is compared with the mean of the others. The time that a request
// waits before the server looks at it is not included. Primaries are compared with primaries,
// backups with backups and single processes with each other, because their work differs: a
// primary copies what it does to its backup, a backup decides nothing, and a single process
// does neither.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/job_states.h"
#include "ctl/monitor/monitor.h"
#include "ctl/monitor/view.h"
#include "ctl/monitor/window.h"

namespace antdt::ctl {

class ServerWatch {
 public:
  // Servers speak once a second: fewer reports say little.
  static constexpr Duration kLeastWindow = std::chrono::seconds(3);
  static constexpr std::uint64_t kLeastRequests = 20;

  explicit ServerWatch(const MonitorConfig& config);

  // Those that serve now, and as what. Who stays what it was,
  // in the same attempt, keeps what is known.
  struct ServerInfo {
    Member member;
    std::string host;
    ServerRole role{};
  };
  void set_servers(const std::vector<ServerInfo>& servers);

  // What a server says it has done since it began. Reports of servers that are not compared
  // now are ignored.
  void step(Member server, std::uint64_t requests, std::uint64_t busy_us, MonoTime now);

  // By id. Remembers since when each is slow, so call it regularly.
  [[nodiscard]] std::vector<ServerView> view(MonoTime now);

 private:
  struct Said {
    std::uint64_t requests = 0;
    std::uint64_t busy_us = 0;
    MonoTime when{};
  };
  struct Server {
    ServerInfo info;
    SlidingWindow window;
    std::optional<Said> said{};       // last
    std::optional<MonoTime> first{};  // that something was measured
    std::optional<MonoTime> slow_since{};
  };
  [[nodiscard]] ServerView measure(const Server& server, MonoTime now) const;
  void judge(Server& server, ServerView& own, const std::vector<ServerView>& all,
             MonoTime now) const;

  MonitorConfig config_;
  Duration recent_;
  std::map<WorkerId, Server> servers_;
};

}  // namespace antdt::ctl
