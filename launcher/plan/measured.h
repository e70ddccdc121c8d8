// What a plan is computed from. Times are in seconds, sizes in bytes, batches in samples.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/plan/strategies.h"

namespace antdt::launcher::plan {

// The slowest link between two processes that exchange messages in every step.
struct Link {
  double latency_s = 0;    // of a message, one way
  double bytes_per_s = 0;  // 0: no bound
  // A drill holds back the sender of each message, so that messages of one sender follow one
  // another. On a network they are on their way together.
  bool held_back = false;
  bool answers_held_back = false;  // servers' answers, too
  std::string name = {};           // which link it is: "10.0.0.1:7700 to 10.0.0.2:7700"
};

// A value that was measured for some numbers of samples, in rising order of them.
struct Point {
  double samples = 0;
  double value = 0;
};
using Curve = std::vector<Point>;
// Between points and outside of them on the line through the nearest two; in proportion to samples
// if there is one point only. 0 without points.
[[nodiscard]] double at(const Curve& curve, double samples);

struct ModelSize {
  std::vector<double> sums;  // bytes of each sum of gradients in a step, without the table's
  double table_rows = 0;     // 0: it has no embedding table
  double row_bytes = 0;      // of a row's gradient, without its number
  Curve rows_of_batch = {};  // different rows that a batch needs
  double mixed = 1;          // of what replicas mix: 3 with Adam, whose moments are mixed, too
  [[nodiscard]] double dense_bytes() const;
  [[nodiscard]] double table_bytes() const { return table_rows * row_bytes; }
};

// A short run of the job itself on one host.
struct Trial {
  Strategy strategy{};
  std::uint32_t workers = 1;
  std::uint32_t servers = 0;
  double batch = 0;          // samples of each worker
  double step_s = 0;         // time in which all workers together train workers x batch samples
  double own_s = 0;          // mean time of a worker's own batch: data and computing
  double longest_own_s = 0;  // of the slowest worker
  std::uint64_t steps = 0;   // how many were measured
  double error = 0;          // standard error of step_s, relative; 0: not known
};

// Workers of one domain that share the memory of a host. The first of them, their leader, exchanges
// messages with other groups.
struct Group {
  std::uint32_t domain = 0;  // an index of DomainLinks::names
  std::uint32_t workers = 0;
};
// Of a job whose workers are in several domains.
struct DomainLinks {
  std::vector<std::string> names;
  std::vector<Group> groups;            // in the order of ranks
  std::vector<std::uint32_t> of_hosts;  // the domain of each of Measured::hosts
  std::optional<Link> within;           // the slowest one; empty: no domain has several hosts
  Link between;                         // the slowest one
};

// What domains send one another under gaia.
struct UpdateSizes {
  double whole_every = 50;  // steps from one whole exchange to the next
  // Bytes of a message that is not whole, relative to those of all parameters; empty: it was not
  // measured.
  std::optional<double> share = std::nullopt;
  std::uint64_t messages = 0;  // of which that is the mean
};

struct HostLoad {
  std::string name;
  double cpus = 0;
  std::uint32_t workers = 0;
};
// A number of servers, and how many of them each host gets, in the order of Measured::hosts.
struct ServerPlacement {
  std::uint32_t count = 0;
  std::vector<std::uint32_t> by_host;
};

struct Measured {
  double global_batch = 0;
  std::vector<HostLoad> hosts;  // those that get workers or servers
  std::vector<ServerPlacement> servers;
  // Between the hosts, or between all processes if a drill slows their links. Empty: the workers
  // are on one host, whose own links are part of the trials.
  std::optional<Link> link;
  std::optional<DomainLinks> domains = std::nullopt;
  UpdateSizes updates = {};
  std::optional<Strategy> asked = std::nullopt;  // trainer.sync of the job
  std::string link_unknown = {};  // why the links between the hosts could not be measured
  ModelSize model;
  Curve alone;  // time of a step of one worker that is alone on its host, by its batch
  std::vector<Trial> trials;
  std::map<Strategy, std::string> impossible;  // why a job cannot use it
  std::vector<std::string> notes;              // what was left out of what was measured

  [[nodiscard]] std::uint32_t workers() const;
  [[nodiscard]] std::uint32_t most_workers_of_a_host() const;
  [[nodiscard]] std::uint32_t hosts_with_workers() const;
  [[nodiscard]] double batch() const;  // of a worker
};

}  // namespace antdt::launcher::plan
