// Sums of time accounts, and of other counts of workers.
#pragma once

#include "core/wire/worker_messages.h"

namespace antdt::wire {

inline TimeAccount& operator+=(TimeAccount& sum, const TimeAccount& more) {
  sum.compute += more.compute;
  sum.data += more.data;
  sum.collective_wait += more.collective_wait;
  sum.shard_wait += more.shard_wait;
  sum.reconfigure += more.reconfigure;
  sum.checkpoint += more.checkpoint;
  sum.startup += more.startup;
  sum.other += more.other;
  return sum;
}

inline TableSums& operator+=(TableSums& sum, const TableSums& more) {
  sum.as_rows += more.as_rows;
  sum.as_whole += more.as_whole;
  return sum;
}

inline ShadowSums& operator+=(ShadowSums& sum, const ShadowSums& more) {
  sum.exchanges += more.exchanges;
  sum.steps += more.steps;
  sum.gap_us += more.gap_us;
  sum.waited_us += more.waited_us;
  return sum;
}

inline UpdateSums& operator+=(UpdateSums& sum, const UpdateSums& more) {
  sum.messages += more.messages;
  sum.whole += more.whole;
  sum.elements += more.elements;
  sum.sent += more.sent;
  sum.bytes += more.bytes;
  sum.dense_bytes += more.dense_bytes;
  return sum;
}

// The sum of all parts, in seconds.
[[nodiscard]] inline double total(const TimeAccount& t) {
  return t.compute + t.data + t.collective_wait + t.shard_wait + t.reconfigure + t.checkpoint +
         t.startup + t.other;
}

}  // namespace antdt::wire
