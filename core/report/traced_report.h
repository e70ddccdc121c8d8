// What a job tells of a script that is traced (docs/torchrun): parts of core/report/job_report.h,
// which says how fields are named.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace antdt::report {

// Of a script that is traced: what one of its steps takes, over the transient window.
struct StepTime {
  double data_ms = 0, compute_ms = 0, wait_ms = 0;
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("data_ms", m.data_ms);
    v("compute_ms", m.compute_ms);
    v("wait_ms", m.wait_ms);
  }
};

// Of a script that is traced: how far it is.
struct TracedScript {
  std::uint64_t ranks = 0;  // that a tracer tells of
  bool samples_known = false;
  double steps_per_second = 0;
  std::string runs = {};  // "torch 2.5.1, Python 3.11.2"
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("ranks", m.ranks);
    v("samples_known", m.samples_known);
    v("steps_per_second", m.steps_per_second);
    v("runs", m.runs);
  }
};

// A rank as it stood when the ranks hung.
struct RankStack {
  std::string worker = {};
  std::string where = {};  // "train.py:52 in main"
  std::string stack = {};  // of all its threads, as Python writes it; empty: it did not answer
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("worker", m.worker);
    v("where", m.where);
    v("stack", m.stack);
  }
};

// Of a script that is traced: why its ranks wait for one another.
struct HangFound {
  double time_s = 0;
  bool over = false;      // they went on
  std::string text = {};  // a sentence
  std::vector<std::string> culprits = {};
  std::vector<RankStack> stacks = {};
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("time_s", m.time_s);
    v("over", m.over);
    v("text", m.text);
    v("culprits", m.culprits);
    v("stacks", m.stacks);
  }
};

}  // namespace antdt::report
