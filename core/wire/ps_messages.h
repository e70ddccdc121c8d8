// Messages between workers and parameter servers, and among servers.
//
// docs/parameter-servers.md tells the conversation. The generation of the
// envelope is that of the server group: whatever carries another one is of a
// group that is over and changes nothing. Keys and rows are bytes, as
// trainer/ps/rows/rows.h says.
//
// What servers and the job daemon say to one another travels through the server's
// agent, as the messages of workers do: PsServe, PsCut, and their answers. Where a server
// is two processes, its primary copies to its backup what changes it: PsCopied, PsTaken.
// One that is new gets all that there is first: PsImage.
#pragma once

#include "core/sync_strategy.h"
#include "core/wire/message.h"
#include "core/wire/training_messages.h"

namespace antdt::wire {

// A table of rows; dense parameters are one whose keys number blocks of them.
// `rule`: "sum", "sgd", "adagrad", "adam", "ftrl". `init`: "zero", "uniform",
// "normal", with init_scale as in ps::TableSpec.
struct PsTable {
  std::string name;
  std::uint32_t width = 1;  // floats a row
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
// Worker to each server, first: the model's tables, the same from every worker.
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

// Some rows of one table: `values` where values or gradients belong to them.
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
// Sets the rows that are not there yet. Answered by Done.
struct PsPut {
  std::vector<PsRows> rows;
  ANTDT_MESSAGE("ps-put") { v("rows", m.rows); }
};
// Answered when the server is at `clock`: with a barrier, when as many steps are
// applied; with bounded staleness, when the pushes up to that number of each worker
// that has something to push are. 0: at once.
struct PsPull {
  std::uint64_t clock = 0;
  std::vector<PsRows> rows;  // keys only
  ANTDT_MESSAGE("ps-pull") {
    v("clock", m.clock);
    v("rows", m.rows);
  }
};
struct PsPulled {
  std::uint64_t version = 0;  // updates that this server has applied
  // Newest push applied of the worker that is furthest behind of those that have
  // something to push; if nobody has, of the one that is furthest.
  std::uint64_t clock = 0;
  std::vector<std::string> values;  // of PsPull.rows, in order
  ANTDT_MESSAGE("ps-pulled") {
    v("version", m.version);
    v("clock", m.clock);
    v("values", m.values);
  }
};

// A part of push `number` (1, 2, ... of this worker's attempt), for one server.
// It is kept and not applied. `version` is what its rows were pulled at.
struct PsPush {
  std::uint64_t number = 0;
  std::uint64_t version = 0;
  std::vector<PsRows> rows;  // gradients, summed over the push's samples
  ANTDT_MESSAGE("ps-push") {
    v("number", m.number);
    v("version", m.version);
    v("rows", m.rows);
  }
};
enum class PsStaging : std::uint8_t {
  kStaged,
  kLate,  // its step is closed: it will never be applied
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
// Worker to its home server once every part of the push is staged. Records
// [from, to) of the worker's places are in it.
struct PsCommit {
  std::uint64_t number = 0;
  std::uint64_t version = 0;  // with a barrier: the steps applied before this one
  std::uint64_t phase = 0;    // that the places count in; it never goes back
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
  kLate,  // its step is closed: it will never be applied
};
constexpr auto names_of(PsFate) { return names("applied", "late"); }

// The home's answer, once it is decided.
struct PsDecided {
  std::uint64_t number = 0;
  PsFate status = PsFate::kApplied;
  std::uint64_t version = 0;  // updates that this home has decided so far
  ANTDT_MESSAGE("ps-decided") {
    v("number", m.number);
    v("status", m.status);
    v("version", m.version);
  }
};
// Worker to every server: there is nothing for it to push now; nobody is to wait
// for it until it pushes again. Answered by PsIdled, when so many updates are applied.
struct PsIdle {
  std::uint64_t version = 0;
  ANTDT_MESSAGE("ps-idle") { v("version", m.version); }
};
struct PsIdled {
  std::uint64_t version = 0;  // as in PsPulled
  // Updates that this home has decided; those before the group are the first server's.
  // The sum over all servers is the version at which all of them are applied.
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
// Home to the other servers: `pushes` make one update, whose gradient is their
// sum divided by `weight`; nothing more of `left` will be decided; the state after
// it is checkpoint `cut` (0: none), which each server writes to `directory`.
// Decisions of one home are numbered from 1 and applied in order; said again
// until acknowledged. Where there are several homes each of them decides cut `cut`:
// the state after all that they decided before it.
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
  std::uint64_t number = 0;  // decisions up to here are applied
  ANTDT_MESSAGE("ps-applied") { v("number", m.number); }
};

// Half-open range of a worker's places.
struct PsRange {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  ANTDT_PART {
    v("from", m.from);
    v("to", m.to);
  }
};
// What of one worker is in the model: places of `phase`, rising and apart; of the
// phases before it everything is.
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

// By which a process of the group is known over tcp (Join::key).
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

// Of a server that is two processes: which of them one is.
enum class ReplicaRole : std::uint8_t {
  kAlone,    // there is no other one
  kPrimary,  // answers the workers and copies to the other one what changes it
  kBackup,   // has all that the primary has
  kJoining,  // is to be the backup, from what the primary sends
};
constexpr auto names_of(ReplicaRole) { return names("", "primary", "backup", "joining"); }

// Job daemon to a server: what it is to serve, whole, in the generation of the
// envelope. A new generation is a new group, which begins with the slices of
// `restore`; in the same one the workers may be others. Those of `leaving` push no
// more: their homes say what of them is applied and refuse the rest. Said again
// until PsServing answers it.
struct PsServe {
  std::uint64_t number = 0;          // 1, 2, ... in a generation: the highest counts
  std::uint32_t index = 0;           // of the server that hears this
  std::vector<std::string> servers;  // end points, by index: a path, or "tcp://host:port"
  SyncStrategy sync = SyncStrategy::kPsBsp;
  std::uint32_t backups = 0;
  std::vector<PsMember> workers;  // all that may push
  std::vector<PsMember> leaving;
  std::string restore;        // the checkpoint that the group goes on from; empty: none
  std::uint64_t version = 0;  // PsSaved::version of it
  // Of servers, each by its index, and of `workers`: nobody else gets in over tcp.
  std::vector<PsKey> keys = {};
  // Which process of this server hears this, since when, and where the other one is.
  ReplicaRole replica = ReplicaRole::kAlone;
  std::uint64_t view = 0;  // rises with each change; what is copied in an earlier one is void
  std::string other = {};
  std::string other_key = {};
  double rate = 1;  // of the job's learning rate, from the next update on
  // It goes on with the rows that it has of the group before, if it has any, and not with
  // `restore`.
  bool keep = false;
  // Where this is a home: behind its marker for that checkpoint it decides no push, until a
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
  std::uint64_t number = 0;    // of the PsServe that is in force here
  std::vector<PsPlaces> left;  // of those in `leaving` whose home this is
  // The view in which this server's other process has all that was ever heard of it, and
  // in which nothing more is heard that the other one has not; 0: none.
  std::uint64_t backed = 0;
  ANTDT_MESSAGE("ps-serving") {
    v("number", m.number);
    v("left", m.left);
    v("backed", m.backed);
  }
};
// Job daemon to a worker: the servers of its generation. A PhaseStart follows the first one;
// where processes of servers were replaced, it is said again with a higher number.
struct PsRoster {
  std::vector<std::string> servers;  // end points, by index, as in PsServe
  SyncStrategy sync = SyncStrategy::kPsBsp;
  std::uint64_t staleness = 0;         // of ps-ssp
  std::vector<std::string> keys = {};  // public keys of the servers, by index
  // By index, where a server is two processes: its backup, which answers when the primary
  // is lost. Empty: it has none.
  std::vector<std::string> others = {};
  std::vector<std::string> other_keys = {};
  std::uint64_t number = 0;  // as in PsServe
  ANTDT_MESSAGE("ps-roster") {
    v("servers", m.servers);
    v("sync", m.sync);
    v("staleness", m.staleness);
    v("keys", m.keys);
    v("others", m.others);
    v("other_keys", m.other_keys);
    v("number", m.number);
  }
};

// Primary to backup of one server: event `number` of those that change it, from 1 in the
// whole life of the two. `kind` and `body`: what was heard, or what became of files
// (trainer/ps/replica/copied.h); `from` and `seq`: who asked. Said again until PsTaken answers it.
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
  std::uint64_t number = 0;  // events up to here are taken; 0: there is no state yet
  // Of that one the first so many pieces are here (PsImage).
  std::uint64_t image = 0;
  std::uint64_t pieces = 0;
  ANTDT_MESSAGE("ps-taken") {
    v("view", m.view);
    v("number", m.number);
    v("image", m.image);
    v("pieces", m.pieces);
  }
};
// Primary to one that is to be its backup and has nothing yet: piece 1, 2, ... of image
// `image` of its state after event `number` (trainer/ps/replica/state_copy.h). Said again until
// PsTaken answers it. A later image voids the ones before.
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
// A server to the job daemon, about once a second: what it holds, and what it did
// since it began. Service times are those of the last second, 0 without requests.
struct PsStats {
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;  // of memory that rows take
  std::uint64_t version = 0;
  std::uint64_t requests = 0;
  std::uint64_t busy_us = 0;  // with them
  double service_us_p50 = 0;
  double service_us_p99 = 0;
  std::uint64_t pushes_applied = 0;  // decided by this home; so are the next two
  std::uint64_t pushes_late = 0;
  std::uint64_t pushes_repeated = 0;  // commits that came again
  std::uint64_t staleness_pushes = 0;
  std::uint64_t staleness_sum = 0;
  std::uint64_t staleness_max = 0;
  // How long it answered nobody for one of its checkpoints: on the average, and at most.
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

// Job daemon to every server: checkpoint `number` (1, 2, ...) is to be made, in a
// directory below the run's, which the servers make. Their homes decide when.
// Answered by PsSaved once this server has written its slices; said again, it is
// answered again.
struct PsCut {
  std::uint64_t number = 0;
  std::string directory;
  ANTDT_MESSAGE("ps-cut") {
    v("number", m.number);
    v("directory", m.directory);
  }
};
// The files of this server's slices, of the state after `version` updates: the
// same on all servers. `pause_us`: how long it answered nobody for it.
struct PsSaved {
  std::uint64_t number = 0;
  std::uint64_t version = 0;
  std::uint64_t pause_us = 0;
  std::vector<CheckpointFile> files;
  std::vector<PsPlaces> places;  // of the workers whose home this is, in that state
  std::string error;             // not empty: they could not be written, and why
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
