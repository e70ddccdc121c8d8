// How workers become members of a generation: between a worker and the job daemon.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/wire/message.h"
#include "core/wire/servers/ps_roster.h"

namespace antdt::wire {

// One file of a worker's data, in the order in which its records are counted.
struct DataFile {
  std::string split = {};  // "train" or "eval"
  std::string path = {};
  std::uint64_t bytes = 0;
  std::uint64_t records = 0;
  std::string fingerprint = {};  // fingerprint of the whole content
  bool operator==(const DataFile&) const = default;
  ANTDT_PART {
    v("split", m.split);
    v("path", m.path);
    v("bytes", m.bytes);
    v("records", m.records);
    v("fingerprint", m.fingerprint);
  }
};

// Identifies a worker's data files. It must be the same on every host and agree with RUN/data.json.
// A program that does not know its data leaves everything empty.
struct DataIdentity {
  std::uint64_t train_records = 0;
  std::uint64_t eval_records = 0;
  std::string fingerprint;  // of sizes and contents, in order
  std::string detail;       // the same in words, for messages
  std::vector<DataFile> files = {};
  // what determines how a file is split into records: format, options, version
  std::string built_by = {};
  ANTDT_PART {
    v("train_records", m.train_records);
    v("eval_records", m.eval_records);
    v("fingerprint", m.fingerprint);
    v("detail", m.detail);
    v("files", m.files);
    v("built_by", m.built_by);
  }
};

// The device on which a worker computes.
struct Device {
  std::string name = {};              // device class: equal devices have the same; empty: not known
  std::uint32_t max_micro_batch = 0;  // samples that fit its memory; 0: not known
  bool operator==(const Device&) const = default;
  ANTDT_PART {
    v("name", m.name);
    v("max_micro_batch", m.max_micro_batch);
  }
};

// Which places a worker of parameter servers has committed, or asked its home to apply, in a
// generation that is over for it. Of `phase`, its places up to here may be in the model, and none
// beyond.
struct PsSaid {
  Generation generation;
  std::uint64_t phase = 0;
  std::uint64_t place = 0;
  ANTDT_PART {
    v("generation", m.generation);
    v("phase", m.phase);
    v("place", m.place);
  }
};

// The worker is ready to become a member.
struct Join {
  std::uint32_t pid = 0;
  DataIdentity data;
  bool collective = true;  // false: a loose client, which only fetches and commits
  // Not empty: why the generation in the envelope could not be formed here.
  std::string problem;
  // The newest generation for which this member was ready (it may have settled or not) and whose
  // training state it still holds completely; 0: it holds none, or that of the beginning.
  Generation settled;
  Step step;             // the last step in that state
  std::string endpoint;  // for a parameter server: where workers reach it
  // For parameter servers and their workers: the public key (Z85) of the pair that this process
  // made for itself. Over tcp the process is identified by it. Its secret never leaves the process.
  std::string key;
  Device device;
  PsSaid said = {};
  // Not empty: this member was to read the checkpoint of that generation and could not; says which
  // file and why. Another member will read it, if one has not tried.
  std::string unreadable = {};
  // The cause of `problem` is the disk or the file server: this member, or a server that it asked
  // for rows, cannot read the checkpoint just now.
  bool may_pass = false;
  // It can follow Form::unlike, which trainers of an earlier release do not know.
  bool settles_differences = false;
  // Not empty: its program ends the training with what is trained by now, and why (200 bytes at
  // most are kept).
  std::string ends = {};
  // The cause of `problem` is what the members are (their models differ), so that the next
  // generation will have it, too.
  bool lasts = false;
  // Of a worker of parameter servers: on fewer servers than these, a share of its dense parameters
  // does not fit a message. 0: that is not known.
  std::uint32_t fewest_servers = 0;
  ANTDT_MESSAGE("join") {
    v("pid", m.pid);
    v("data", m.data);
    v("collective", m.collective);
    v("problem", m.problem);
    v("settled", m.settled);
    v("step", m.step);
    v("endpoint", m.endpoint);
    v("key", m.key);
    v("device", m.device);
    v("said", m.said);
    v("unreadable", m.unreadable);
    v("settles_differences", m.settles_differences);
    v("ends", m.ends);
    v("may_pass", m.may_pass);
    v("lasts", m.lasts);
    v("fewest_servers", m.fewest_servers);
  }
};

// Job daemon to each member of a new generation: open an end point.
struct Form {
  std::uint32_t rank = 0;
  std::uint32_t size = 0;
  // A key of the generation for trainers of an earlier release, which prove that they know it.
  // Newer ones use `secret`.
  std::uint64_t key = 0;
  // The settled generation whose training state goes on: a member that settled in it holds that
  // state, and every other member receives it. 0: training begins, from the checkpoint directory
  // `restore` or, if that is empty, from the seeded start.
  Generation base;
  std::string restore;
  // The rank that reads `restore`; all others receive the state from it.
  std::uint32_t reader = 0;
  // 32 bytes that only the members of this generation are told. Each proves to the others that it
  // knows them. They are in no log and on no disk.
  std::string secret = {};
  // The members' devices are of different classes, whose arithmetic may differ in the last bits: if
  // the members' states differ, that of the first rank counts, and the others receive it.
  bool unlike = false;
  ANTDT_MESSAGE("form") {
    v("rank", m.rank);
    v("size", m.size);
    v("key", m.key);
    v("base", m.base);
    v("restore", m.restore);
    v("reader", m.reader);
    v("secret", m.secret);
    v("unlike", m.unlike);
  }
};

// The member's address for the others, in the format of its collective.
struct Address {
  std::string at;
  // Who may share memory with it, and how they reach it. Empty: a trainer of an earlier release.
  std::string sharing = {};
  ANTDT_MESSAGE("address") {
    v("at", m.at);
    v("sharing", m.sharing);
  }
};

struct RosterMember {
  WorkerId worker;
  std::uint32_t rank = 0;
  std::string host;
  std::string at;            // its address
  std::string sharing = {};  // as in Address
  std::string domain = {};   // in which it is (core/domain); "": none
  ANTDT_PART {
    v("worker", m.worker);
    v("rank", m.rank);
    v("host", m.host);
    v("at", m.at);
    v("sharing", m.sharing);
    v("domain", m.domain);
  }
};

// All addresses are known: connect to the members with which you exchange messages.
struct Roster {
  std::vector<RosterMember> members;  // by rank
  ANTDT_MESSAGE("roster") { v("members", m.members); }
};

struct MemberPlace {
  WorkerId worker;
  std::uint64_t place = 0;
  ANTDT_PART {
    v("w", m.worker);
    v("p", m.place);
  }
};

// Consecutive steps of a phase in which every member trained the same number of records as in the
// step before: the content of the members' slots, compressed.
struct StepRun {
  Step first;
  std::uint64_t steps = 0;
  std::uint64_t phase = 0;
  std::vector<std::uint64_t> places;   // by rank, before step `first`
  std::vector<std::uint64_t> records;  // by rank, in each of the steps
  [[nodiscard]] Step last() const { return Step{first.value + steps - 1}; }  // if it has any
  ANTDT_PART {
    v("f", m.first);
    v("n", m.steps);
    v("h", m.phase);
    v("p", m.places);
    v("r", m.records);
  }
};

// Steps of one generation, for the run's history (antdt data which). Runs rise and do not overlap.
// The sender may leave out steps that were recorded.
struct StepHistory {
  // Limit of all `places` and `records` together, so that a message stays small; older runs are
  // left out.
  static constexpr std::size_t kMaxNumbers = 1 << 18;
  Generation generation;
  std::vector<StepRun> runs;
  ANTDT_PART {
    v("g", m.generation);
    v("r", m.runs);
  }
};

// The member is connected and healed: it holds the training state `state_hash` as it was after
// `step`. `places` are those of the members of the base generation after that step, in phase
// `phase`; empty if nothing was trained yet. `history` is that of the base generation; only rank 0
// sends it.
struct Ready {
  Step step;
  std::uint64_t state_hash = 0;
  std::uint64_t phase = 0;
  std::vector<MemberPlace> places;
  StepHistory history{};
  // What carries the bytes between members, in words; empty: the member does not say.
  std::string collective = {};
  // Its state had other bits than that of rank 0, which it received (Form::unlike).
  bool replaced = false;
  ANTDT_MESSAGE("ready") {
    v("step", m.step);
    v("state_hash", m.state_hash);
    v("phase", m.phase);
    v("places", m.places);
    v("history", m.history);
    v("collective", m.collective);
    v("replaced", m.replaced);
  }
};

struct PlanEntry {
  WorkerId worker;
  std::uint32_t micro_batch = 0;   // in samples
  std::uint32_t accumulation = 1;  // micro-batches per step
  ANTDT_PART {
    v("w", m.worker);
    v("m", m.micro_batch);
    v("c", m.accumulation);
  }
};

// How much each worker computes of the next global batches. A worker holds a plan until the
// members' slots agree to switch to it.
struct Plan {
  PlanVersion version;
  std::vector<PlanEntry> entries;
  double rate = 1;  // factor of the job's learning rate from then on
  // Under Gaia, from then on: trainer.gaia.threshold, at the job's full learning rate. Empty: as in
  // the job's file.
  std::optional<double> threshold = {};
  ANTDT_MESSAGE("plan") {
    v("version", m.version);
    v("entries", m.entries);
    v("rate", m.rate);
    v("threshold", m.threshold);
  }
};

// The generation is settled: training goes on after `step`, and all places are 0.
struct Settle {
  Step step;
  Plan plan;
  // Where embedding rows are on servers: these, and the generation of their group.
  std::optional<PsRoster> servers = {};
  Generation group = {};
  ANTDT_MESSAGE("settle") {
    v("step", m.step);
    v("plan", m.plan);
    v("servers", m.servers);
    v("group", m.group);
  }
};

// Stop together at the end of a step, leave the generation and join again, because the membership
// will change. One member that hears this stops all.
struct Regroup {
  std::string reason;
  ANTDT_MESSAGE("regroup") { v("reason", m.reason); }
};

// The generation is over (a member left or was lost): abort collectives.
struct Abort {
  std::string reason;
  ANTDT_MESSAGE("abort") { v("reason", m.reason); }
};

}  // namespace antdt::wire
