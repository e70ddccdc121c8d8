// Reads records in advance of the training thread.
//
// Its thread takes pieces of shards (Client::take), converts their positions into record numbers
// and decodes them, a few micro-batches in advance and no further, because what it took cannot be
// recalled any more.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/clock.h"
#include "core/result.h"
#include "trainer/client/client.h"
#include "trainer/data/dataset.h"

namespace antdt::data {

struct Batch {
  client::TakeStatus status = client::TakeStatus::kWait;
  Examples examples;                     // empty unless status is kData
  std::vector<wire::Piece> pieces = {};  // which records these are, in their order
};

class Prefetcher {
 public:
  // The source of pieces: Client::take, or a fake.
  using Take = std::function<Result<client::Taken>(std::uint64_t max_records, Duration timeout)>;

  explicit Prefetcher(Take take);
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // Starts to take and read with `reader`, which must outlive the phase. Call it after
  // Client::begin_phase.
  void start(RecordReader& reader);
  // Takes nothing more and forgets what was read in advance; returns when the thread is idle. Call
  // it before Client::begin_phase.
  void stop();

  // How many records may be taken and not consumed. By default three times the size of the last
  // request, and none before the first next().
  void set_read_ahead(std::uint64_t records);

  // The next records, at most n (n > 0; it may change at any time). kData: n records or, if the
  // timeout is over or the shard service has no more now, fewer. kWait: none (after the timeout, or
  // after 2 ms if the service said that it has none). kEnd: the phase is over. An error of taking
  // or reading is final until start().
  [[nodiscard]] Result<Batch> next(std::size_t n, Duration timeout);
  // The records that next() would return without waiting; empty if it would wait, or has no records
  // or an error.
  [[nodiscard]] std::optional<Examples> next_at_hand(std::size_t n);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace antdt::data
