// A step that its members share (trainer/worker/sharing): the desks are those that ship, the
// messages between members and desks take time, and a desk handles one after another.
//
//   a member's records are there ──offer──> its desk
//   first run ──ask──> desk ──> next run ... ──> nothing left: the member is done
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/fleet/player.h"
#include "trainer/worker/sharing/share_desk.h"
#include "trainer/worker/sharing/share_seat.h"

namespace antdt::fleet {

class SharedStep {
 public:
  SharedStep(Player& player, worker::sharing::ShareRules rules) : player_(player), rules_(rules) {}

  // These members, by rank, begin a step. `done` is called once all of them are done.
  void begin(const std::vector<Worker*>& members, Generation generation, Step step,
             std::function<void()> done);
  // The member has the records of its part and begins to compute.
  void opened(Worker& member);
  // How long a member has waited for answers in this step, on average.
  [[nodiscard]] Duration asked() const {
    return from_seconds(asked_s_ / static_cast<double>(members_.size()));
  }
  // The generation is over.
  void cancel() { ++turn_; }

 private:
  struct Group {
    worker::sharing::ShareGroup ranks;
    worker::sharing::ShareDesk desk;
    MonoTime free{};  // when the desk has handled what has arrived
  };
  struct Seat {
    worker::sharing::ShareSeat seat;
    std::size_t group = 0;
    MonoTime asked{};  // its newest ask
  };
  void make_groups(std::uint32_t members);
  void send(std::uint32_t rank, const worker::sharing::Input& input);
  void arrive(std::size_t group, const worker::sharing::Input& input);
  void compute(std::uint32_t rank, std::uint32_t records);
  void computed(std::uint32_t rank);
  void answered(std::size_t group, const worker::sharing::Answer& answer);
  // Does nothing if by then another step has begun, or the generation is over.
  void after(double seconds, std::function<void()> what);

  Player& player_;
  const worker::sharing::ShareRules rules_;
  Generation generation_;
  std::vector<Group> groups_;
  std::vector<Seat> seats_;  // by rank
  std::vector<Worker*> members_;
  Step step_;
  std::size_t done_ = 0;
  double asked_s_ = 0;  // of all members in this step
  std::function<void()> when_done_;
  std::uint64_t turn_ = 0;
};

}  // namespace antdt::fleet
