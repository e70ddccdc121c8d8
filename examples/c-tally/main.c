/* A worker that counts how often each record enters the state: a counter for each number below
 * RECORDS, to which a step adds one for each of its records. When the job ends each counter is
 * job.epochs, however often processes died on the way. Usage: antdt-example-c-tally RECORDS
 * [FINGERPRINT]
 *
 * The first half of the counters are float, the others double, as a program may have both. */
#include <antdt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  uint64_t records, half;
  float *low, *low_step;    /* of the records below `half` */
  double *high, *high_step; /* of the others */
} tally;

static int fail(const char* what) {
  fprintf(stderr, "antdt-example-c-tally: %s: %s\n", what, antdt_last_error());
  return 1;
}

static void forget_step(tally* t) {
  memset(t->low_step, 0, t->half * sizeof(float));
  memset(t->high_step, 0, (t->records - t->half) * sizeof(double));
}

static int compute(antdt_job* job, tally* t, const antdt_order* order) {
  for (uint64_t i = 0; i < order->count; ++i) {
    const uint64_t record = order->records[i];
    if (record >= t->records) return antdt_failed(job, "a record that there is not");
    if (record < t->half) {
      t->low_step[record] += 1;
    } else {
      t->high_step[record - t->half] += 1;
    }
  }
  return antdt_done_compute(job, (double)order->count, 0);
}

static int reduce(antdt_job* job, tally* t) {
  /* INTERRUPTED is no error: a member is gone, and the order to discard follows. */
  if (antdt_reduce(job, t->low_step, t->half, ANTDT_F32) < 0) return ANTDT_INTERNAL;
  if (antdt_reduce(job, t->high_step, t->records - t->half, ANTDT_F64) < 0) return ANTDT_INTERNAL;
  while (antdt_wait(job, 1000) == ANTDT_TIMEOUT) {
  }
  return antdt_done(job);
}

static int obey(antdt_job* job, tally* t, const antdt_order* order) {
  switch (order->kind) {
    case ANTDT_ORDER_COMPUTE:
      return compute(job, t, order);
    case ANTDT_ORDER_REDUCE:
      return reduce(job, t);
    case ANTDT_ORDER_APPLY:
      for (uint64_t i = 0; i < t->half; ++i) t->low[i] += t->low_step[i];
      for (uint64_t i = 0; i < t->records - t->half; ++i) t->high[i] += t->high_step[i];
      forget_step(t);
      return antdt_done(job);
    case ANTDT_ORDER_DISCARD:
    case ANTDT_ORDER_STATE_REPLACED:
      forget_step(t);
      return antdt_done(job);
    case ANTDT_ORDER_EVALUATE: {
      antdt_metrics sums = {.struct_size = sizeof(sums), .records = order->count, .correct = order->count};
      return antdt_done_evaluate(job, &sums);
    }
    default:
      return antdt_done(job);
  }
}

static int register_part(antdt_job* job, const char* name, int dtype, void* data, uint64_t bytes) {
  antdt_part part = {sizeof(part), dtype, name, data, bytes, NULL, 0, 0};
  return antdt_register(job, &part);
}

int main(int argc, char** argv) {
  tally t;
  antdt_options options = ANTDT_OPTIONS_INIT;
  antdt_order order = {0};
  antdt_job* job = NULL;
  int code;

  t.records = argc > 1 ? strtoull(argv[1], NULL, 10) : 20000;
  t.half = t.records / 2;
  t.low = calloc(t.half + 1, sizeof(float));
  t.low_step = calloc(t.half + 1, sizeof(float));
  t.high = calloc(t.records - t.half + 1, sizeof(double));
  t.high_step = calloc(t.records - t.half + 1, sizeof(double));
  if (!t.low || !t.low_step || !t.high || !t.high_step) return 1;

  options.records = t.records;
  options.fingerprint = argc > 2 ? argv[2] : NULL;
  options.epochs = 2; /* without a job */
  if (antdt_open(&options, &job) != ANTDT_OK) return fail("cannot open the job") + 1;
  if (register_part(job, "low", ANTDT_F32, t.low, t.half * sizeof(float)) != ANTDT_OK ||
      register_part(job, "high", ANTDT_F64, t.high, (t.records - t.half) * sizeof(double)) !=
          ANTDT_OK) {
    return fail("cannot register the counters");
  }
  order.struct_size = sizeof(order);
  do {
    code = antdt_next(job, &order, 60000);
    if (code == ANTDT_OK && order.kind != ANTDT_ORDER_LEAVE) code = obey(job, &t, &order);
    if (code < 0) return fail(antdt_order_name(order.kind));
  } while (order.kind != ANTDT_ORDER_LEAVE);
  if (*order.text) fprintf(stderr, "antdt-example-c-tally: %s\n", order.text);
  if (!getenv("ANTDT_SOCKET"))
    printf("record 0: %g, record %llu: %g\n", (double)t.low[0], (unsigned long long)(t.records - 1),
           t.high[t.records - t.half - 1]);
  code = order.code;
  antdt_close(job);
  return code;
}
