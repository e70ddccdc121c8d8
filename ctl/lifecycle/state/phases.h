// The phases of a job (train 0, eval 0, train 1, …, finish), which of them is open, and its group:
// the members of the newest settled generation. A phase is over when every record of it is
// committed in the ledger (it is drained) and each member has reported that it is done with it.
//
// The training data may have grown while the job was stopped. An epoch that was opened once keeps
// its number of records, also when it is opened again in a later lineage, because positions of its
// order are known by number; the others have all that the data have now.
//
// The workers' program may end the training before its last epoch: then the epoch of the open phase
// is the last, and it is evaluated if anything of it was trained.
//
// Durable: the number of the open phase, the sizes of the epochs, and the ending.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/wire/training_messages.h"

namespace antdt::ctl {

// The training ends earlier than the job said.
struct EarlyEnd {
  std::uint64_t finish = 0;  // number of the phase "finish"
  std::uint32_t epochs = 0;  // in which something is trained
  std::string reason;
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("finish", m.finish);
    v("epochs", m.epochs);
    v("reason", m.reason);
  }
};

class Phases {
 public:
  struct Shape {
    std::uint32_t epochs = 1;
    std::uint64_t train_records = 0;  // as the data are now
    std::uint64_t eval_records = 0;
    std::uint64_t began_with = 0;  // training records when the run began; 0: they have not grown
  };
  // What the epochs had of the training data when they were opened.
  struct Sizes {
    struct Growth {
      Epoch from;  // the first epoch that has so many records
      std::uint64_t records = 0;
      template <class Self, class V>
      static void fields(Self& m, V& v) {
        v("from", m.from);
        v("records", m.records);
      }
    };
    std::uint32_t opened = 0;  // so many epochs, from the first, were opened
    std::vector<Growth> growths;
    template <class Self, class V>
    static void fields(Self& m, V& v) {
      v("opened", m.opened);
      v("growths", m.growths);
    }
  };
  explicit Phases(const Shape& shape) : shape_(shape) {}

  [[nodiscard]] std::uint64_t number() const { return number_; }  // 0: none has opened yet
  [[nodiscard]] std::uint64_t last() const;                       // number of the phase "finish"
  // The open phase (`what` is kNone if none is open).
  [[nodiscard]] wire::PhaseStart open() const { return describe(number_); }
  [[nodiscard]] wire::PhaseStart describe(std::uint64_t phase) const;
  void open(std::uint64_t phase);
  // The open phase, of training or evaluation, is of the last epoch.
  void end(std::string reason);
  [[nodiscard]] const std::optional<EarlyEnd>& ending() const { return ending_; }
  // Training goes on from a checkpoint of this phase, which has so many records there; the group is
  // empty until one settles. `ended`: why the program has ended the training in it; empty: it goes
  // on.
  void go_back_to(std::uint64_t phase, std::uint64_t records, std::string ended = {});
  // `group`: of the settled generation, if one is settled.
  void restore(std::uint64_t phase, Sizes sizes, std::optional<EarlyEnd> ending,
               std::optional<std::vector<Member>> group);
  [[nodiscard]] const Sizes& sizes() const { return sizes_; }

  // The ledger reports that the open phase is drained, with so many records committed.
  void drain(std::uint64_t trained);
  [[nodiscard]] bool drained() const { return drained_; }
  void done(WorkerId worker, std::uint64_t phase);
  // whether the worker is done with the open phase
  [[nodiscard]] bool is_done(WorkerId worker) const;

  void settle(std::vector<Member> group);
  void unsettle() { settled_ = false; }
  void disband();
  void leave(Member member) { std::erase(group_, member); }
  [[nodiscard]] bool settled() const { return settled_; }
  [[nodiscard]] const std::vector<Member>& group() const { return group_; }
  [[nodiscard]] bool in_group(Member member) const;

 private:
  [[nodiscard]] std::uint64_t began_with() const {
    return shape_.began_with != 0 ? shape_.began_with : shape_.train_records;
  }
  [[nodiscard]] std::uint64_t records_of(Epoch epoch) const;
  void keep_size(Epoch epoch, std::uint64_t records);

  Shape shape_;
  Sizes sizes_;
  std::optional<EarlyEnd> ending_;
  std::uint64_t number_ = 0;
  bool drained_ = false;
  bool settled_ = false;
  std::vector<Member> group_;                    // members of the newest settled generation
  std::map<WorkerId, std::uint64_t> done_with_;  // the highest phase with which each member is done
};

}  // namespace antdt::ctl
