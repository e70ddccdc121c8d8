// The beginning and the end of a worker, and its measurements: between a worker and its agent, or
// the job daemon.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/wire/message.h"

namespace antdt::wire {

// Agent to worker, in answer to Hello.
struct WorkerWelcome {
  std::uint32_t version = 0;
  std::string host;
  std::string run_dir;      // the directory of the run's files on this host
  std::string config_json;  // the job's [job], [data], [batch], [trainer], ... as JSON
  ANTDT_MESSAGE("worker-welcome") {
    v("version", m.version);
    v("host", m.host);
    v("run_dir", m.run_dir);
    v("config_json", m.config_json);
  }
};

// How a worker's wall time was spent, in seconds since its process started.
struct TimeAccount {
  double compute = 0, data = 0, collective_wait = 0, shard_wait = 0, reconfigure = 0,
         checkpoint = 0, startup = 0, other = 0;
  friend bool operator==(const TimeAccount&, const TimeAccount&) = default;
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

// In how many steps a member of a collective summed the gradient of an embedding table with the
// others, and how. Zeros where it had no choice: no table, no other member, or
// trainer.embedding_gradients = "dense".
struct TableSums {
  std::uint64_t as_rows = 0;   // only the rows that were in a batch were sent
  std::uint64_t as_whole = 0;  // the whole table was sent
  ANTDT_PART {
    v("as_rows", m.as_rows);
    v("as_whole", m.as_whole);
  }
};

// What a worker on one host exchanged with the workers on another one, or on its own, that are in
// one domain.
struct HostTraffic {
  std::string from;  // names of the hosts
  std::string to;    // "": further hosts
  std::uint64_t sent_bytes = 0;
  std::uint64_t received_bytes = 0;
  std::uint64_t waited_us = 0;  // for bytes from there, or until bytes could be sent there
  std::string from_domain = {};
  std::string to_domain = {};
  ANTDT_PART {
    v("from", m.from);
    v("to", m.to);
    v("sent_bytes", m.sent_bytes);
    v("received_bytes", m.received_bytes);
    v("waited_us", m.waited_us);
    v("from_domain", m.from_domain);
    v("to_domain", m.to_domain);
  }
};

// What a worker sent in collectives, in bytes since its process started, by what it was sent for
// (trainer/collective/link_ledger.h), and what it exchanged by hosts.
struct TrafficSums {
  std::uint64_t gradients = 0, parameters = 0, slots = 0, healing = 0, other = 0;
  std::vector<HostTraffic> hosts;
  std::uint64_t in_memory = 0;  // of these: through the memory that the members of a host share
  [[nodiscard]] std::uint64_t bytes() const {
    return gradients + parameters + slots + healing + other;
  }
  ANTDT_PART {
    v("gradients", m.gradients);
    v("parameters", m.parameters);
    v("slots", m.slots);
    v("healing", m.healing);
    v("other", m.other);
    v("hosts", m.hosts);
    v("in_memory", m.in_memory);
  }
};

// How a worker's replica of the dense parameters was exchanged with their centre on the servers
// (trainer.sync = "shadow-…"). Zeros under any other.
struct ShadowSums {
  std::uint64_t exchanges = 0;
  std::uint64_t steps = 0;      // between the exchanges
  std::uint64_t gap_us = 0;     // time between the exchanges
  std::uint64_t waited_us = 0;  // for which training waited for exchanges
  bool operator==(const ShadowSums&) const = default;
  ANTDT_PART {
    v("exchanges", m.exchanges);
    v("steps", m.steps);
    v("gap_us", m.gap_us);
    v("waited_us", m.waited_us);
  }
};

// What the members of a worker's domain sent the other domains of its updates (trainer.sync =
// "gaia"). Zeros under any other.
struct UpdateSums {
  std::uint64_t messages = 0;
  std::uint64_t whole = 0;     // of these: with everything that was pending
  std::uint64_t elements = 0;  // that the messages were about
  std::uint64_t sent = 0;      // of these: that were significant
  // To all other domains together: of the messages and of copies of the replica that visited one;
  // of the messages, if every element were in them.
  std::uint64_t bytes = 0;
  std::uint64_t dense_bytes = 0;
  bool operator==(const UpdateSums&) const = default;
  ANTDT_PART {
    v("messages", m.messages);
    v("whole", m.whole);
    v("elements", m.elements);
    v("sent", m.sent);
    v("bytes", m.bytes);
    v("dense_bytes", m.dense_bytes);
  }
};

// What a worker measured of the batches since its last report. One-way. Speed is samples / (data_us
// + compute_us), never step time. The round-trip time of its link is measured separately, because a
// batch also waits for other workers' links.
struct Report {
  std::uint32_t batches = 0;
  std::uint64_t samples = 0;
  std::uint64_t data_us = 0;
  std::uint64_t compute_us = 0;
  std::uint64_t wait_us = 0;  // waiting in the collective
  // batches that are not counted here: the first ones after a plan change
  std::uint32_t skipped = 0;
  std::uint64_t samples_total = 0;  // trained by this attempt so far
  TimeAccount account;              // so far
  // Sent at least once a second by the message thread: the last step that the training thread
  // completed, and what that thread is doing now (a name of TimeAccount).
  Step step;
  std::string activity;
  // The round-trip time of messages to the next rank of the ring, or to a parameter server: how
  // many were measured, their sum, and the least.
  std::uint32_t hops = 0;
  std::uint64_t hop_us = 0;
  std::uint64_t hop_least_us = 0;
  // A fault injection for the agent to carry out: from now on the process may run for this many
  // thousandths of the time. 0: all of it.
  std::uint32_t throttle_permille = 0;
  // What the process reads, writes or receives now that may take long, and how far it is: "writing
  // the checkpoint", or another of the phrases in ctl/processes/io_watch.h; empty: nothing. Bytes
  // count when they are on the disk, or in memory. `io_path` is where they are.
  std::string io = {};
  std::string io_path = {};
  std::uint64_t io_done_bytes = 0;
  std::uint64_t io_total_bytes = 0;
  // The most samples of a micro-batch that fit the memory of the worker's device, as it found out
  // by running out of it; 0: not known.
  std::uint32_t max_micro_batch = 0;
  TableSums table_sums = {};  // by this attempt so far
  // Of samples_total: those of other workers' parts, which this one computed in shared steps.
  std::uint64_t samples_of_others = 0;
  // So far; empty in most reports, since once a second is enough.
  TrafficSums traffic = {};
  ShadowSums shadow = {};   // by this attempt so far
  UpdateSums updates = {};  // by this attempt so far
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
    v("max_micro_batch", m.max_micro_batch);
    v("table_sums", m.table_sums);
    v("samples_of_others", m.samples_of_others);
    v("traffic", m.traffic);
    v("shadow", m.shadow);
    v("updates", m.updates);
  }
};

// Finish the step, then leave. `code` is the exit code to use.
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
  TableSums table_sums = {};
  std::uint64_t samples_of_others = 0;  // as in Report
  TrafficSums traffic = {};
  ShadowSums shadow = {};
  UpdateSums updates = {};
  ANTDT_MESSAGE("bye") {
    v("samples_total", m.samples_total);
    v("account", m.account);
    v("error", m.error);
    v("table_sums", m.table_sums);
    v("samples_of_others", m.samples_of_others);
    v("traffic", m.traffic);
    v("shadow", m.shadow);
    v("updates", m.updates);
  }
};

}  // namespace antdt::wire
