// Observations of a script that knows nothing of AntDT, from inside its process: between the tracer
// there (python/antdt/trace) and the job daemon. The duration of its steps is in Report.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/wire/message.h"

namespace antdt::wire {

// The script's progress, sent once a second, and sooner when a collective begins. One-way.
struct Traced {
  std::uint32_t rank = 0;
  std::uint32_t world_size = 0;
  Step steps;  // steps of its optimizer
  std::uint64_t samples = 0;
  bool samples_known = false;     // whether a data loader told how large its batches are
  std::uint64_t collectives = 0;  // how many collectives it has entered
  std::string inside;             // the collective that it is in now, such as "all_reduce"; empty:
                                  // none
  std::string where;              // the place of that call: "train.py:41 in main"
  std::uint64_t inside_ms = 0;    // how long it has been inside
  std::uint64_t cpu_ms = 0;       // processor time that the process has used so far
  std::string runs;               // "torch 2.5.1, Python 3.11.2"
  ANTDT_MESSAGE("traced") {
    v("rank", m.rank);
    v("world_size", m.world_size);
    v("steps", m.steps);
    v("samples", m.samples);
    v("samples_known", m.samples_known);
    v("collectives", m.collectives);
    v("inside", m.inside);
    v("where", m.where);
    v("inside_ms", m.inside_ms);
    v("cpu_ms", m.cpu_ms);
    v("runs", m.runs);
  }
};

// Job daemon to tracer: report your stack. A number that is not higher requests nothing new.
struct StackWanted {
  std::uint64_t number = 0;
  ANTDT_MESSAGE("stack-wanted") { v("number", m.number); }
};

// One collective that a rank entered.
struct TracedCall {
  std::string group;         // ranks of a process group, as "0,2"; empty: all ranks
  std::uint64_t number = 0;  // number among the group's collectives, from 1
  std::string name;          // "all_reduce float32[4096]"
  std::string where;         // "train.py:41 in main"
  ANTDT_PART {
    v("group", m.group);
    v("number", m.number);
    v("name", m.name);
    v("where", m.where);
  }
  bool operator==(const TracedCall&) const = default;
};

// The answer to StackWanted.
struct StackTold {
  std::uint64_t number = 0;
  bool inside = false;            // whether it is inside the last of `calls` now
  std::string where;              // the main thread's place in the script: "train.py:52 in main"
  std::string stack;              // the stacks of all threads, as Python writes them
  std::vector<TracedCall> calls;  // the newest calls, oldest first
  ANTDT_MESSAGE("stack-told") {
    v("number", m.number);
    v("inside", m.inside);
    v("where", m.where);
    v("stack", m.stack);
    v("calls", m.calls);
  }
};

}  // namespace antdt::wire
