#include "trainer/data/prefetcher.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "trainer/data/pieces.h"

namespace antdt::data {
namespace {

using client::TakeStatus;

// stop() waits for a take that is in progress, so a take must not be long.
constexpr Duration kTakeSlice = std::chrono::milliseconds(10);
constexpr Duration kDryWait = std::chrono::milliseconds(2);
constexpr std::uint64_t kReadAheadBatches = 3;

struct Chunk {
  Examples examples;
  std::vector<wire::Piece> pieces;
};

}  // namespace

// `mutex` guards everything except `take` and `thread`.
struct Prefetcher::State {
  Take take;
  std::mutex mutex;
  std::condition_variable changed;
  std::thread thread;

  bool quit = false;
  RecordReader* reader = nullptr;  // null: stopped
  bool busy = false;               // the thread uses the reader without holding the mutex
  std::uint64_t read_ahead = 0;    // 0: follows batch_size
  std::uint64_t batch_size = 0;    // size of the last request

  std::deque<Chunk> chunks;
  std::size_t front_used = 0;  // used records of the first chunk
  std::uint64_t ready = 0;     // records in all chunks, without front_used
  bool dry = false;
  bool ended = false;
  std::optional<Error> error;

  [[nodiscard]] std::uint64_t limit() const {
    return read_ahead > 0 ? read_ahead : kReadAheadBatches * batch_size;
  }
  [[nodiscard]] bool has_work() const {
    return reader != nullptr && !ended && !error && batch_size > 0 && ready < limit();
  }
  void forget() {
    chunks.clear();
    front_used = 0;
    ready = 0;
    dry = ended = false;
    error.reset();
  }

  void run();
  void read_some(std::unique_lock<std::mutex>& lock, std::vector<std::uint64_t>& numbers);
  // Whether next(n) need not wait.
  [[nodiscard]] bool complete(std::uint64_t n) const {
    return ready >= n || ended || (dry && ready > 0);
  }
  [[nodiscard]] Batch extract(std::uint64_t count);
};

void Prefetcher::State::run() {
  std::unique_lock lock(mutex);
  std::vector<std::uint64_t> numbers;
  while (true) {
    changed.wait(lock, [&] { return quit || has_work(); });
    if (quit) return;
    read_some(lock, numbers);
    changed.notify_all();
  }
}

void Prefetcher::State::read_some(std::unique_lock<std::mutex>& lock,
                                  std::vector<std::uint64_t>& numbers) {
  const std::uint64_t want = std::min(batch_size, limit() - ready);
  RecordReader& source = *reader;
  busy = true;
  lock.unlock();
  Examples examples;
  auto taken = take(want, kTakeSlice);
  Status status;
  if (taken && taken->status == TakeStatus::kData) {
    numbers.clear();
    for (const wire::Piece& piece : taken->pieces) add_record_numbers(piece, numbers);
    status = source.read(numbers, examples);
  }
  lock.lock();
  busy = false;
  if (!taken) {
    error = taken.error();
  } else if (!status) {
    error = status.error();
  } else {
    dry = taken->dry;
    ended = taken->status == TakeStatus::kEnd;
    ready += examples.count;
    if (examples.count > 0) chunks.push_back({std::move(examples), std::move(taken->pieces)});
  }
}

Batch Prefetcher::State::extract(std::uint64_t count) {
  Batch batch{TakeStatus::kData, {}, {}};
  ready -= count;
  if (front_used == 0 && chunks.front().examples.count == count) {
    batch.examples = std::move(chunks.front().examples);
    batch.pieces = std::move(chunks.front().pieces);
    chunks.pop_front();
    return batch;
  }
  while (count > 0) {
    const Examples& front = chunks.front().examples;
    const std::size_t to =
        static_cast<std::size_t>(std::min<std::uint64_t>(front.count, front_used + count));
    batch.examples.append(front, front_used, to);
    for (const wire::Piece& piece : cut(chunks.front().pieces, front_used, to)) {
      add_piece(piece, batch.pieces);
    }
    count -= to - front_used;
    front_used = to;
    if (front_used == front.count) {
      chunks.pop_front();
      front_used = 0;
    }
  }
  return batch;
}

Prefetcher::Prefetcher(Take take) : state_(std::make_unique<State>()) {
  state_->take = std::move(take);
  state_->thread = std::thread([state = state_.get()] { state->run(); });
}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->quit = true;
  }
  state_->changed.notify_all();
  state_->thread.join();
}

void Prefetcher::start(RecordReader& reader) {
  const std::lock_guard lock(state_->mutex);
  state_->forget();
  state_->reader = &reader;
  state_->changed.notify_all();
}

void Prefetcher::stop() {
  std::unique_lock lock(state_->mutex);
  state_->reader = nullptr;
  state_->changed.wait(lock, [&] { return !state_->busy; });
  state_->forget();
}

void Prefetcher::set_read_ahead(std::uint64_t records) {
  const std::lock_guard lock(state_->mutex);
  state_->read_ahead = records;
  state_->changed.notify_all();
}

Result<Batch> Prefetcher::next(std::size_t n, Duration timeout) {
  if (n == 0) return fail(ErrorKind::kUsage, "next: asked for no record");
  State& s = *state_;
  const MonoTime begun = std::chrono::steady_clock::now();
  const MonoTime deadline = begun + timeout;
  std::unique_lock lock(s.mutex);
  s.batch_size = n;
  s.changed.notify_all();
  while (true) {
    if (s.error) return tl::unexpected(*s.error);
    if (s.complete(n)) break;
    const MonoTime until = s.dry ? std::min(deadline, begun + kDryWait) : deadline;
    if (std::chrono::steady_clock::now() >= until) break;
    s.changed.wait_until(lock, until);
  }
  if (s.ready == 0) return Batch{s.ended ? TakeStatus::kEnd : TakeStatus::kWait, {}, {}};
  Batch batch = s.extract(std::min<std::uint64_t>(n, s.ready));
  s.changed.notify_all();
  return batch;
}

std::optional<Examples> Prefetcher::next_at_hand(std::size_t n) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  if (n == 0 || s.error || s.ready == 0 || !s.complete(n)) return {};
  Batch batch = s.extract(std::min<std::uint64_t>(n, s.ready));
  s.changed.notify_all();
  return std::move(batch.examples);
}

}  // namespace antdt::data
