// A worker's side of a group of servers, as trainer/ps_link/requests.h: what is not
// answered in time is said again; any number of calls are under way.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/servers/ps_packets.h"
#include "sim/world.h"

namespace antdt::sim {

class PsLink {
 public:
  struct Outside {
    std::function<void(Duration, World::Action)> later;
    std::function<void(const std::string& endpoint, PsPacket)> ask;
    std::function<std::uint64_t()> new_socket;
    std::function<std::optional<wire::PsRoster>(std::uint64_t than)> newer;
  };
  // `others`: the backups of the servers, "" where there is none.
  PsLink(Outside outside, Member self, Generation generation, std::vector<std::string> servers,
         std::vector<std::string> others, std::uint64_t number);

  // The answers by server; none: the group is over, or a server refused.
  using Answers = std::optional<std::vector<PsReply>>;
  using Done = std::function<void(const Answers&)>;
  using Call = std::uint64_t;
  // `asks` by server; those without one are not asked and answer nothing.
  Call ask(std::vector<std::optional<PsAsk>> asks, Done done);
  void forget(Call call) { calls_.erase(call); }
  void answered(const PsAnswer& answer);
  // The calls that wait and all later ones get no answers.
  void abort();

  [[nodiscard]] std::size_t servers() const { return servers_.size(); }
  [[nodiscard]] Generation generation() const { return generation_; }
  // Of the server that refused otherwise than as stale.
  [[nodiscard]] const std::string& refusal() const { return refusal_; }

 private:
  struct Asked {
    std::optional<PsAsk> ask;
    std::uint64_t seq = 0;
    std::optional<PsReply> reply;
  };
  struct Waiting {
    std::vector<Asked> asked;  // by server
    Done done;
  };
  void say(const Waiting& call);
  void say_again(Call number);
  void ask_others();
  void look_for_servers();
  void move_to_other(std::size_t server);
  void conclude(Done done, const Answers& answers);

  Outside outside_;
  Life life_;
  const Member self_;
  const Generation generation_;
  std::vector<std::string> servers_;
  std::vector<std::uint64_t> sockets_;
  std::vector<std::string> others_;  // by server; "": it has none, or is the server by now
  std::vector<std::uint64_t> other_sockets_;
  std::uint64_t number_;  // of the roster that this is of
  std::uint64_t seq_ = 0;
  Call last_call_ = 0;
  std::map<Call, Waiting> calls_;
  bool aborted_ = false;
  std::string refusal_;
};

}  // namespace antdt::sim
