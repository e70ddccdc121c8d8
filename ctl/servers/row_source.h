// Where the rows of the next group come from: which servers read a checkpoint, and which keep their
// rows.
//
//   known ──(a group that served is over)──> lost ──ChooseRestore──> asked ──RestoreChosen──> known
//                                              ^                       │
//                                              └──(a keeper is lost)───┘
//
// If the job promises less than exactly once, the servers that are left of a group keep their rows,
// and only the lost server reads the checkpoint. What that means for the ledger is not decided
// here.
//
// If a server cannot read the checkpoint, it is asked for again. What a server found in the files
// does not pass, but it read the copy of its own host, and the launching host's may be good: for
// that reason each checkpoint is asked for once more, and then what workers report counts.
//
// Durable, except for whether the checkpoint was asked for, and which one was found damaged.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/ids.h"
#include "ctl/servers/group_events.h"
#include "ctl/servers/group_image.h"

namespace antdt::ctl::servers {

class RowSource {
 public:
  // From: any. To: known.
  void choose(const RestoreChosen& chosen);
  // From: any. To: lost.
  void lose() { state_ = state_ == State::kKnown ? State::kLost : state_; }
  // Whether the checkpoint is to be asked for again, because a server cannot read its slices.
  [[nodiscard]] bool may_ask_again(Trouble why);
  // From: lost. To: asked. Returns whether the checkpoint must be asked for now.
  [[nodiscard]] bool ask_once();
  [[nodiscard]] bool is_known() const { return state_ == State::kKnown; }
  [[nodiscard]] bool is_asked_for() const { return state_ == State::kAsked; }

  [[nodiscard]] const std::string& restore() const { return restore_; }  // empty: the seeded start
  [[nodiscard]] std::uint64_t version() const { return version_; }       // number of updates in it

  // These servers begin the next group with the rows that they have.
  void keep(std::vector<Member> keepers) { keepers_ = std::move(keepers); }
  [[nodiscard]] const std::vector<Member>& keepers() const { return keepers_; }
  [[nodiscard]] bool keeps(Member server) const;
  // From: any, if there is such a keeper. To: lost. The source of the next group's rows was chosen
  // with that keeper, so it must be chosen again.
  void forget_keepers(const std::function<bool(Member)>& which);

  void restore_image(const ServerGroupImage& image);

 private:
  enum class State : std::uint8_t { kKnown, kLost, kAsked };

  State state_ = State::kKnown;
  std::string restore_;
  std::uint64_t version_ = 0;
  std::string damaged_;          // servers found it damaged, and it was asked for once more
  std::vector<Member> keepers_;  // servers of the group, or of the next one
};

}  // namespace antdt::ctl::servers
