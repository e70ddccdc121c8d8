// A worker's side of a group of servers, as trainer/ps_link/worker_link.h: what is
// not answered in time is said again; one call at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/ps_packets.h"
#include "sim/world.h"

namespace antdt::sim {

class PsLink {
 public:
  struct Outside {
    std::function<void(Duration, World::Action)> later;
    std::function<void(const std::string& endpoint, PsPacket)> ask;
    std::function<std::uint64_t()> new_socket;
  };
  PsLink(Outside outside, Member self, Generation generation, std::vector<std::string> servers);

  // The answers by server; none: the group is over, or a server refused.
  using Answers = std::optional<std::vector<PsReply>>;
  using Done = std::function<void(const Answers&)>;
  // `asks` by server; those without one are not asked and answer nothing.
  void ask(std::vector<std::optional<PsAsk>> asks, Done done);
  void answered(const PsAnswer& answer);
  // The call that waits and all later ones get no answers.
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
  void say(std::size_t server);
  void say_again(std::uint64_t call);
  void conclude(const Answers& answers);

  Outside outside_;
  Life life_;
  const Member self_;
  const Generation generation_;
  const std::vector<std::string> servers_;
  std::vector<std::uint64_t> sockets_;
  std::uint64_t seq_ = 0;
  std::uint64_t call_ = 0;
  std::vector<Asked> asked_;
  Done done_;
  bool aborted_ = false;
  std::string refusal_;
};

}  // namespace antdt::sim
