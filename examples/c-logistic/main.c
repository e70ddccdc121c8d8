/* Logistic regression by AntDT's C interface: the whole of a worker in a hundred lines.
 *
 * The data are made by a formula, so that record i is the same everywhere: 20 features in [-1, 1),
 * and a label that a hidden linear model gives, with noise. Run it alone, or as the workers of
 * job.toml. */
#include <antdt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { RECORDS = 20000, FEATURES = 20, PARAMETERS = FEATURES + 1 };
static const double kLearningRate = 0.5;

typedef struct {
  double weights[PARAMETERS];  /* the state: the last one is the bias */
  double gradient[PARAMETERS]; /* of the step under way */
  double loss, weight;         /* of the epoch, as this worker saw it */
} model;

/* A number in [0, 1) from two numbers. */
static double noise(uint64_t record, uint64_t what) {
  uint64_t x = record * 0x9e3779b97f4a7c15u + what * 0xbf58476d1ce4e5b9u + 1;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return (double)((x ^ (x >> 31)) >> 11) / 9007199254740992.0;
}

static double read_record(uint64_t record, double* features) {
  double hidden = 0.3;
  for (int f = 0; f < FEATURES; ++f) {
    features[f] = 2 * noise(record, (uint64_t)f) - 1;
    hidden += (f % 2 ? -1.5 : 1.0) * features[f];
  }
  features[FEATURES] = 1;
  return noise(record, 99) < 1 / (1 + exp(-2 * hidden)) ? 1 : 0;
}

static int compute(antdt_job* job, model* m, const antdt_order* order) {
  double loss = 0, x[PARAMETERS];
  for (uint64_t i = 0; i < order->count; ++i) {
    const double label = read_record(order->records[i], x);
    double score = 0;
    for (int p = 0; p < PARAMETERS; ++p) score += m->weights[p] * x[p];
    const double error = 1 / (1 + exp(-score)) - label;
    for (int p = 0; p < PARAMETERS; ++p) m->gradient[p] += error * x[p];
    loss += log1p(exp(label > 0 ? -score : score));
  }
  m->loss += loss;
  m->weight += (double)order->count;
  return antdt_done_compute(job, (double)order->count, loss);
}

static int obey(antdt_job* job, model* m, const antdt_order* order) {
  switch (order->kind) {
    case ANTDT_ORDER_COMPUTE:
      return compute(job, m, order);
    case ANTDT_ORDER_REDUCE:
      if (antdt_reduce(job, m->gradient, PARAMETERS, ANTDT_F64) < 0) return ANTDT_INTERNAL;
      while (antdt_wait(job, 1000) == ANTDT_TIMEOUT) {
      }
      break;
    case ANTDT_ORDER_APPLY:
      for (int p = 0; p < PARAMETERS; ++p) {
        m->weights[p] -= kLearningRate * order->rate * m->gradient[p] / order->weight;
        m->gradient[p] = 0;
      }
      break;
    case ANTDT_ORDER_DISCARD:
    case ANTDT_ORDER_STATE_REPLACED:
      for (int p = 0; p < PARAMETERS; ++p) m->gradient[p] = 0;
      break;
    case ANTDT_ORDER_PHASE_BEGIN:
      m->loss = m->weight = 0;
      break;
    case ANTDT_ORDER_PHASE_END:
      if (order->complete && m->weight > 0) {
        printf("epoch %d: loss %.4f\n", (int)order->epoch, m->loss / m->weight);
        fflush(stdout);
      }
      break;
  }
  return antdt_done(job);
}

static int fail(void) {
  fprintf(stderr, "antdt-example-c-logistic: %s\n", antdt_last_error());
  return 1;
}

int main(void) {
  static model m;
  antdt_options options = ANTDT_OPTIONS_INIT;
  const antdt_part weights = {sizeof(antdt_part), ANTDT_F64, "weights", m.weights,
                              sizeof(m.weights),  NULL,      0,         0};
  antdt_order order = {.struct_size = sizeof(antdt_order)};
  antdt_job* job;
  int code;
  options.records = RECORDS;
  options.fingerprint = "c-logistic formula 1";
  options.epochs = 3; /* where there is no job.toml that says so */
  options.micro_batch = 64;
  if (antdt_open(&options, &job) != ANTDT_OK || antdt_register(job, &weights) != ANTDT_OK) {
    return fail();
  }
  while ((code = antdt_next(job, &order, 1000)) >= 0) {
    if (code == ANTDT_TIMEOUT) continue;
    if (order.kind == ANTDT_ORDER_LEAVE) break;
    if (obey(job, &m, &order) < 0) return fail();
  }
  if (code < 0) return fail();
  if (order.text[0] != '\0') fprintf(stderr, "antdt-example-c-logistic: %s\n", order.text);
  antdt_close(job);
  return order.code;
}
