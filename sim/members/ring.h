// The collective of one generation, as far as its failures go.
//
// An exchange completes at a member only when every member has contributed, at
// each at its own moment; if somebody leaves in between it completes at some and
// not at others. Who waits for one that has left is told by a closed connection
// if it is its neighbour, otherwise never: it waits until it is aborted. A host
// that lost its power closes nothing.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/model.h"
#include "sim/world.h"
#include "trainer/worker/member/heal_plan.h"
#include "trainer/worker/step_slot.h"

namespace antdt::sim {

// What a member puts into an exchange: into the first one where it stands, into
// the others a step.
struct Contribution {
  worker::HealSlot heal;
  worker::StepSlot slot;
  std::vector<Record> records;
};

// A training state on its way: what goes before the parts, and the parts.
struct Handed {
  std::string meta;
  Model model;
};

class Ring {
 public:
  using Contributions = std::vector<Contribution>;
  // The contributions by rank, or null: the collective is broken for this member.
  using Done = std::function<void(std::shared_ptr<const Contributions>)>;
  // Whether two members' hosts can reach each other now.
  using Reaches = std::function<bool(std::size_t, std::size_t)>;

  // What does not arrive yet, for a scripted case: of an exchange at a member, of
  // the state that it receives from the one before.
  struct Withheld {
    std::function<bool(std::size_t rank)> exchange;
    std::function<bool(std::size_t rank, std::size_t from)> state;
  };

  Ring(World& world, std::size_t size, Reaches reaches, Withheld withheld = {})
      : world_(world),
        members_(size),
        reaches_(std::move(reaches)),
        withheld_(std::move(withheld)) {}

  // A member waits for at most one thing at a time.
  void connect(std::size_t rank, Done done);
  void exchange(std::size_t rank, Contribution mine, Done done);
  // What the rank before has, once it has it; null if it cannot come.
  void offer(std::size_t rank, Handed state);
  using Received = std::function<void(std::shared_ptr<const Handed>)>;
  void receive_left(std::size_t rank, Received done);
  // It waits no longer; others may not get what they wait for. `silently`: they
  // are not told.
  void leave(std::size_t rank, bool silently);

  [[nodiscard]] std::size_t size() const { return members_.size(); }

 private:
  struct Participant {
    bool connected = false;
    bool left = false;
    bool silent = false;
    std::uint64_t posted = 0;  // exchanges so far
    std::uint64_t waits = 0;   // changes with each wait
    std::uint64_t cut = 0;     // the wait that nothing completes any more
    Done done;                 // of the wait
    Received receives;
    std::shared_ptr<const Handed> offered;
  };
  struct Exchange {
    std::shared_ptr<Contributions> contributions;
    std::size_t posted = 0;
  };

  void complete_later(std::size_t rank, std::uint64_t number);
  void complete(std::size_t rank, std::uint64_t number, std::uint64_t wait);
  void pass_on(std::size_t rank);
  void arrive(std::size_t rank, std::uint64_t wait);
  void fail_later(std::size_t rank, Duration within);
  void fail(std::size_t rank);
  void check_neighbours(std::size_t rank);
  [[nodiscard]] bool all_reach() const;
  [[nodiscard]] std::size_t before(std::size_t rank) const {
    return (rank + members_.size() - 1) % members_.size();
  }
  [[nodiscard]] std::size_t behind(std::size_t rank) const { return (rank + 1) % members_.size(); }

  World& world_;
  Life life_;
  std::vector<Participant> members_;
  Reaches reaches_;
  Withheld withheld_;
  std::map<std::uint64_t, Exchange> exchanges_;
};

}  // namespace antdt::sim
