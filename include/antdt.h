/* antdt.h: any program as a worker of AntDT.
 *
 * libantdt takes part in a job for the program that links it: it speaks with the agent, forms
 * generations with the other members, keeps the training state alike on all of them, writes and
 * reads checkpoints, and accounts for each record. The program owns its loop, its model and its
 * data. docs/c-api.md walks through it; examples/c-logistic is a whole program.
 *
 * Two levels:
 *   full   a member of a job with trainer.sync = "allreduce": antdt_open, antdt_register,
 *          then antdt_next and an answer, until the order is to leave;
 *   loose  a program that only takes records and reports times: antdt_loose_*.
 *
 * Outside a job (ANTDT_SOCKET is not set) the same program runs as a world of one: the library
 * plays a job of `epochs` over `records` in the process itself, without daemons and checkpoints.
 *
 * Results. Every function that returns int returns ANTDT_OK, a positive number for something that
 * is no error, or a negative one for an error; antdt_last_error() has the error in words.
 *
 * Threads. A handle may be used from any thread, and from several: each call locks for itself.
 * One thread at a time makes sense of orders and answers; antdt_reduce, antdt_wait, antdt_ahead,
 * antdt_is_over, antdt_skip and antdt_leave are meant for others, too.
 *
 * Blocking. Only functions with timeout_ms wait, and no longer than that; 0 does not wait.
 * antdt_close waits until the threads of the library have ended, which takes a second at most
 * unless a disk does not answer.
 *
 * Processes. A handle is of the process that opened it. In a child that it forks every call
 * fails with ANTDT_FORKED; open in the child instead, or start the child before antdt_open.
 * Children that never call the library (as the workers of a data loader) are no problem.
 * A process opens one handle at a time, since an agent knows a worker by its process.
 *
 * Pointers that are passed in are read during the call, unless it says otherwise. */
#ifndef ANTDT_H
#define ANTDT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Grows when a function or a field changes its meaning. Fields and functions are added without. */
#define ANTDT_ABI_VERSION 1

#if defined(_WIN32)
#error "AntDT is for Linux"
#endif
#define ANTDT_API __attribute__((visibility("default")))

/* ----------------------------------------------------------------------------------- results */

enum {
  ANTDT_OK = 0,
  ANTDT_TIMEOUT = 1,     /* not within timeout_ms; nothing has changed: call again */
  ANTDT_INTERRUPTED = 2, /* the generation is over, or the phase: go on with antdt_next */

  ANTDT_USAGE = -1,       /* the call is wrong, or comes at the wrong moment */
  ANTDT_CONFIG = -2,      /* the job, the environment or the options do not fit this program */
  ANTDT_UNREACHABLE = -3, /* no agent answers */
  ANTDT_REFUSED = -4,     /* the agent refuses this process: another attempt is in its place */
  ANTDT_IO = -5,
  ANTDT_FORKED = -6, /* the handle is of the process that made this one */
  ANTDT_ENDED = -7,  /* the order to leave has been given; nothing follows */
  ANTDT_INTERNAL = -8
};

/* The last error of the calling thread in words, "" if there was none. Valid until the thread's
 * next call of the library. */
ANTDT_API const char* antdt_last_error(void);
/* ANTDT_ABI_VERSION of the library that is loaded, and its release, as "0.1.0". */
ANTDT_API uint32_t antdt_abi_version(void);
ANTDT_API const char* antdt_version(void);

/* ----------------------------------------------------------------------------- opening a job */

typedef struct antdt_job antdt_job;

enum {
  /* The registered parts are copies of the state, which the program brings up to date when it
   * gets ANTDT_ORDER_STATE_WANTED. Without: they are the state, always up to date between
   * answer and order. */
  ANTDT_STATE_ON_REQUEST = 1,
  /* No world of one: without a job antdt_open fails. */
  ANTDT_ONLY_IN_A_JOB = 2,
  /* World of one: records in their order, not in a seeded one. */
  ANTDT_NO_SHUFFLE = 4
};

/* Begin with ANTDT_OPTIONS_INIT; what is 0 or NULL has the value in parentheses. */
typedef struct antdt_options {
  uint32_t struct_size; /* sizeof(antdt_options) */
  uint32_t abi_version; /* ANTDT_ABI_VERSION */
  uint32_t flags;       /* of ANTDT_STATE_ON_REQUEST and so on, added */
  uint32_t timeout_ms;  /* for the agent's answer (10000) */
  /* What the program's data are. In a job they are compared with [data] and among the members,
   * and a difference is refused (not told: not compared). `fingerprint` is any text that is the
   * same exactly where the data and how they become records are. */
  uint64_t records;      /* to train on; needed in a world of one */
  uint64_t eval_records; /* to evaluate on (none) */
  const char* fingerprint;
  /* What it computes on: alike devices have the same name; samples that fit at once (any). */
  const char* device;
  uint32_t max_micro_batch;
  /* The world of one: how often all records, how many at once (32), how many times before they
   * are applied (1). In a job job.toml says so. */
  uint32_t epochs; /* (1) */
  uint32_t micro_batch;
  uint32_t accumulation;
  uint64_t seed;       /* of the order of the records */
  uint64_t read_ahead; /* records that antdt_ahead can tell of (three micro-batches) */
} antdt_options;

#define ANTDT_OPTIONS_INIT \
  { sizeof(antdt_options), ANTDT_ABI_VERSION, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Connects to the agent that the environment names, or begins a world of one. `options` may be
 * NULL in a job. The job hears of this member with the first antdt_next.
 * ANTDT_CONFIG, ANTDT_UNREACHABLE, ANTDT_REFUSED. */
ANTDT_API int antdt_open(const antdt_options* options, antdt_job** job);

/* Ends this member's part, whatever it does, and frees the handle (NULL is fine). The program has
 * to answer nothing before, and no other thread may be in a call. */
ANTDT_API void antdt_close(antdt_job* job);

typedef struct antdt_about {
  uint32_t struct_size; /* sizeof(antdt_about), set by the caller */
  uint32_t in_job;      /* 0: a world of one */
  const char* job;      /* id */
  const char* worker;   /* "w0" */
  const char* host;
  const char* run_dir;     /* "" in a world of one */
  const char* config_json; /* the job's configuration, defaults filled in */
  uint32_t attempt;        /* how often this worker was started, from 1 */
  uint32_t reserved;
} antdt_about;

/* The texts live as long as the handle. */
ANTDT_API int antdt_describe(antdt_job* job, antdt_about* about);

/* ------------------------------------------------------------------------- the training state */

enum {
  ANTDT_BYTES = 0, /* anything that is the same bytes on every member */
  ANTDT_F32 = 1,
  ANTDT_F64 = 2,
  ANTDT_F16 = 3,
  ANTDT_BF16 = 4,
  ANTDT_I64 = 5,
  ANTDT_I32 = 6,
  ANTDT_I16 = 7,
  ANTDT_I8 = 8,
  ANTDT_U8 = 9,
  ANTDT_BOOL = 10
};

/* A part of the training state: whatever has to be alike on all members so that they go on alike.
 * Parameters, the optimizer's state, buffers, counters, generators. Not gradients. */
typedef struct antdt_part {
  uint32_t struct_size; /* sizeof(antdt_part) */
  int32_t dtype;        /* ANTDT_F32 and so on */
  const char* name;     /* of letters, digits and "._-/", unique */
  void* data;           /* belongs to the program, and stays there while it is registered */
  uint64_t bytes;
  const uint64_t* shape; /* for who reads a checkpoint; NULL: one dimension */
  uint32_t dimensions;
  uint32_t reserved;
} antdt_part;

/* Registers a part; a name that is registered already gets this memory, size and type instead.
 * All members register the same names with the same sizes in the same order. What the parts hold at
 * first may differ: a job that begins goes on with the state of the member of rank 0.
 *
 * Before the first antdt_next: freely. Afterwards while an order is in hand: the same size in
 * other memory in any order, since that changes no state; a new part or another size only in
 * ANTDT_ORDER_APPLY, by all members at the same step. A process that joins later must have
 * registered the parts as they are by then before its first antdt_next; else it cannot take
 * the state over and is refused. Register what an optimizer makes lazily in the beginning.
 *
 * The library reads the parts (hashes, sends, writes) and writes them (receives, reads a
 * checkpoint) between the answer to an order and the next order: nobody else may then. */
ANTDT_API int antdt_register(antdt_job* job, const antdt_part* part);
/* At the same moments as a new part. */
ANTDT_API int antdt_unregister(antdt_job* job, const char* name);

/* ----------------------------------------------------------------------------------- orders */

/* What each order wants, and with what it is answered (antdt_failed answers any). */
enum {
  /* Add the gradient of the sum of weighted losses over `records`; with `last` nothing more is
   * computed in this step, and antdt_reduce may be called as soon as a buffer is complete.
   * -> antdt_done_compute */
  ANTDT_ORDER_COMPUTE = 1,
  /* antdt_reduce for each buffer that was not reduced during a `last` compute, antdt_wait, then
   * -> antdt_done. Comes in each step, also if this member computed nothing in it: then its buffers
   * are zeros. */
  ANTDT_ORDER_REDUCE = 2,
  /* One step of the optimizer with the summed gradients divided by `weight`, at `rate` times the
   * learning rate of the program; then the gradients are zero again. -> antdt_done */
  ANTDT_ORDER_APPLY = 3,
  /* This step is void: the gradients are zero again, nothing else changes. -> antdt_done */
  ANTDT_ORDER_DISCARD = 4,
  /* -> antdt_done_evaluate with sums over `records` */
  ANTDT_ORDER_EVALUATE = 5,
  /* The registered parts were written (healed from another member, or read from a checkpoint): take
   * over what the program keeps beside them. The gradients are zero again. -> antdt_done */
  ANTDT_ORDER_STATE_REPLACED = 6,
  /* With ANTDT_STATE_ON_REQUEST: bring the registered parts up to date. -> antdt_done */
  ANTDT_ORDER_STATE_WANTED = 7,
  /* A phase of training or evaluation begins; the same `phase` again after the membership changed:
   * it goes on with what is left of it. -> antdt_done */
  ANTDT_ORDER_PHASE_BEGIN = 8,
  /* It is over: `complete`, or broken off because the membership changes. -> antdt_done */
  ANTDT_ORDER_PHASE_END = 9,
  /* The end: antdt_close, and exit with `code`. `text` says why, where it is an error.
   * Not answered. */
  ANTDT_ORDER_LEAVE = 10
};

typedef struct antdt_order {
  uint32_t struct_size; /* sizeof(antdt_order), set by the caller */
  int32_t kind;         /* ANTDT_ORDER_... */
  /* In every order but LEAVE: */
  uint64_t step;  /* steps that are in the state */
  uint64_t phase; /* number of the phase that goes on, or went on last; from 1 */
  uint64_t epoch; /* from 0 */
  uint64_t generation;
  uint32_t rank;
  uint32_t size;
  int32_t evaluation; /* the phase evaluates; 0: it trains */
  /* COMPUTE: */
  int32_t last;
  /* COMPUTE, EVALUATE: numbers of records, below those of [data]; valid until the answer. */
  const uint64_t* records;
  uint64_t count;
  uint64_t position; /* of the first of them among those of the phase: see antdt_ahead */
  /* APPLY: */
  double weight; /* of all members' records in this step, above 0 */
  double rate;   /* factor of the learning rate, by the job's plan */
  /* PHASE_BEGIN: */
  uint64_t phase_records;   /* of the phase in all, of all members */
  uint64_t phase_committed; /* of them already done before */
  /* PHASE_END: */
  int32_t complete;
  /* LEAVE: */
  int32_t code;
  const char* text; /* valid as long as the handle */
} antdt_order;

/* The next order. ANTDT_USAGE while one is unanswered. After the order to leave: ANTDT_ENDED. */
ANTDT_API int antdt_next(antdt_job* job, antdt_order* order, uint32_t timeout_ms);
/* "compute" for ANTDT_ORDER_COMPUTE, and so on. */
ANTDT_API const char* antdt_order_name(int32_t kind);

/* Answers. None waits. ANTDT_USAGE if no such order is in hand. */
ANTDT_API int antdt_done(antdt_job* job);
/* Sums over the order's records, not means: weights, and weighted losses (natural logarithm). Who
 * weighs all records alike says their number; of text it may be the number of tokens. */
ANTDT_API int antdt_done_compute(antdt_job* job, double weight, double loss);

/* The classes of scores by predicted probability that AUC is computed of. */
#define ANTDT_SCORE_BINS 16384
/* One of the sums that only the program knows the meaning of (true positives, tokens). The name has
 * 1 to 64 letters, digits and _ - . / @; an evaluation has at most 64 of them. */
typedef struct antdt_sum {
  const char* name;
  double sum; /* over records */
} antdt_sum;
typedef struct antdt_metrics {
  uint32_t struct_size; /* sizeof(antdt_metrics) */
  uint32_t bins;        /* entries of the three arrays; 0: no binary scores */
  uint64_t records;
  double loss_sum;  /* natural logarithm */
  uint64_t correct; /* classification: right at argmax, or at 0.5 */
  /* Which bins are not empty, rising, each below ANTDT_SCORE_BINS, and how many records of
   * class 0 and of class 1 are in each. */
  const uint32_t* bin;
  const uint64_t* negatives;
  const uint64_t* positives;
  const antdt_sum* named; /* in any order, each name once */
  uint64_t named_count;
} antdt_metrics;
ANTDT_API int antdt_done_evaluate(antdt_job* job, const antdt_metrics* sums);

/* What the job's newest evaluation found, over the records of all members. */
typedef struct antdt_evaluation {
  uint32_t struct_size; /* sizeof(antdt_evaluation), set by the caller */
  uint32_t reserved;
  uint64_t epoch;   /* after which it was */
  uint64_t records; /* 0: there was none yet */
  double log_loss;  /* a record; NaN here and below: nobody summed for it */
  double accuracy;
  double auc;
  const antdt_sum* named; /* by name; valid until the next antdt_evaluated or antdt_close */
  uint64_t named_count;
} antdt_evaluation;
/* Known from the order that follows the evaluation's PHASE_END: PHASE_BEGIN or LEAVE. In a world of
 * one the program's own sums are all there is, and `records` stays 0. */
ANTDT_API int antdt_evaluated(antdt_job* job, antdt_evaluation* evaluation);

/* Answers any order: the program cannot do it, and why. The member leaves, the others go on; the
 * next order is LEAVE with code 1 and this text, which the job records. */
ANTDT_API int antdt_failed(antdt_job* job, const char* why);

/* During COMPUTE or EVALUATE: one of its records cannot be used. It has whatever weight the answer
 * has for it (none, usually). If the step completes, the audit counts it as skipped, by reason (at
 * most 200 bytes of it), and not as trained; else it is given out again.
 * RUN_DIR/skipped-<worker>.jsonl keeps it. */
ANTDT_API int antdt_skip(antdt_job* job, uint64_t record, const char* reason);

/* -------------------------------------------------------------------------------- reductions */

/* The `count` values become their sums over all members, the same bits on each. Returns at once: a
 * thread of the library works through them in the order of the calls, which is the same on all
 * members, as are counts and types (ANTDT_F32, ANTDT_F64). The memory is the library's until
 * antdt_wait has said ANTDT_OK or ANTDT_INTERRUPTED. In REDUCE, and in COMPUTE with `last`.
 * ANTDT_INTERRUPTED: it cannot be any more; antdt_wait, then answer. */
ANTDT_API int antdt_reduce(antdt_job* job, void* values, uint64_t count, int32_t dtype);
/* Until all are summed. ANTDT_INTERRUPTED: a member is gone, and what the buffers hold is worth
 * nothing; answer the order (antdt_done), DISCARD follows. */
ANTDT_API int antdt_wait(antdt_job* job, uint32_t timeout_ms);

/* -------------------------------------------------------------------------------- on the way */

/* 1: the generation is over, and what is computed now will be discarded: answer soon, with whatever
 * weight. 0: it goes on. */
ANTDT_API int antdt_is_over(antdt_job* job);
/* The records of phase `phase` of generation `generation` that come next to this member, so that
 * they can be read ahead: `count` of them, one at least and `capacity` at most, from position
 * `*from` on. order.position counts the same way, from 0 at PHASE_BEGIN; what was given in orders
 * already is passed over, and `*from` says where `records` begin. What is told comes in this order,
 * if the phase is not broken off before. ANTDT_INTERRUPTED: the phase has ended, or another
 * generation has begun it. */
ANTDT_API int antdt_ahead(antdt_job* job, uint64_t generation, uint64_t phase, uint64_t* from,
                          uint64_t* records, uint64_t capacity, uint64_t* count,
                          uint32_t timeout_ms);
/* The training ends with what is in the state after the step under way, for all members; one
 * member's word is enough, whoever says it and however often. `reason` (at most 200 bytes of it)
 * is in the job's summary. What is left of the epoch is not trained, and counted as skipped for
 * this reason. The phase breaks off for all (PHASE_END) and begins again with nothing left of it
 * (PHASE_BEGIN); an evaluation follows if the job evaluates and something of the epoch was trained,
 * then the model is kept, and LEAVE comes with code 0: the job is done. After the first
 * antdt_next. */
ANTDT_API int antdt_end_training(antdt_job* job, const char* reason);
/* Asks to leave at the end of the step, as SIGTERM does of antdt-trainer. LEAVE follows, with code
 * 75 where the job goes on. May be called from a signal handler. */
ANTDT_API int antdt_leave(antdt_job* job);

/* ---------------------------------------------------------------------------- the loose level */

typedef struct antdt_loose antdt_loose;

typedef struct antdt_work {
  uint32_t struct_size; /* sizeof(antdt_work), set by the caller */
  int32_t evaluation;   /* 0: to train on */
  uint64_t epoch;
  const uint64_t* records; /* valid until the next antdt_loose_next */
  uint64_t count;
} antdt_work;

/* As antdt_open. For one thread at a time. */
ANTDT_API int antdt_loose_open(const antdt_options* options, antdt_loose** loose);
/* Says that the records before are done, and gives at most max_records more. ANTDT_ENDED: the job
 * is over, or this worker is to leave. */
ANTDT_API int antdt_loose_next(antdt_loose* loose, uint64_t max_records, antdt_work* work,
                               uint32_t timeout_ms);
/* One of the records of the last work cannot be used: if they are done (antdt_loose_next says so),
 * the audit counts it as skipped, by reason, and not as trained. As antdt_skip. */
ANTDT_API int antdt_loose_skip(antdt_loose* loose, uint64_t record, const char* reason);
/* What the last work took, in seconds: waiting for data, computing, waiting for others. */
ANTDT_API int antdt_loose_report(antdt_loose* loose, double data, double compute, double wait);
ANTDT_API int antdt_loose_describe(antdt_loose* loose, antdt_about* about);
ANTDT_API void antdt_loose_close(antdt_loose* loose);

/* ------------------------------------------------------------------------------------ data */

/* Text files as numbered records: record i is line i, the files in their order, from 0. Files may
 * be packed by gzip or zstd. An index says where each record begins, so that any of them is read
 * without what is before it; it is built in one pass when there is none yet (docs/data.md). Needs
 * no job. A handle is for one thread at a time. A child that was forked may use its copy, if no
 * other thread was in a call. A file that cannot be read any more (its disk fails, or it was cut
 * short) is a SIGBUS, which is left to the program. */
typedef struct antdt_data antdt_data;

enum {
  /* The index lies beside the first file (in .antdt-index/), where all hosts that share the files
   * find it. Without: in the user's cache directory. */
  ANTDT_DATA_INDEX_BESIDE = 1
};

typedef struct antdt_data_options {
  uint32_t struct_size; /* sizeof(antdt_data_options) */
  uint32_t flags;       /* of ANTDT_DATA_INDEX_BESIDE */
  const char* const* paths;
  uint64_t path_count;   /* 1 or more */
  const char* cache_dir; /* for the index; NULL: $XDG_CACHE_HOME/antdt/index or its usual place */
} antdt_data_options;

/* Reads the index, or builds it; others that open the same files meanwhile wait for that. The
 * process that an agent started tells its job how far it is, until it joins: the job waits.
 * ANTDT_CONFIG: a file is missing, empty, damaged or packed by something else; ANTDT_IO. */
ANTDT_API int antdt_data_open(const antdt_data_options* options, antdt_data** data);

typedef struct antdt_data_about {
  uint32_t struct_size; /* sizeof(antdt_data_about), set by the caller */
  uint32_t reserved;
  uint64_t records;
  const char* fingerprint; /* of the files' contents, in order; for antdt_options.fingerprint */
} antdt_data_about;

/* The text lives as long as the handle. */
ANTDT_API int antdt_data_describe(antdt_data* data, antdt_data_about* about);

typedef struct antdt_data_records {
  uint32_t struct_size; /* sizeof(antdt_data_records), set by the caller */
  uint32_t reserved;
  const char* bytes;    /* one record behind the other, without line ends; not ended by 0 */
  const uint64_t* ends; /* record i of the call is bytes ends[i - 1] (0 for the first) to ends[i] */
  uint64_t count;
} antdt_data_records;

/* These records, in this order. What `read` points to is valid until the next call with this
 * handle. ANTDT_USAGE: there is no such record; ANTDT_CONFIG: a file is not the one that was
 * indexed. */
ANTDT_API int antdt_data_read(antdt_data* data, const uint64_t* records, uint64_t count,
                              antdt_data_records* read);
ANTDT_API void antdt_data_close(antdt_data* data);

/* For a program that opens its data, or the weights of its model, by other means, before it joins:
 * it is at done_bytes of total_bytes of `path` (0: the total is not known). `antdt status` shows
 * that, and the job waits for it to join as long as bytes move. To be called as often as is
 * convenient: at most one message a second is sent. `path` NULL: they are open. Any thread; outside
 * of a job, in a process that no agent started, and after it has joined it does nothing.
 * ANTDT_USAGE: flags has an unknown bit. */
ANTDT_API int antdt_data_progress(const char* path, uint64_t done_bytes, uint64_t total_bytes,
                                  uint32_t flags);

enum {
  /* Another process indexes the data, and is at done_bytes; this one waits for it. */
  ANTDT_DATA_WAITS = 1
};

/* --------------------------------------------------------------------------------- tracing */

/* For a tracer inside a script that knows nothing of its job (protocol "torchrun"): what its steps
 * take, which collective it is in, and where each thread is when the ranks hang. python/antdt/trace
 * is one. One thread steps; any thread may do the rest. docs/torchrun. */
typedef struct antdt_trace antdt_trace;

typedef struct antdt_trace_state {
  uint32_t struct_size; /* sizeof(antdt_trace_state) */
  uint32_t rank;
  uint32_t world_size;
  int32_t samples_known; /* 0: nobody knows how many samples a step has */
  uint64_t steps;
  uint64_t samples;
  uint64_t collectives; /* that were entered */
  uint64_t inside_ms;   /* in the present one */
  const char* inside;   /* its name; NULL: in none */
  const char* where;    /* that it was called from, "train.py:41 in main" */
  const char* runs;     /* "torch 2.5.1, Python 3.11.2" */
} antdt_trace_state;

/* By the environment, as antdt_open; never a world of one. */
ANTDT_API int antdt_trace_open(uint32_t timeout_ms, antdt_trace** trace);
/* One step of the optimizer, in seconds of the thread that takes it: waiting for data, computing,
 * waiting for other ranks. 0 samples: not known. Takes longer where a drill says so, by what
 * `added` (may be NULL) tells. */
ANTDT_API int antdt_trace_step(antdt_trace* trace, uint64_t samples, double data, double compute,
                               double wait, double* added);
/* Once a second, and when the rank begins to wait. */
ANTDT_API int antdt_trace_say(antdt_trace* trace, const antdt_trace_state* state);
/* Waits until the job asks for stacks with a higher number than *number, and writes that there. */
ANTDT_API int antdt_trace_asked(antdt_trace* trace, uint64_t* number, uint32_t timeout_ms);
/* The answer; number 0: unasked, since a collective failed here. `inside`: it is in the last of
 * `calls` now. `calls`: the newest collectives, oldest first, each a line of process group (its
 * ranks as "0,2"; empty: all), number in that group, name and place, with tabs between. */
ANTDT_API int antdt_trace_tell(antdt_trace* trace, uint64_t number, int32_t inside,
                               const char* where, const char* stack, const char* calls);
/* From now on a SIGABRT of this process writes a byte to `fd` and ends the process stay_ms later:
 * Gloo aborts a rank that receives more than it waits for, and until then the rank can tell which
 * collective it is in. Ends with antdt_trace_close. */
ANTDT_API int antdt_trace_on_abort(antdt_trace* trace, int32_t fd, uint32_t stay_ms);
/* Says what is left to say, and ends it. */
ANTDT_API void antdt_trace_close(antdt_trace* trace);

#ifdef __cplusplus
}
#endif

#endif /* ANTDT_H */
