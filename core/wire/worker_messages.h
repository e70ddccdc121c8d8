// The beginning and the end of a worker, and what it measures meanwhile: between a worker and its
// agent, or the job daemon.
#pragma once

#include <cstdint>
#include <string>

#include "core/wire/message.h"

namespace antdt::wire {

// Agent to worker, in answer to Hello.
struct WorkerWelcome {
  std::uint32_t version = 0;
  std::string host;
  std::string run_dir;      // where this host keeps the run's files
  std::string config_json;  // the job's [job], [data], [batch], [trainer], ... as JSON
  ANTDT_MESSAGE("worker-welcome") {
    v("version", m.version);
    v("host", m.host);
    v("run_dir", m.run_dir);
    v("config_json", m.config_json);
  }
};

// Where a worker's wall time went, in seconds since its process started.
struct TimeAccount {
  double compute = 0, data = 0, collective_wait = 0, shard_wait = 0, reconfigure = 0,
         checkpoint = 0, startup = 0, other = 0;
  ANTDT_PART {
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

// What a worker measured of some batches since its last report. One-way.
// Speed is samples / (data_us + compute_us); never step time. How long its link takes
// there and back is measured apart from them: a batch waits for links of others, too.
struct Report {
  std::uint32_t batches = 0;
  std::uint64_t samples = 0;
  std::uint64_t data_us = 0;
  std::uint64_t compute_us = 0;
  std::uint64_t wait_us = 0;        // in the collective
  std::uint32_t skipped = 0;        // batches not counted here: first ones after a plan change
  std::uint64_t samples_total = 0;  // trained by this attempt so far
  TimeAccount account;              // so far
  // Said at least once a second by the message thread: the last step that the
  // training thread completed, and what it is doing now (a name of TimeAccount).
  Step step;
  std::string activity;
  // How long a message there and its answer were on the way: to the next rank of the
  // ring, or to a parameter server. Their number, their sum and the least of them.
  std::uint32_t hops = 0;
  std::uint64_t hop_us = 0;
  std::uint64_t hop_least_us = 0;
  // What a drill asks the agent for: the process is to run in so many thousandths of
  // the time from now on. 0: in all of it.
  std::uint32_t throttle_permille = 0;
  // What the process reads, writes or receives now that may take long, and how far it is:
  // "writing the checkpoint", or another of the words in ctl/processes/io_watch.h; empty: nothing.
  // Bytes count when they are on the disk, or in memory. `io_path` is where they lie.
  std::string io = {};
  std::string io_path = {};
  std::uint64_t io_done_bytes = 0;
  std::uint64_t io_total_bytes = 0;
  ANTDT_MESSAGE("report") {
    v("batches", m.batches);
    v("samples", m.samples);
    v("data_us", m.data_us);
    v("compute_us", m.compute_us);
    v("wait_us", m.wait_us);
    v("skipped", m.skipped);
    v("samples_total", m.samples_total);
    v("account", m.account);
    v("step", m.step);
    v("activity", m.activity);
    v("hops", m.hops);
    v("hop_us", m.hop_us);
    v("hop_least_us", m.hop_least_us);
    v("throttle_permille", m.throttle_permille);
    v("io", m.io);
    v("io_path", m.io_path);
    v("io_done_bytes", m.io_done_bytes);
    v("io_total_bytes", m.io_total_bytes);
  }
};

// Finish the step, then leave. `code` is what to exit with.
struct Leave {
  std::string reason;
  std::uint32_t code = 0;
  ANTDT_MESSAGE("leave") {
    v("reason", m.reason);
    v("code", m.code);
  }
};

// The last message of a worker that ends in good order.
struct Bye {
  std::uint64_t samples_total = 0;
  TimeAccount account;
  std::string error;  // not empty: why it gives up
  ANTDT_MESSAGE("bye") {
    v("samples_total", m.samples_total);
    v("account", m.account);
    v("error", m.error);
  }
};

}  // namespace antdt::wire
