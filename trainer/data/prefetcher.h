// Reads records ahead of the training thread.
//
// Its thread takes pieces of shards (Client::take), turns their positions into
// record numbers and decodes them, a few micro-batches ahead and no further:
// what it took cannot be recalled any more.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "core/clock.h"
#include "core/result.h"
#include "trainer/client/client.h"
#include "trainer/data/dataset.h"

namespace antdt::data {

struct Batch {
  client::TakeStatus status = client::TakeStatus::kWait;
  Examples examples;  // empty unless status is kData
};

class Prefetcher {
 public:
  // Where pieces come from: Client::take, or a fake.
  using Take = std::function<Result<client::Taken>(std::uint64_t max_records, Duration timeout)>;

  explicit Prefetcher(Take take);
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // Starts to take and read with `reader`, which must outlive the phase. Call
  // it after Client::begin_phase.
  void start(RecordReader& reader);
  // Takes nothing more and forgets what was read ahead; returns when the thread
  // is idle. Call it before Client::begin_phase.
  void stop();

  // How many records may be taken and not consumed. Unless set, three times
  // the size last asked for; nothing before the first next().
  void set_read_ahead(std::uint64_t records);

  // The next records, at most n (n > 0; it may change at any time). kData: as
  // many as there are once n are, or the timeout is over, or the shard service
  // has no more now. kWait: none (after the timeout, or 2 ms when the service
  // said so). kEnd: the phase is over. An error of taking or reading is final
  // until start().
  [[nodiscard]] Result<Batch> next(std::size_t n, Duration timeout);
  // The records that next() would answer without waiting; nothing when it would wait, or
  // has none or an error to answer.
  [[nodiscard]] std::optional<Examples> next_at_hand(std::size_t n);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace antdt::data
