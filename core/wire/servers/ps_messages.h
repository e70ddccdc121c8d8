// Messages between workers and parameter servers, and among servers.
//
// docs/parameter-servers.md describes the conversation. The generation of the envelope is that of
// the server group; a message with another generation belongs to a group that is over, and changes
// nothing. Keys and rows are bytes, as described in trainer/ps/rows/rows.h.
//
// Messages between servers and the job daemon (PsServe, PsCut and their answers) are relayed by the
// server's agent, as the messages of workers are. If a server is two processes, its primary copies
// every change to its backup: PsCopied, PsTaken. A new backup first receives the whole state:
// PsImage.
#pragma once

#include "core/sync_strategy.h"
#include "core/wire/message.h"
#include "core/wire/servers/ps_roster.h"
#include "core/wire/training_messages.h"

namespace antdt::wire {

// A table of rows. Dense parameters are one table, whose keys number blocks of them. `rule`: "sum",
// "sgd", "adagrad", "adam", "ftrl", or "mean": the rows follow the mean of the workers' replicas by
// a share of `learning_rate`. `init`: "zero", "uniform", "normal", with init_scale as in
// ps::TableSpec.
struct PsTable {
  std::string name;
  std::uint32_t width = 1;  // floats per row
  std::string rule;
  double learning_rate = 0;
  double weight_decay = 0;
  double l1 = 0;
  std::string init;
  double init_scale = 0;
  ANTDT_PART {
    v("name", m.name);
    v("width", m.width);
    v("rule", m.rule);
    v("learning_rate", m.learning_rate);
    v("weight_decay", m.weight_decay);
    v("l1", m.l1);
    v("init", m.init);
    v("init_scale", m.init_scale);
  }
};
// The first message of a worker to each server: the model's tables, the same from every worker.
struct PsOpen {
  std::uint64_t seed = 0;
  std::vector<PsTable> tables;
  ANTDT_MESSAGE("ps-open") {
    v("seed", m.seed);
    v("tables", m.tables);
  }
};
struct PsOpened {
  std::uint64_t version = 0;  // as in PsPulled
  ANTDT_MESSAGE("ps-opened") { v("version", m.version); }
};

// Some rows of one table. `values` has values or gradients if the message needs them.
struct PsRows {
  std::uint32_t table = 0;  // index in PsOpen
  std::string keys;
  std::string values;
  ANTDT_PART {
    v("table", m.table);
    v("keys", m.keys);
    v("values", m.values);
  }
};
// Sets the rows that do not exist yet. Answered by Done.
struct PsPut {
  std::vector<PsRows> rows;
  ANTDT_MESSAGE("ps-put") { v("rows", m.rows); }
};
// The server answers when it has reached `clock`: with a barrier, when that many steps are applied;
// with bounded staleness, when the pushes up to that number are applied of each worker that has
// something to push. 0: at once.
struct PsPull {
  std::uint64_t clock = 0;
  std::vector<PsRows> rows;  // keys only
  ANTDT_MESSAGE("ps-pull") {
    v("clock", m.clock);
    v("rows", m.rows);
  }
};
struct PsPulled {
  std::uint64_t version = 0;  // how many updates this server has applied
  // The newest applied push of the worker that is furthest behind, among those that have something
  // to push; if no worker has, of the one that is furthest ahead.
  std::uint64_t clock = 0;
  std::vector<std::string> values;  // for PsPull.rows, in order
  ANTDT_MESSAGE("ps-pulled") {
    v("version", m.version);
    v("clock", m.clock);
    v("values", m.values);
  }
};

// The part of push `number` (1, 2, ... in this worker's attempt) for one server. The server keeps
// it and does not apply it. `version` is the one at which its rows were pulled.
struct PsPush {
  std::uint64_t number = 0;
  std::uint64_t version = 0;
  // Gradients, summed over the push's samples; for a table with rule "mean" the worker's replica.
  std::vector<PsRows> rows;
  ANTDT_MESSAGE("ps-push") {
    v("number", m.number);
    v("version", m.version);
    v("rows", m.rows);
  }
};
// What a member of a collective knows when it asks a server (sync = "hybrid";
// docs/synchronisation/hybrid.md).
struct PsConcluded {
  Generation generation;      // of the members, settled
  std::uint32_t members = 0;  // of that generation
  Step step;                  // the last step that was concluded
  double weight = 0;          // what its gradients are divided by; 0: it changed nothing
  double rate = 1;            // factor of the learning rates in that step
  std::uint64_t cut = 0;      // the checkpoint that members agreed on after that step; 0: none
  std::string directory;      // of that checkpoint's slices, below the run's
  ANTDT_PART {
    v("generation", m.generation);
    v("members", m.members);
    v("step", m.step);
    v("weight", m.weight);
    v("rate", m.rate);
    v("cut", m.cut);
    v("directory", m.directory);
  }
};
// Answered by PsPulled with the rows as they are after that step.
struct PsStepPull {
  PsConcluded concluded;
  std::vector<PsRows> rows;  // keys only
  ANTDT_MESSAGE("ps-step-pull") {
    v("concluded", m.concluded);
    v("rows", m.rows);
  }
};
// The part of the member of this rank of the step after that one, perhaps without rows. Answered by
// PsStaged.
struct PsStepPush {
  PsConcluded concluded;
  std::uint32_t rank = 0;
  std::vector<PsRows> rows;  // gradients, summed over the member's samples
  ANTDT_MESSAGE("ps-step-push") {
    v("concluded", m.concluded);
    v("rank", m.rank);
    v("rows", m.rows);
  }
};
enum class PsStaging : std::uint8_t {
  kStaged,
  kLate,  // the push's step is closed, so it will never be applied
};
constexpr auto names_of(PsStaging) { return names("staged", "late"); }

struct PsStaged {
  std::uint64_t number = 0;
  PsStaging status = PsStaging::kStaged;
  ANTDT_MESSAGE("ps-staged") {
    v("number", m.number);
    v("status", m.status);
  }
};
// Worker to its home, once every part of the push is staged. The push contains records [from, to)
// of the worker's places.
struct PsCommit {
  std::uint64_t number = 0;
  std::uint64_t version = 0;  // with a barrier: how many steps were applied before this one
  std::uint64_t phase = 0;    // the phase in which the places count; it never goes back
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  double weight = 0;  // sum of the records' weights
  ANTDT_MESSAGE("ps-commit") {
    v("number", m.number);
    v("version", m.version);
    v("phase", m.phase);
    v("from", m.from);
    v("to", m.to);
    v("weight", m.weight);
  }
};
enum class PsFate : std::uint8_t {
  kApplied,
  kLate,  // the push's step is closed, so it will never be applied
};
constexpr auto names_of(PsFate) { return names("applied", "late"); }

// The home's answer, once the push is decided.
struct PsDecided {
  std::uint64_t number = 0;
  PsFate status = PsFate::kApplied;
  std::uint64_t version = 0;  // how many updates this home has decided so far
  ANTDT_MESSAGE("ps-decided") {
    v("number", m.number);
    v("status", m.status);
    v("version", m.version);
  }
};
// Worker to every server: the worker has nothing to push now, so nobody needs to wait for it until
// it pushes again. Answered by PsIdled, when `version` updates are applied.
struct PsIdle {
  std::uint64_t version = 0;
  ANTDT_MESSAGE("ps-idle") { v("version", m.version); }
};
struct PsIdled {
  std::uint64_t version = 0;  // as in PsPulled
  // How many updates this home has decided; those before the group count for the first server. The
  // sum over all servers is the version at which all of them are applied.
  std::uint64_t decided = 0;
  ANTDT_MESSAGE("ps-idled") {
    v("version", m.version);
    v("decided", m.decided);
  }
};

struct PsPushId {
  WorkerId worker;
  Attempt attempt;
  std::uint64_t number = 0;
  ANTDT_PART {
    v("worker", m.worker);
    v("attempt", m.attempt);
    v("number", m.number);
  }
};
struct PsMember {
  WorkerId worker;
  Attempt attempt;
  ANTDT_PART {
    v("worker", m.worker);
    v("attempt", m.attempt);
  }
};
// Home to the other servers: `pushes` become one update, whose gradient is their sum divided by
// `weight`; no more pushes of `left` will be decided; the state after it is checkpoint `cut` (0:
// none), which each server writes to `directory`. The decisions of one home are numbered from 1,
// applied in order, and repeated until they are acknowledged. If there are several homes, each of
// them decides cut `cut`, and the checkpoint is the state after everything that they decided before
// it.
struct PsDecision {
  std::uint64_t number = 0;
  double weight = 0;
  std::vector<PsPushId> pushes;  // rising; empty: no update
  std::vector<PsMember> left;
  std::uint64_t cut = 0;
  std::string directory;
  ANTDT_MESSAGE("ps-decision") {
    v("number", m.number);
    v("weight", m.weight);
    v("pushes", m.pushes);
    v("left", m.left);
    v("cut", m.cut);
    v("directory", m.directory);
  }
};
struct PsApplied {
  std::uint64_t number = 0;  // decisions up to this one are applied
  ANTDT_MESSAGE("ps-applied") { v("number", m.number); }
};

// A half-open range of a worker's places.
struct PsRange {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  ANTDT_PART {
    v("from", m.from);
    v("to", m.to);
  }
};
// What is in the model of one worker: places of `phase`, rising and disjoint. Of earlier phases
// everything is.
struct PsPlaces {
  WorkerId worker;
  Attempt attempt;
  std::uint64_t phase = 0;
  std::vector<PsRange> applied;
  ANTDT_PART {
    v("worker", m.worker);
    v("attempt", m.attempt);
    v("phase", m.phase);
    v("applied", m.applied);
  }
};

// The key that identifies a process of the group over tcp (Join::key).
struct PsKey {
  WorkerId worker;
  Attempt attempt;
  std::string key;
  ANTDT_PART {
    v("worker", m.worker);
    v("attempt", m.attempt);
    v("key", m.key);
  }
};

// The role of a process in its server.
enum class ReplicaRole : std::uint8_t {
  kAlone,    // there is no second process
  kPrimary,  // answers the workers, and copies every change to the other process
  kBackup,   // has everything that the primary has
  kJoining,  // will become the backup, from what the primary sends
};
constexpr auto names_of(ReplicaRole) { return names("", "primary", "backup", "joining"); }

// Job daemon to a server: everything that it has to serve, in the generation of the envelope. A new
// generation is a new group, which begins with the slices of `restore`; within a generation, the
// workers may change. Workers in `leaving` push no more: their homes report what is applied of
// them, and refuse the rest. Repeated until PsServing answers it.
struct PsServe {
  std::uint64_t number = 0;          // 1, 2, ... in a generation; the highest counts
  std::uint32_t index = 0;           // index of the server that receives this
  std::vector<std::string> servers;  // end points, by index: a path, or "tcp://host:port"
  SyncStrategy sync = SyncStrategy::kPsBsp;
  std::uint32_t backups = 0;
  std::vector<PsMember> workers;  // all workers that may push
  std::vector<PsMember> leaving;
  std::string restore;        // the checkpoint from which the group goes on; empty: none
  std::uint64_t version = 0;  // PsSaved::version of that checkpoint
  // Keys of the servers, each with its index, and of `workers`: over tcp, no other process is
  // admitted.
  std::vector<PsKey> keys = {};
  // Which process of the server receives this, in which view, and where the other process is.
  ReplicaRole replica = ReplicaRole::kAlone;
  std::uint64_t view = 0;  // rises with each change; a copy from an earlier view is void
  std::string other = {};
  std::string other_key = {};
  double rate = 1;  // factor of the job's learning rate, from the next update on
  // The server goes on with the rows that it has from the group before, if it has any, and not with
  // `restore`.
  bool keep = false;
  // If this server is a home: after its marker for that checkpoint it decides no push, until a
  // later PsServe says otherwise. 0: none.
  std::uint64_t last_cut = 0;
  ANTDT_MESSAGE("ps-serve") {
    v("number", m.number);
    v("index", m.index);
    v("servers", m.servers);
    v("sync", m.sync);
    v("backups", m.backups);
    v("workers", m.workers);
    v("leaving", m.leaving);
    v("restore", m.restore);
    v("version", m.version);
    v("keys", m.keys);
    v("replica", m.replica);
    v("view", m.view);
    v("other", m.other);
    v("other_key", m.other_key);
    v("rate", m.rate);
    v("keep", m.keep);
    v("last_cut", m.last_cut);
  }
};
struct PsServing {
  std::uint64_t number = 0;    // number of the PsServe that is in force here
  std::vector<PsPlaces> left;  // for the workers in `leaving` whose home this is
  // The view in which the server's other process has everything that the primary has ever answered,
  // and in which the primary answers nothing more that the other has not; 0: none.
  std::uint64_t backed = 0;
  ANTDT_MESSAGE("ps-serving") {
    v("number", m.number);
    v("left", m.left);
    v("backed", m.backed);
  }
};
// Primary to backup of one server: event `number` of those that change it, counted from 1 over the
// whole life of the pair. `kind` and `body`: the message, or the result of a file operation
// (trainer/ps/replica/copied.h); `from` and `seq`: the request. Repeated until PsTaken answers it.
struct PsCopied {
  std::uint64_t view = 0;
  std::uint64_t number = 0;
  std::string kind;
  std::string body;
  PsMember from;
  std::uint64_t seq = 0;
  ANTDT_MESSAGE("ps-copied") {
    v("view", m.view);
    v("number", m.number);
    v("kind", m.kind);
    v("body", m.body);
    v("from", m.from);
    v("seq", m.seq);
  }
};
struct PsTaken {
  std::uint64_t view = 0;
  std::uint64_t number = 0;  // events up to this one were taken; 0: there is no state yet
  // How many pieces of that image have arrived (PsImage).
  std::uint64_t image = 0;
  std::uint64_t pieces = 0;
  ANTDT_MESSAGE("ps-taken") {
    v("view", m.view);
    v("number", m.number);
    v("image", m.image);
    v("pieces", m.pieces);
  }
};
// Primary to a process that will be its backup and has no state yet: piece 1, 2, ... of image
// `image` of its state after event `number` (trainer/ps/replica/state_copy.h). Repeated until
// PsTaken answers it. A later image voids the earlier ones.
struct PsImage {
  std::uint64_t view = 0;
  std::uint64_t image = 0;
  std::uint64_t number = 0;
  std::uint64_t piece = 0;
  std::uint32_t part = 0;
  std::string bytes;
  bool last = false;
  ANTDT_MESSAGE("ps-image") {
    v("view", m.view);
    v("image", m.image);
    v("number", m.number);
    v("piece", m.piece);
    v("part", m.part);
    v("bytes", m.bytes);
    v("last", m.last);
  }
};
// A server to the job daemon, about once a second: what it holds, and totals since it began.
// Service times are those of the last second, 0 without requests.
struct PsStats {
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;  // memory that the rows use
  std::uint64_t version = 0;
  std::uint64_t requests = 0;
  std::uint64_t busy_us = 0;  // time spent on the requests
  double service_us_p50 = 0;
  double service_us_p99 = 0;
  std::uint64_t pushes_applied = 0;  // decided by this home, like the next two
  std::uint64_t pushes_late = 0;
  std::uint64_t pushes_repeated = 0;  // commits that were repeated
  std::uint64_t staleness_pushes = 0;
  std::uint64_t staleness_sum = 0;
  std::uint64_t staleness_max = 0;
  // For how long a checkpoint kept it from answering: on average, and at most.
  std::uint64_t cuts = 0;
  std::uint64_t cut_pause_us_sum = 0;
  std::uint64_t cut_pause_us_max = 0;
  ANTDT_MESSAGE("ps-stats") {
    v("rows", m.rows);
    v("bytes", m.bytes);
    v("version", m.version);
    v("requests", m.requests);
    v("busy_us", m.busy_us);
    v("service_us_p50", m.service_us_p50);
    v("service_us_p99", m.service_us_p99);
    v("pushes_applied", m.pushes_applied);
    v("pushes_late", m.pushes_late);
    v("pushes_repeated", m.pushes_repeated);
    v("staleness_pushes", m.staleness_pushes);
    v("staleness_sum", m.staleness_sum);
    v("staleness_max", m.staleness_max);
    v("cuts", m.cuts);
    v("cut_pause_us_sum", m.cut_pause_us_sum);
    v("cut_pause_us_max", m.cut_pause_us_max);
  }
};

// Where the servers of that generation put checkpoint `number`, below the run's directory.
[[nodiscard]] inline std::string slices_directory(std::uint64_t number, Generation group) {
  return fmt::format("checkpoints/.tmp-{}-g{}", number, group);
}
// Job daemon to every server: make checkpoint `number` (1, 2, ...) in a directory below the run's,
// which the servers make. Their homes decide at which moment. Answered by PsSaved once this server
// has written its slices; a repeated order is answered again.
struct PsCut {
  std::uint64_t number = 0;
  std::string directory;
  ANTDT_MESSAGE("ps-cut") {
    v("number", m.number);
    v("directory", m.directory);
  }
};
// The files of this server's slices, in the state after `version` updates, which is the same on all
// servers. `pause_us`: for how long the checkpoint kept it from answering.
struct PsSaved {
  std::uint64_t number = 0;
  std::uint64_t version = 0;
  std::uint64_t pause_us = 0;
  std::vector<CheckpointFile> files;
  std::vector<PsPlaces> places;  // for the workers whose home this is, in that state
  std::string error;             // not empty: why they could not be written
  ANTDT_MESSAGE("ps-saved") {
    v("number", m.number);
    v("version", m.version);
    v("pause_us", m.pause_us);
    v("files", m.files);
    v("places", m.places);
    v("error", m.error);
  }
};

}  // namespace antdt::wire
