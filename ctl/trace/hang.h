// Why the ranks of a script hang: what each told of itself, compared. Pure.
//
// Ranks call the same collectives in the same order, so each collective of a process group has a
// number that is the same on all ranks. Those that wait in number n wait for whoever has not
// entered it: a rank that does something else, one that called another collective as its n-th, or
// one that does not answer at all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/wire/trace_messages.h"

namespace antdt::ctl::trace {

// One rank, as it was found when it was asked.
struct RankFound {
  WorkerId worker;
  wire::Traced said;                    // last
  double waits_s = 0;                   // in the collective that it is in
  std::optional<wire::StackTold> told;  // nothing: it did not answer
};

struct Hang {
  struct Stack {
    WorkerId worker;
    std::string where;  // "train.py:52 in main"; empty: it did not answer
    std::string stack;
  };
  // A sentence: who never entered what, and who waits; or who called what. told() adds for how
  // long.
  std::string text;
  double waits_s = 0;  // for how long one has waited, when it was found; 0: nobody waits
  std::string advice;  // what to do; often empty
  std::vector<WorkerId> culprits;  // none: nobody is seen to be the cause
  bool all_wait = false;           // every rank is in a collective: it cannot go on by itself
  std::vector<Stack> stacks;       // of all ranks
};

// The whole sentence, `later_s` after the hang was found.
[[nodiscard]] std::string told(const Hang& hang, double later_s = 0);

// `ranks` by worker id. At least one of them is in a collective.
[[nodiscard]] Hang explain_hang(const std::vector<RankFound>& ranks);

// After a rank failed: whether they called different collectives, which explains the failure.
[[nodiscard]] std::optional<Hang> explain_mismatch(const std::vector<RankFound>& ranks);

}  // namespace antdt::ctl::trace
