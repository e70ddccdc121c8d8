// The part of a job's report about what a worker's time and steps went to. core/report/job_report.h
// says how fields are named.
#pragma once

#include <cstdint>

namespace antdt::report {

// How a worker's wall time was spent, in seconds.
struct TimeSpent {
  double compute = 0, data = 0, collective_wait = 0, shard_wait = 0, reconfigure = 0,
         checkpoint = 0, startup = 0, other = 0;
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("compute", m.compute);
    v("data", m.data);
    v("collective_wait", m.collective_wait);
    v("shard_wait", m.shard_wait);
    v("reconfigure", m.reconfigure);
    v("checkpoint", m.checkpoint);
    v("startup", m.startup);
    v("other", m.other);
  }
};

// The exchanges of a worker's replica of the dense parameters with their centre on the servers
// (trainer.sync = "shadow-easgd").
struct Exchanges {
  std::uint64_t count = 0;
  double mean_gap_steps = 0;  // steps of the worker between two exchanges
  double mean_gap_ms = 0;     // time between two exchanges
  double waited_seconds = 0;  // for which training waited for exchanges
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("count", m.count);
    v("mean_gap_steps", m.mean_gap_steps);
    v("mean_gap_ms", m.mean_gap_ms);
    v("waited_seconds", m.waited_seconds);
  }
};

// What the domain of a worker sent the other domains of its updates (trainer.sync = "gaia"). The
// same for all members of a domain, except for what one of them was not there for.
struct Updates {
  std::uint64_t messages = 0;
  std::uint64_t whole = 0;  // of these: with everything that was pending
  double sent_share = 0;    // of the elements that the messages were about
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("messages", m.messages);
    v("whole", m.whole);
    v("sent_share", m.sent_share);
  }
};

// In how many steps the gradient of an embedding table was summed over the workers in which form.
struct EmbeddingSteps {
  std::uint64_t rows = 0, whole_table = 0;
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("rows", m.rows);
    v("whole_table", m.whole_table);
  }
};

}  // namespace antdt::report
