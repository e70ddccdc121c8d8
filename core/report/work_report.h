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
// (trainer.sync = "shadow-…").
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
  // Their bytes and those of replicas that visited other domains, by those of the messages with
  // every element.
  double bytes_share = 0;
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("messages", m.messages);
    v("whole", m.whole);
    v("sent_share", m.sent_share);
    v.later("bytes_share", m.bytes_share);
  }
};

// What the newest visit of replicas in other domains found (solution skew-scout).
struct VisitFound {
  std::uint64_t step = 0;
  double accuracy_loss = 0;  // of the guests, as a fraction of the records: 0.05 is 5 points
  double bytes_share = 0;    // since the visit before, as in Updates
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("step", m.step);
    v("accuracy_loss", m.accuracy_loss);
    v("bytes_share", m.bytes_share);
  }
};

// How large a part of a parameter's value an update must be to be sent to other domains
// (trainer.sync = "gaia"), at the job's full learning rate.
struct UpdateThreshold {
  double in_force = 0;
  double of_job = 0;  // in job.toml
  std::optional<VisitFound> visit = {};
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("in_force", m.in_force);
    v("of_job", m.of_job);
    v.if_any("visit", m.visit);
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
