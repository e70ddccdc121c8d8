// On which hosts a job daemon stands by, to go on with the job if the present one's host is lost.
// docs/machines.md describes the shape of a machine.
//
// Of one host:
//
//   away ──HostCame──> free ──(chosen)──> starting (StartStandby) ──StandbyStarted──> up
//   free ──HostCame, one of this or an earlier incarnation runs there──> up
//   starting, up ──StandbyEnded──> pausing ──TimePassed, after a pause──> free
//   any ──HostGone──> away
//   up ──(there are more than wanted)──> free (StopStandby)
//   starting, up ──JobEnded──> free (StopStandby)
//
// Hosts are chosen in the order of the job's hosts. The pauses grow from 5 s to 5 minutes, since
// what ended one (keys that are missing there) will usually end the next.
//
// A standby is a process of its host's agent with the role kStandby and the host's number; its
// attempts begin at incarnation * kAttempts, so that those of a later incarnation are higher.
//
// Nothing is durable here: the agents say what runs (HostCame).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"

namespace antdt::ctl::standby {

inline constexpr char kStandby = 'j';

struct HostCame {
  std::string host;           // its end point
  std::string name;           // for people
  std::uint32_t order = 0;    // among the job's hosts
  std::optional<Attempt> up;  // of the standby that runs there
};
struct HostGone {
  std::string host;
};
// About the standby with that number.
struct StandbyStarted {
  Member member;
};
struct StandbyEnded {
  Member member;
  std::string why;
};
// No job daemon is to stand by from now on.
struct JobEnded {};
struct TimePassed {};
using Input = std::variant<HostCame, HostGone, StandbyStarted, StandbyEnded, JobEnded, TimePassed>;

struct StartStandby {
  std::string host;
  Member member;
};
struct StopStandby {
  std::string host;
  Member member;
};
struct TellOperator {
  std::string text;
};
using Effect = std::variant<StartStandby, StopStandby, TellOperator>;
using Effects = std::vector<Effect>;

class Standbys {
 public:
  // `wanted`: how many. `own`: the host's number of this very job daemon, if it once stood by.
  Standbys(std::uint32_t wanted, Incarnation incarnation, std::optional<std::uint32_t> own);

  void step(const Input& input, MonoTime now, Effects& out);

  static constexpr Duration kShortestPause = std::chrono::seconds(5);
  static constexpr Duration kLongestPause = std::chrono::minutes(5);
  // A start that is not answered is asked for again.
  static constexpr Duration kAskAgain = std::chrono::seconds(5);
  // Of an incarnation on a host: with pauses of five minutes they last for a year.
  static constexpr std::uint32_t kAttempts = 100'000;

 private:
  enum class State : std::uint8_t { kFree, kStarting, kUp, kPausing };
  struct Host {
    std::string name, end_point;
    State state = State::kFree;
    Attempt attempt;
    MonoTime due{};  // kStarting: to be asked again; kPausing: to be free again
    Duration pause = kShortestPause;
  };
  void on(const HostCame& input, MonoTime now, Effects& out);
  void on(const HostGone& input, MonoTime now, Effects& out);
  void on(const StandbyStarted& input, MonoTime now, Effects& out);
  void on(const StandbyEnded& input, MonoTime now, Effects& out);
  void on(const JobEnded& input, MonoTime now, Effects& out);
  void on(const TimePassed& input, MonoTime now, Effects& out);
  // Starts what is missing, and stops what is too much.
  void settle(MonoTime now, Effects& out);
  static void stop(std::uint32_t order, Host& host, Effects& out);
  void start(std::uint32_t order, Host& host, MonoTime now, Effects& out);
  [[nodiscard]] Host* find(Member member);
  void check_invariants() const;

  std::uint32_t wanted_;  // none once the job has ended
  const Incarnation incarnation_;
  const std::optional<std::uint32_t> own_;
  std::map<std::uint32_t, Host> hosts_;  // those that are there, by order
};

}  // namespace antdt::ctl::standby
