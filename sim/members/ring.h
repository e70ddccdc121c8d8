// The collective of one generation, as far as its failures are concerned.
//
// An exchange completes at a member when every member has contributed, and at each member at a
// different moment. If a member leaves in between, the exchange completes at some members and not
// at others. A member that waits for a neighbour that left sees a closed connection. A member that
// waits for anybody else that left is not told, and waits until it is aborted. A host that lost its
// power closes no connection.
//
// Some of the members can exchange something among themselves, while others do not.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/wire/membership_messages.h"
#include "sim/members/domain_updates.h"
#include "sim/members/share_table.h"
#include "sim/model.h"
#include "sim/world.h"
#include "trainer/worker/member/heal_plan.h"
#include "trainer/worker/step_slot.h"

namespace antdt::sim {

// What a member contributes to an exchange: its state to the first one, a step's slot to the
// others.
struct Contribution {
  worker::HealSlot heal;
  worker::StepSlot slot;
  std::vector<Record> records;
  std::uint64_t skipped = 0;                       // of them, by the program
  std::shared_ptr<const Model> replica = nullptr;  // to mixing, and to consolidating
  std::shared_ptr<const std::vector<DomainMessage>> messages = nullptr;  // between domains
  double threshold = 0;                                                  // of such messages
  std::vector<wire::MemberPlace> concluded = {};  // for a sabotage: RingSeat::concluded()
};

// A training state that is sent: its header, and its parts.
struct Handed {
  std::string meta;
  Model model;
};

class Ring {
 public:
  using Contributions = std::vector<Contribution>;
  // Called with the contributions by rank, or with null if the collective is broken for this
  // member.
  using Done = std::function<void(std::shared_ptr<const Contributions>)>;
  // Whether two members' hosts can reach each other now.
  using Reaches = std::function<bool(std::size_t, std::size_t)>;

  // What a scripted case withholds: an exchange at a member, or the state that it receives from the
  // member before.
  struct Withheld {
    std::function<bool(std::size_t rank)> exchange;
    std::function<bool(std::size_t rank, std::size_t from)> state;
  };

  // Whether a member's process runs now.
  using Runs = std::function<bool(std::size_t)>;
  Ring(World& world, std::size_t size, Reaches reaches, Runs runs, Withheld withheld = {})
      : world_(world),
        members_(size),
        reaches_(std::move(reaches)),
        runs_(std::move(runs)),
        withheld_(std::move(withheld)) {}

  // A member waits for at most one thing at a time.
  void connect(std::size_t rank, Done done);
  void exchange(std::size_t rank, Contribution mine, Done done);
  // The same among these ranks only, by which the contributions then are. `what` differs between
  // exchanges of the same ranks.
  using Group = std::vector<std::uint32_t>;
  void exchange_in(const Group& group, const std::string& what, std::size_t rank, Contribution mine,
                   Done done);
  // The training state of the member before, once that has it; null if it cannot come.
  void offer(std::size_t rank, Handed state);
  using Received = std::function<void(std::shared_ptr<const Handed>)>;
  void receive_left(std::size_t rank, Received done);
  // The member waits no longer, and others may not get what they wait for. `silently`: they are not
  // told.
  void leave(std::size_t rank, bool silently);

  // The desk of the group of this member.
  [[nodiscard]] ShareTable& table(std::size_t rank, const worker::sharing::ShareRules& rules);

  [[nodiscard]] std::size_t size() const { return members_.size(); }

 private:
  struct Participant {
    bool connected = false;
    bool left = false;
    bool silent = false;
    std::uint64_t posted = 0;  // exchanges so far
    std::uint64_t waits = 0;   // counts its waits
    std::uint64_t cut = 0;     // the wait that can no longer complete
    Done done;                 // for the wait that is under way
    Received receives;
    std::shared_ptr<const Handed> offered;
    Group group;  // with which it waits; empty: with all
  };
  struct Exchange {
    std::shared_ptr<Contributions> contributions;
    std::size_t posted = 0;
    std::size_t completed = 0;
  };
  using Key = std::pair<Group, std::string>;

  void post(const Key& key, std::size_t rank, std::size_t index, std::size_t size,
            Contribution mine, Done done);
  void complete_later(std::size_t rank, const Key& key);
  void complete(std::size_t rank, const Key& key, std::uint64_t wait);
  void pass_on(std::size_t rank);
  void arrive(std::size_t rank, std::uint64_t wait);
  void fail_later(std::size_t rank, Duration within);
  void fail(std::size_t rank);
  void check_neighbours(std::size_t rank);
  // The ranks of the group; if it is empty, of all.
  [[nodiscard]] Group ranks_of(const Group& group) const;
  // Each member of the group, or of all if it is empty, reaches the next one.
  [[nodiscard]] bool all_reach(const Group& group) const;
  // The members beside this one in what it waits for.
  [[nodiscard]] std::vector<std::size_t> neighbours(std::size_t rank) const;
  [[nodiscard]] std::size_t before(std::size_t rank) const {
    return (rank + members_.size() - 1) % members_.size();
  }
  [[nodiscard]] std::size_t behind(std::size_t rank) const { return (rank + 1) % members_.size(); }

  World& world_;
  Life life_;
  std::vector<Participant> members_;
  Reaches reaches_;
  Runs runs_;
  Withheld withheld_;
  std::map<Key, Exchange> exchanges_;
  std::map<std::size_t, ShareTable> tables_;  // by the rank of the member that has the desk
};

}  // namespace antdt::sim
