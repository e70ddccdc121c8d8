// Every message between the processes of AntDT, once.
//
// A packet has two frames: an Envelope and a body. The envelope says what the
// body is, for whom and from whom, so that an agent relays without reading
// bodies. docs/wire-protocol.md tells the conversations; the comments here say
// what a field means. Units are in the names; times are durations of the
// sender's monotonic clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.h"
#include "core/names.h"

namespace antdt::wire {

// The range of protocol versions this build speaks.
inline constexpr std::uint32_t kMinVersion = 1;
inline constexpr std::uint32_t kMaxVersion = 1;

#define ANTDT_MESSAGE(kind)                       \
  static constexpr std::string_view kKind = kind; \
  template <class Self, class V>                  \
  static void fields([[maybe_unused]] Self& m, [[maybe_unused]] V& v)
#define ANTDT_PART               \
  template <class Self, class V> \
  static void fields(Self& m, V& v)

// ---------------------------------------------------------------- envelope

struct Envelope {
  std::string kind;       // kKind of the body
  std::string job;        // job id; empty where no job is meant
  WorkerId worker;        // the worker that sent this, or whom it is for
  Attempt attempt;        // its attempt; 0: not about a worker
  Generation generation;  // the membership it belongs to; 0: none
  std::uint64_t seq = 0;  // numbers requests of one (worker, attempt) from 1; a reply repeats it
  ANTDT_PART {
    v("k", m.kind);
    v("j", m.job);
    v("w", m.worker);
    v("a", m.attempt);
    v("g", m.generation);
    v("s", m.seq);
  }
};

// Both frames of a message and the link it came by.
struct Packet {
  std::string peer;  // routing id on a ROUTER socket; empty on a DEALER
  std::string user;  // what NameOfKey says of the authenticated key; empty on ipc
  std::string envelope;
  std::string body;
};

// ------------------------------------------------------------- every link

// First message of whoever connects.
struct Hello {
  std::uint32_t min_version = kMinVersion;
  std::uint32_t max_version = kMaxVersion;
  std::string software;  // "antdt-jobd 0.1.0", for messages to people
  ANTDT_MESSAGE("hello") {
    v("min_version", m.min_version);
    v("max_version", m.max_version);
    v("software", m.software);
  }
};

// Why a request cannot be granted.
enum class RefusalCode : std::uint8_t {
  kOther,    // a reason that only a newer peer knows
  kVersion,  // no protocol version in common
  kStale,    // of an attempt, an incarnation or a generation that is over
  kUnknown,  // the job, the process or the message is not known here
  kBusy,     // not now
  kInvalid,  // the request cannot be understood, or makes no sense
  kFull,     // there is no room for it
  kUser,     // the user whose job it is must not run anything here
  kIo,       // files: the disk failed
  kMissing,  // files: there is no such file
  kCorrupt,  // the content is not what it must be
};
constexpr auto names_of(RefusalCode) {
  return names("other", "version", "stale", "unknown", "busy", "invalid", "full", "user", "io",
               "missing", "corrupt");
}
constexpr RefusalCode unknown_name(RefusalCode) { return RefusalCode::kOther; }

// The answer to a request that cannot be granted.
struct Refused {
  RefusalCode code = RefusalCode::kOther;
  std::string reason;
  ANTDT_MESSAGE("refused") {
    v("code", m.code);
    v("reason", m.reason);
  }
};

// ------------------------------------------------- data: shards and grants

// A part of a shard in the shard's own order. Position p of a shard (0 <= p <
// shard_records) is record shard_first + Permutation(shard_records,
// order_seed)(p) of the data set when `shuffled`, else shard_first + p.
struct Piece {
  std::uint64_t shard = 0;          // index of the shard, in file order
  std::uint64_t shard_first = 0;    // its first record
  std::uint64_t shard_records = 0;  // its size, in records
  std::uint64_t from = 0;           // positions [from, to) of its order
  std::uint64_t to = 0;
  std::uint64_t order_seed = 0;
  bool shuffled = false;
  ANTDT_PART {
    v("i", m.shard);
    v("b", m.shard_first);
    v("n", m.shard_records);
    v("f", m.from);
    v("t", m.to);
    v("o", m.order_seed);
    v("x", m.shuffled);
  }
};

// A partial evaluation of some records, merged by addition. Scores of binary
// tasks are counted in kScoreBins bins of the predicted probability.
struct EvalPartial {
  static constexpr std::uint32_t kScoreBins = 16384;
  std::uint64_t records = 0;
  double loss_sum = 0;                   // natural-log loss, summed over records
  std::uint64_t correct = 0;             // classification: right at argmax (or 0.5)
  std::vector<std::uint32_t> bins;       // which bins are not empty, rising
  std::vector<std::uint64_t> negatives;  // per listed bin
  std::vector<std::uint64_t> positives;
  ANTDT_PART {
    v("records", m.records);
    v("loss_sum", m.loss_sum);
    v("correct", m.correct);
    v("bins", m.bins);
    v("negatives", m.negatives);
    v("positives", m.positives);
  }
};

// Worker to job daemon: commits what is stable and asks for more. One is
// outstanding per (worker, attempt); a retry repeats the envelope's seq.
struct Fetch {
  std::uint64_t phase = 0;  // number of the phase this is about (PhaseStart)
  std::uint64_t place = 0;  // records consumed, in order, since the phase or the generation began
  std::uint64_t want = 0;   // records wanted now; 0: only commits
  std::vector<EvalPartial>
      partials;  // evaluation: what the records up to `place` gave since the last fetch
  // Of a step that was closed without them (backup workers): so many records from
  // `place` on go back, and to another worker first. Once it is answered those behind
  // them have their places; until then nothing behind them may be committed.
  std::uint64_t late = 0;
  ANTDT_MESSAGE("fetch") {
    v("phase", m.phase);
    v("place", m.place);
    v("want", m.want);
    v("partials", m.partials);
    v("late", m.late);
  }
};

enum class GrantStatus : std::uint8_t {
  kGranted,  // pieces hold something
  kWait,     // others hold records that may come back: ask again after retry_ms
  kEnd,      // every record of the phase is committed; a later phase may be open already
  kStale,    // the request was of another generation or attempt: it changed nothing
};
constexpr auto names_of(GrantStatus) { return names("granted", "wait", "end", "stale"); }

// The answer to Fetch.
struct Grants {
  std::uint64_t phase = 0;
  GrantStatus status = GrantStatus::kGranted;
  std::vector<Piece> pieces;
  std::uint32_t retry_ms = 0;
  // Members of a collective: which records made the steps of this generation up
  // to this one is kept; they need not be told again (StepHistory). 0: none.
  Step recorded{};
  // Recalls up to this number are over, answered or not: one that comes late is not
  // to be obeyed, because what was granted since is not counted against it.
  std::uint64_t recalls_over = 0;
  ANTDT_MESSAGE("grants") {
    v("phase", m.phase);
    v("status", m.status);
    v("pieces", m.pieces);
    v("retry_ms", m.retry_ms);
    v("recorded", m.recorded);
    v("recalls_over", m.recalls_over);
  }
};

// Job daemon to worker: give back what you have not started past `keep_to`
// (records since the generation began). Answered by Recalled, with the same
// seq, with where your grants end now, which is never less than what you have
// started, and how many records, the last of them, that takes away. Not answered
// while a Fetch is outstanding: its answer may bring grants that neither counts,
// nor after an answer that says it is over (Grants). It is sent again.
struct Recall {
  std::uint64_t phase = 0;
  std::uint64_t keep_to = 0;
  ANTDT_MESSAGE("recall") {
    v("phase", m.phase);
    v("keep_to", m.keep_to);
  }
};
struct Recalled {
  std::uint64_t phase = 0;
  std::uint64_t end = 0;
  // This is what counts, where it is there (a client of an earlier release has the end
  // alone): it stays true when records go back from before the end (Fetch::late).
  std::optional<std::uint64_t> records = {};
  ANTDT_MESSAGE("recalled") {
    v("phase", m.phase);
    v("end", m.end);
    v("records", m.records);
  }
};

// -------------------------------------------------------- worker and agent

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

// --------------------------------------------- membership: worker, job daemon

// One file of a worker's data, in the order in which its records are counted.
struct DataFile {
  std::string split = {};  // "train" or "eval"
  std::string path = {};
  std::uint64_t bytes = 0;
  std::uint64_t records = 0;
  std::string fingerprint = {};  // of the whole content
  bool operator==(const DataFile&) const = default;
  ANTDT_PART {
    v("split", m.split);
    v("path", m.path);
    v("bytes", m.bytes);
    v("records", m.records);
    v("fingerprint", m.fingerprint);
  }
};

// What a worker's data files are; must be the same on every host, and what RUN/data.json
// says. A program that does not know leaves all of it empty.
struct DataIdentity {
  std::uint64_t train_records = 0;
  std::uint64_t eval_records = 0;
  std::string fingerprint;  // of sizes and contents, in order
  std::string detail;       // the same in words, for messages
  std::vector<DataFile> files = {};
  std::string built_by = {};  // what decides how a file becomes records: format, options, version
  ANTDT_PART {
    v("train_records", m.train_records);
    v("eval_records", m.eval_records);
    v("fingerprint", m.fingerprint);
    v("detail", m.detail);
    v("files", m.files);
    v("built_by", m.built_by);
  }
};

// What a worker computes on.
struct Device {
  std::string name = {};              // of its class: alike devices have the same; empty: not known
  std::uint32_t max_micro_batch = 0;  // samples that fit its memory; 0: not known
  bool operator==(const Device&) const = default;
  ANTDT_PART {
    v("name", m.name);
    v("max_micro_batch", m.max_micro_batch);
  }
};

// What a worker of parameter servers has committed, or asked its home to, in a generation
// that is over for it: of `phase` its places up to here, and nothing beyond, may be in the
// model.
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
// "I am ready to be a member."
struct Join {
  std::uint32_t pid = 0;
  DataIdentity data;
  bool collective = true;  // false: a loose client that only fetches and commits
  // Not empty: the generation of the envelope could not be formed here, and why.
  std::string problem;
  // The newest generation that this member was ready for (it may have settled or
  // not) and whose training state it still holds whole; 0: it holds none, or the
  // beginning.
  Generation settled;
  Step step;             // the last step of that state
  std::string endpoint;  // of a parameter server: where workers reach it
  // Of parameter servers and their workers: the public key (Z85) of the pair that this
  // process made for itself. Over tcp it is known by that; its secret goes nowhere.
  std::string key;
  Device device;
  PsSaid said = {};
  // Not empty: this member was to read the checkpoint of that generation and could not, and
  // which file and why. Another one is asked to.
  std::string unreadable = {};
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
  }
};
// Job daemon to each member of a new generation: make your end point.
struct Form {
  std::uint32_t rank = 0;
  std::uint32_t size = 0;
  // Of the generation, for trainers of an earlier release alone: theirs is the proof that knows it.
  std::uint64_t key = 0;
  // The settled generation whose training state goes on: a member that settled
  // in it holds that state, every other one receives it. 0: training begins,
  // from the checkpoint directory `restore`, or from the seeded start without.
  Generation base;
  std::string restore;
  // The rank that reads `restore`; all others receive what it read.
  std::uint32_t reader = 0;
  // 32 bytes that only the members of this generation are told: each proves to the others that
  // it has them. They are in no log and on no disk.
  std::string secret = {};
  ANTDT_MESSAGE("form") {
    v("rank", m.rank);
    v("size", m.size);
    v("key", m.key);
    v("base", m.base);
    v("restore", m.restore);
    v("reader", m.reader);
    v("secret", m.secret);
  }
};
// Where the others find the member, as its collective understands it.
struct Address {
  std::string at;
  ANTDT_MESSAGE("address") { v("at", m.at); }
};
struct RosterMember {
  WorkerId worker;
  std::uint32_t rank = 0;
  std::string host;
  std::string at;  // its address
  ANTDT_PART {
    v("worker", m.worker);
    v("rank", m.rank);
    v("host", m.host);
    v("at", m.at);
  }
};
// Everyone's address is there: connect to those that you exchange messages with.
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

// Consecutive steps of a phase in which every member trained as many records as
// in the step before: what the members' slots said, compressed.
struct StepRun {
  Step first;
  std::uint64_t steps = 0;
  std::uint64_t phase = 0;
  std::vector<std::uint64_t> places;   // by rank, before `first`
  std::vector<std::uint64_t> records;  // by rank, in each of the steps
  ANTDT_PART {
    v("f", m.first);
    v("n", m.steps);
    v("h", m.phase);
    v("p", m.places);
    v("r", m.records);
  }
};
// Steps of one generation, for the run's history of them (antdt data which).
// Runs rise and do not overlap. Whoever tells may leave out what was recorded.
struct StepHistory {
  // In all `places` and `records` together, so that a message stays small; older
  // runs are left out for it.
  static constexpr std::size_t kMaxNumbers = 1 << 18;
  Generation generation;
  std::vector<StepRun> runs;
  ANTDT_PART {
    v("g", m.generation);
    v("r", m.runs);
  }
};

// Connected and healed: this member holds the training state `state_hash` as it
// was after `step`. `places` are those of the members of the base generation
// after that step, of the phase `phase`; empty where nothing was trained yet.
// `history` is that of the base generation, from rank 0 alone.
struct Ready {
  Step step;
  std::uint64_t state_hash = 0;
  std::uint64_t phase = 0;
  std::vector<MemberPlace> places;
  StepHistory history{};
  ANTDT_MESSAGE("ready") {
    v("step", m.step);
    v("state_hash", m.state_hash);
    v("phase", m.phase);
    v("places", m.places);
    v("history", m.history);
  }
};

struct PlanEntry {
  WorkerId worker;
  std::uint32_t micro_batch = 0;   // samples
  std::uint32_t accumulation = 1;  // micro-batches a step
  ANTDT_PART {
    v("w", m.worker);
    v("m", m.micro_batch);
    v("c", m.accumulation);
  }
};
// Who computes how much of the next global batches. Held by a worker until the
// members' slots agree to switch.
struct Plan {
  PlanVersion version;
  std::vector<PlanEntry> entries;
  double rate = 1;  // of the job's learning rate, from then on
  ANTDT_MESSAGE("plan") {
    v("version", m.version);
    v("entries", m.entries);
    v("rate", m.rate);
  }
};
// The generation is settled: training goes on after `step`, everyone's place is 0.
struct Settle {
  Step step;
  Plan plan;
  ANTDT_MESSAGE("settle") {
    v("step", m.step);
    v("plan", m.plan);
  }
};
// Stop together at the end of a step, leave the generation and join again: the
// membership is to change. One member that heard it stops all.
struct Regroup {
  std::string reason;
  ANTDT_MESSAGE("regroup") { v("reason", m.reason); }
};
// The generation is over (somebody left or was lost): abort collectives.
struct Abort {
  std::string reason;
  ANTDT_MESSAGE("abort") { v("reason", m.reason); }
};

// ------------------------------------------------------ phases of the job

enum class PhaseKind : std::uint8_t {
  kNone,    // no phase has begun
  kTrain,   // one epoch over the training records
  kEval,    // the evaluation after an epoch
  kFinish,  // write what must be written, and end
};
constexpr auto names_of(PhaseKind) { return names("", "train", "eval", "finish"); }

// A phase begins. Of training and evaluation: in epoch `epoch`, over `records` records, of which
// `committed` are done already.
struct PhaseStart {
  std::uint64_t phase = 0;
  PhaseKind what = PhaseKind::kNone;
  Epoch epoch;
  std::uint64_t records = 0;
  std::uint64_t committed = 0;
  // "finish", around a ring: the rank that writes the model, and how many others could not
  // before it. A later try counts.
  std::uint32_t writer = 0;
  std::uint64_t tries = 0;
  ANTDT_MESSAGE("phase-start") {
    v("phase", m.phase);
    v("what", m.what);
    v("epoch", m.epoch);
    v("records", m.records);
    v("committed", m.committed);
    v("writer", m.writer);
    v("tries", m.tries);
  }
};
// How far training is, from the member of rank 0 (loss) and from every member
// (place). One-way and cumulative; the last of a phase has done = true. About
// once a second the one of rank 0 says which records made the steps, too.
struct Progress {
  std::uint64_t phase = 0;
  Step step;                  // applied
  std::uint64_t place = 0;    // stable, as in Fetch
  std::uint64_t samples = 0;  // of all members in this phase so far
  double loss_sum = 0;        // weighted training loss of all members in this phase so far
  double weight_sum = 0;
  PlanVersion plan;   // in force
  bool done = false;  // the phase's records are all in, and a further step completed
  StepHistory history{};
  ANTDT_MESSAGE("progress") {
    v("phase", m.phase);
    v("step", m.step);
    v("place", m.place);
    v("samples", m.samples);
    v("loss_sum", m.loss_sum);
    v("weight_sum", m.weight_sum);
    v("plan", m.plan);
    v("done", m.done);
    v("history", m.history);
  }
};
// Write a checkpoint at the step where every member's slot holds this number.
struct CheckpointOrder {
  std::uint64_t number = 0;
  ANTDT_MESSAGE("checkpoint-order") { v("number", m.number); }
};
struct CheckpointFile {
  std::string name;
  std::uint64_t bytes = 0;
  std::string xxh3;  // 16 hex digits
  ANTDT_PART {
    v("name", m.name);
    v("bytes", m.bytes);
    v("xxh3", m.xxh3);
  }
};
// From the member that writes it, at the agreed step and before it says that it trained
// anything after that: what was in the model then. It is written while steps go on.
struct CheckpointBegun {
  std::uint64_t number = 0;
  std::uint64_t phase = 0;
  Step step;
  std::vector<MemberPlace> places;
  StepHistory history{};
  ANTDT_MESSAGE("checkpoint-begun") {
    v("number", m.number);
    v("phase", m.phase);
    v("step", m.step);
    v("places", m.places);
    v("history", m.history);
  }
};
// From the member that wrote it: the files lie synced in `directory`; the job
// daemon adds the ledger and renames it into place.
struct CheckpointWritten {
  std::uint64_t number = 0;
  std::uint64_t phase = 0;
  Step step;
  std::string directory;
  std::vector<CheckpointFile> files;
  std::vector<MemberPlace> places;
  std::string error;  // not empty: it could not be written, and why
  StepHistory history{};
  ANTDT_MESSAGE("checkpoint-written") {
    v("number", m.number);
    v("phase", m.phase);
    v("step", m.step);
    v("directory", m.directory);
    v("files", m.files);
    v("places", m.places);
    v("error", m.error);
    v("history", m.history);
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

// ----------------------------------------------------- agent and job daemon

// Job daemon to agent after Hello: "I am incarnation n of this job".
struct Attach {
  Incarnation incarnation;
  ANTDT_MESSAGE("attach") { v("incarnation", m.incarnation); }
};
struct RunningProcess {
  WorkerId worker;
  Attempt attempt;
  std::uint32_t pid = 0;
  ANTDT_PART {
    v("worker", m.worker);
    v("attempt", m.attempt);
    v("pid", m.pid);
  }
};
// The agent's answer: what this host is and what runs there for the job.
struct AgentWelcome {
  std::uint32_t version = 0;
  std::string host;     // its name for people
  std::string address;  // where its workers can be reached by other hosts' workers
  double cpus = 0;      // not yet leased
  std::uint64_t memory_bytes = 0;
  std::uint32_t devices = 0;
  std::vector<RunningProcess> running;
  // The user as whom it starts the processes of who asks; "" of an earlier release.
  std::string user = {};
  ANTDT_MESSAGE("agent-welcome") {
    v("version", m.version);
    v("host", m.host);
    v("address", m.address);
    v("cpus", m.cpus);
    v("memory_bytes", m.memory_bytes);
    v("devices", m.devices);
    v("running", m.running);
    v("user", m.user);
  }
};
struct EnvVar {
  std::string name;
  std::string value;
  ANTDT_PART {
    v("name", m.name);
    v("value", m.value);
  }
};
// Start a process of the job (envelope: worker, attempt). Repeating it for an
// attempt that was started already answers ProcessStarted again.
struct StartProcess {
  std::string role;
  std::vector<std::string> command;
  std::vector<EnvVar> env;  // added to the agent's own, after stale values are removed
  std::string working_directory;
  std::string run_dir;      // logs go to run_dir/logs/<worker>.<attempt>.{out,err}
  std::string config_json;  // handed to the worker in WorkerWelcome
  double cpus = 0;
  std::uint64_t memory_bytes = 0;
  std::uint32_t devices = 0;
  std::uint64_t log_bytes = 0;  // bound for each of the two log files, rotated
  std::uint32_t orphan_timeout_ms = 0;
  std::uint32_t report_ms = 1000;  // how often the agent sends Metrics
  ANTDT_MESSAGE("start-process") {
    v("role", m.role);
    v("command", m.command);
    v("env", m.env);
    v("working_directory", m.working_directory);
    v("run_dir", m.run_dir);
    v("config_json", m.config_json);
    v("cpus", m.cpus);
    v("memory_bytes", m.memory_bytes);
    v("devices", m.devices);
    v("log_bytes", m.log_bytes);
    v("orphan_timeout_ms", m.orphan_timeout_ms);
    v("report_ms", m.report_ms);
  }
};
struct ProcessStarted {
  std::uint32_t pid = 0;
  ANTDT_MESSAGE("process-started") { v("pid", m.pid); }
};
// Repeated until acknowledged by ExitSeen. `error` is set when the program
// could not be executed at all.
struct ProcessExited {
  std::int32_t code = -1;   // exit code, or -1
  std::int32_t signal = 0;  // signal that ended it, or 0
  std::string error;
  std::string last_lines;  // end of its standard error, at most 4 KiB
  std::string oom;         // evidence that memory ran out ("cgroup: 1 oom_kill"); empty: none
  ANTDT_MESSAGE("process-exited") {
    v("code", m.code);
    v("signal", m.signal);
    v("error", m.error);
    v("last_lines", m.last_lines);
    v("oom", m.oom);
  }
};
struct ExitSeen {
  ANTDT_MESSAGE("exit-seen") {}
};
// SIGTERM to the worker's whole session, SIGKILL after the grace.
struct StopProcess {
  std::uint32_t grace_ms = 0;
  ANTDT_MESSAGE("stop-process") { v("grace_ms", m.grace_ms); }
};
// What an agent saw of a process from outside, and of its host. What it could not see
// is 0, like what there was nothing of.
struct HostProbe {
  std::uint64_t looked_us = 0;  // the time that the others are a part of; 0: did not look
  std::uint64_t ran_us = 0;     // on a CPU; all threads of the process, added up
  std::uint64_t queued_us = 0;  // could run and had no CPU; likewise
  // A bound on its CPU time held it back: of its cgroup, or of a drill.
  std::uint64_t throttled_us = 0;
  std::uint64_t stolen_us = 0;  // CPUs of the host gave to other machines; mean of them
  // Somebody waited for CPU, disk or memory: in its cgroup, else on the host.
  std::uint64_t cpu_stalled_us = 0;
  std::uint64_t io_stalled_us = 0;
  std::uint64_t memory_stalled_us = 0;
  // The clocks of an accelerator that it computes on were held down, by heat or power.
  std::uint64_t clocks_us = 0;
  ANTDT_PART {
    v("looked_us", m.looked_us);
    v("ran_us", m.ran_us);
    v("queued_us", m.queued_us);
    v("throttled_us", m.throttled_us);
    v("stolen_us", m.stolen_us);
    v("cpu_stalled_us", m.cpu_stalled_us);
    v("io_stalled_us", m.io_stalled_us);
    v("memory_stalled_us", m.memory_stalled_us);
    v("clocks_us", m.clocks_us);
  }
};
// Sum of a worker's Reports since the agent's last Metrics.
struct Metrics {
  Report sum;
  std::uint32_t window_ms = 0;
  HostProbe probe{};
  ANTDT_MESSAGE("metrics") {
    v("sum", m.sum);
    v("window_ms", m.window_ms);
    v("probe", m.probe);
  }
};
// A tcp port that is free on the agent's host now, for MASTER_PORT.
struct ReservePort {
  ANTDT_MESSAGE("reserve-port") {}
};
struct ReservedPort {
  std::uint32_t port = 0;
  ANTDT_MESSAGE("reserved-port") { v("port", m.port); }
};
// Job daemon to agent and back: the link is alive. Every second.
struct Heartbeat {
  ANTDT_MESSAGE("heartbeat") {}
};
// The job is over: forget it (and, for a private agent, end).
struct Detach {
  ANTDT_MESSAGE("detach") {}
};

// -------------------------------------------------- launcher and operators

// Launcher to its private agent: start and keep the job daemon of this run.
struct StartJob {
  std::string run_dir;
  std::vector<std::string> command;  // antdt-jobd and its flags
  ANTDT_MESSAGE("start-job") {
    v("run_dir", m.run_dir);
    v("command", m.command);
  }
};
struct JobStarted {
  std::uint32_t pid = 0;
  ANTDT_MESSAGE("job-started") { v("pid", m.pid); }
};
// Operator to job daemon: the state as JSON, and the events from number
// `events_from` on.
struct StatusRequest {
  std::uint64_t events_from = 0;
  ANTDT_MESSAGE("status-request") { v("events_from", m.events_from); }
};
struct StatusReply {
  std::string status_json;
  std::vector<std::string> events;  // JSON objects, as in events.jsonl
  std::uint64_t next_event = 0;
  ANTDT_MESSAGE("status-reply") {
    v("status_json", m.status_json);
    v("events", m.events);
    v("next_event", m.next_event);
  }
};
// Ends the job in good order: checkpoint where possible, then exit 75.
struct StopJob {
  std::string reason;
  std::uint32_t grace_ms = 0;
  ANTDT_MESSAGE("stop-job") {
    v("reason", m.reason);
    v("grace_ms", m.grace_ms);
  }
};
// Operators' wishes. `who` is how the operator's program names its user; that
// the user may ask at all is decided by who can reach the socket. Answered by
// Done or Refused.
//
// The worker, or every worker on the host, finishes its step, gives back what
// it holds and leaves; after the deadline it is killed.
struct EvictWorkers {
  std::string target;  // "w3", or a host as in [cluster] hosts or by its own name
  std::string reason;
  std::string who;
  std::uint32_t deadline_ms = 0;
  ANTDT_MESSAGE("evict") {
    v("target", m.target);
    v("reason", m.reason);
    v("who", m.who);
    v("deadline_ms", m.deadline_ms);
  }
};
enum class ResizedRole : std::uint8_t {
  kUnsaid,  // by an earlier release: workers
  kWorker,
  kServer,
};
constexpr auto names_of(ResizedRole) { return names("", "worker", "server"); }

// From now on the job has `count` workers, or parameter servers.
struct ResizeJob {
  std::uint32_t count = 0;
  std::string who;
  ResizedRole role = ResizedRole::kUnsaid;
  ANTDT_MESSAGE("resize") {
    v("count", m.count);
    v("who", m.who);
    v("role", m.role);
  }
};
// The job goes on without positions [from, to) of the open phase's stream.
struct SkipRecords {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::string reason;
  std::string who;
  ANTDT_MESSAGE("skip-records") {
    v("from", m.from);
    v("to", m.to);
    v("reason", m.reason);
    v("who", m.who);
  }
};
struct Done {
  ANTDT_MESSAGE("done") {}
};

}  // namespace antdt::wire
