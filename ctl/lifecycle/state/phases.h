// The phases of a job (train 0, eval 0, train 1, …, finish), which of them is open, and the group
// that is in it: the members of the newest settled generation. A phase is over when the ledger has
// handed out and committed all of it (drained) and each member has said that it is done with it.
//
// Durable: the number of the open phase.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/ids.h"
#include "core/wire/training_messages.h"

namespace antdt::ctl {

class Phases {
 public:
  struct Shape {
    std::uint32_t epochs = 1;
    std::uint64_t train_records = 0;
    std::uint64_t eval_records = 0;
  };
  explicit Phases(const Shape& shape) : shape_(shape) {}

  [[nodiscard]] std::uint64_t number() const { return number_; }  // 0: none opened yet
  [[nodiscard]] std::uint64_t last() const;                       // number of "finish"
  // The phase that is open (what is kNone if none is).
  [[nodiscard]] wire::PhaseStart open() const { return describe(number_); }
  [[nodiscard]] wire::PhaseStart describe(std::uint64_t phase) const;
  void open(std::uint64_t phase);
  // Training goes on from a checkpoint of this phase, with nobody yet.
  void go_back_to(std::uint64_t phase);
  void restore(std::uint64_t phase, std::vector<Member> group);

  // The ledger says so of the open phase.
  void drain() { drained_ = true; }
  [[nodiscard]] bool drained() const { return drained_; }
  void done(WorkerId worker, std::uint64_t phase);
  [[nodiscard]] bool is_done(WorkerId worker) const;  // with the open phase

  void settle(std::vector<Member> group);
  void unsettle() { settled_ = false; }
  void disband();
  void leave(Member member) { std::erase(group_, member); }
  [[nodiscard]] bool settled() const { return settled_; }
  [[nodiscard]] const std::vector<Member>& group() const { return group_; }
  [[nodiscard]] bool in_group(Member member) const;

 private:
  Shape shape_;
  std::uint64_t number_ = 0;
  bool drained_ = false;
  bool settled_ = false;
  std::vector<Member> group_;                    // of the newest settled generation
  std::map<WorkerId, std::uint64_t> done_with_;  // highest phase each member is done with
};

}  // namespace antdt::ctl
