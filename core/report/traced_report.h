// The part of a job's report about a traced script (docs/torchrun). core/report/job_report.h says
// how fields are named.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace antdt::report {

// The duration of a traced script's step and its parts, over the transient window.
struct StepTime {
  double data_ms = 0, compute_ms = 0, wait_ms = 0;
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("data_ms", m.data_ms);
    v("compute_ms", m.compute_ms);
    v("wait_ms", m.wait_ms);
  }
};

// The progress of a traced script.
struct TracedScript {
  std::uint64_t ranks = 0;  // how many ranks have a tracer that reports
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

// What a rank was doing when the ranks hung.
struct RankStack {
  std::string worker = {};
  std::string where = {};  // "train.py:52 in main"
  std::string stack = {};  // the stacks of all its threads, as Python writes them; empty: it did
                           // not answer
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("worker", m.worker);
    v("where", m.where);
    v("stack", m.stack);
  }
};

// Why the ranks of a traced script wait for one another.
struct HangFound {
  double time_s = 0;
  bool over = false;      // whether they went on
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
