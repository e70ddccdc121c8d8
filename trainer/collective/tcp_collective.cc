#include "trainer/collective/tcp_collective.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "trainer/collective/ring_plan.h"
#include "trainer/collective/rounds.h"
#include "trainer/collective/tcp_links.h"

namespace antdt::trainer {
namespace {

// Small enough that sending and adding overlap and that a segment stays in a core's cache; large
// enough that the cost of a message (some 10 us) is negligible.
constexpr std::size_t kSegmentBytes = 256 * 1024;
// Size of the message that measures a hop: large enough to show the link's bandwidth, small enough
// to arrive soon.
constexpr std::size_t kHopBytes = 16 * 1024;

template <class T>
void add_into(T* __restrict sum, const T* __restrict values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) sum[i] += values[i];
}

class TcpCollective final : public Collective {
 public:
  explicit TcpCollective(std::shared_ptr<TcpLinks> links)
      : links_(std::move(links)),
        doubling_(doubling_plan(links_->rank(), links_->size())),
        gathering_(gather_rounds(links_->rank(), links_->size())) {}

  [[nodiscard]] std::uint32_t rank() const override { return links_->rank(); }
  [[nodiscard]] std::uint32_t size() const override { return links_->size(); }
  void abort() override {
    aborted_ = true;
    links_->abort();
  }
  [[nodiscard]] Status allreduce_sum(std::span<float> values) override { return sum(values); }
  [[nodiscard]] Status allreduce_sum(std::span<double> values) override { return sum(values); }
  [[nodiscard]] Status allgather(std::span<const std::byte> mine,
                                 std::span<std::byte> all) override;
  [[nodiscard]] Status allgather_parts(std::span<const std::size_t> sizes,
                                       std::span<std::byte> all) override;
  [[nodiscard]] Status send_right(std::span<const std::byte> bytes) override;
  [[nodiscard]] Status receive_left(std::span<std::byte> bytes) override;
  [[nodiscard]] Result<std::optional<Duration>> measure_hop() override;

 private:
  [[nodiscard]] Status has_neighbour() const {
    if (size() > 1) return {};
    return fail(ErrorKind::kInternal, "a group of one member has no neighbour to pass bytes to");
  }
  [[nodiscard]] Status alone() const {
    if (!aborted_) return {};
    return fail(ErrorKind::kAborted, "the collective of rank {} was aborted", rank());
  }
  template <class T>
  [[nodiscard]] Status sum(std::span<T> values);
  template <class T>
  [[nodiscard]] Status sum_by_doubling(std::span<T> values);
  template <class T>
  [[nodiscard]] Status sum_around_the_ring(std::span<T> values);
  // Adds the values that `from` sends.
  template <class T>
  [[nodiscard]] Status receive_and_add(std::uint32_t from, std::span<T> values);
  // A buffer for so many values, which is reused.
  template <class T>
  [[nodiscard]] std::span<T> staging(std::size_t count);
  // Calls f for each run of `blocks` in memory that has any bytes: one run, or two if the blocks
  // wrap around.
  template <class F>
  [[nodiscard]] Status for_each_run(const Blocks& blocks, std::span<std::byte> all, F f) const;
  [[nodiscard]] Result<Duration> ask_right();
  [[nodiscard]] Status answer_left();

  std::shared_ptr<TcpLinks> links_;
  const DoublingPlan doubling_;
  const std::vector<GatherRound> gathering_;
  std::atomic<bool> aborted_ = false;
  std::vector<double> staging_;
  std::vector<std::size_t> begins_;  // begin of each rank's part in what is gathered, and the end
  std::vector<std::byte> hop_;
};

template <class T>
std::span<T> TcpCollective::staging(std::size_t count) {
  const std::size_t words = (count * sizeof(T) + sizeof(double) - 1) / sizeof(double);
  if (staging_.size() < words) staging_.resize(words);
  return {reinterpret_cast<T*>(staging_.data()), count};
}

template <class T>
Status TcpCollective::sum(std::span<T> values) {
  if (size() == 1) return alone();
  if (values.empty()) return {};
  return doubling_is_quicker(size(), values.size_bytes()) ? sum_by_doubling(values)
                                                          : sum_around_the_ring(values);
}

template <class T>
Status TcpCollective::receive_and_add(std::uint32_t from, std::span<T> values) {
  const std::span<T> received = staging<T>(values.size());
  ANTDT_RETURN_IF_ERROR(links_->receive(from, std::as_writable_bytes(received)));
  // Some of these values may not be on their way yet.
  ANTDT_RETURN_IF_ERROR(links_->flush());
  add_into(values.data(), received.data(), values.size());
  return {};
}

template <class T>
Status TcpCollective::sum_by_doubling(std::span<T> values) {
  const auto bytes = std::as_bytes(values);
  if (doubling_.folds) {
    ANTDT_RETURN_IF_ERROR(links_->send(*doubling_.folded, bytes));
    ANTDT_RETURN_IF_ERROR(links_->flush());
    return links_->receive(*doubling_.folded, std::as_writable_bytes(values));
  }
  if (doubling_.folded) ANTDT_RETURN_IF_ERROR(receive_and_add(*doubling_.folded, values));
  for (const std::uint32_t partner : doubling_.partners) {
    ANTDT_RETURN_IF_ERROR(links_->send(partner, bytes));
    ANTDT_RETURN_IF_ERROR(receive_and_add(partner, values));
  }
  if (doubling_.folded) ANTDT_RETURN_IF_ERROR(links_->send(*doubling_.folded, bytes));
  return links_->flush();
}

// A block that is passed on is not overwritten before the right neighbour has it, because its
// replacement has travelled all around the ring.
template <class T>
Status TcpCollective::sum_around_the_ring(std::span<T> values) {
  const RingPlan plan(rank(), size(), values.size(), kSegmentBytes / sizeof(T));
  const std::span<T> received = staging<T>(kSegmentBytes / sizeof(T));
  const auto send = [&](std::size_t operation) -> Status {
    const RingPlan::Range range = plan.sent(operation);
    if (range.count == 0) return {};
    return links_->send(links_->right(), std::as_bytes(values.subspan(range.first, range.count)));
  };
  for (std::size_t i = 0; i < plan.segments(); ++i) ANTDT_RETURN_IF_ERROR(send(i));
  for (std::size_t i = 0; i < plan.operations(); ++i) {
    const RingPlan::Range range = plan.received(i);
    const std::span<T> own = values.subspan(range.first, range.count);
    const std::span<T> into = plan.adds(i) ? received.first(range.count) : own;
    if (range.count > 0) {
      ANTDT_RETURN_IF_ERROR(links_->receive(links_->left(), std::as_writable_bytes(into)));
    }
    if (plan.adds(i)) add_into(own.data(), into.data(), range.count);
    if (i + plan.segments() < plan.operations()) {
      ANTDT_RETURN_IF_ERROR(send(i + plan.segments()));
    }
  }
  return links_->flush();
}

Status TcpCollective::allgather(std::span<const std::byte> mine, std::span<std::byte> all) {
  const std::size_t bytes = mine.size();
  if (all.size() != bytes * size()) {
    return fail(ErrorKind::kInternal, "cannot gather {} bytes of each of {} members into {} bytes",
                bytes, size(), all.size());
  }
  std::memcpy(all.data() + rank() * bytes, mine.data(), bytes);
  return allgather_parts(std::vector<std::size_t>(size(), bytes), all);
}

template <class F>
Status TcpCollective::for_each_run(const Blocks& blocks, std::span<std::byte> all, F f) const {
  const std::uint32_t end = blocks.first + blocks.count;
  const auto run = [&](std::uint32_t from, std::uint32_t to) -> Status {
    const std::size_t bytes = begins_[to] - begins_[from];
    return bytes == 0 ? Status{} : f(all.subspan(begins_[from], bytes));
  };
  ANTDT_RETURN_IF_ERROR(run(blocks.first, std::min(end, size())));
  return end > size() ? run(0, end - size()) : Status{};
}

Status TcpCollective::allgather_parts(std::span<const std::size_t> sizes,
                                      std::span<std::byte> all) {
  const std::size_t total = std::reduce(sizes.begin(), sizes.end());
  if (sizes.size() != size() || total > all.size()) {
    return fail(ErrorKind::kInternal, "cannot gather {} parts of {} bytes of {} members into {}",
                sizes.size(), total, size(), all.size());
  }
  if (size() == 1) return alone();
  begins_.assign(1, 0);
  std::inclusive_scan(sizes.begin(), sizes.end(), std::back_inserter(begins_));
  for (const GatherRound& round : gathering_) {
    ANTDT_RETURN_IF_ERROR(for_each_run(round.sent, all, [&](std::span<std::byte> bytes) {
      return links_->send(round.to, bytes);
    }));
    ANTDT_RETURN_IF_ERROR(for_each_run(round.received, all, [&](std::span<std::byte> bytes) {
      return links_->receive(round.from, bytes);
    }));
  }
  return links_->flush();
}

Status TcpCollective::send_right(std::span<const std::byte> bytes) {
  ANTDT_RETURN_IF_ERROR(has_neighbour());
  if (bytes.empty()) return {};
  ANTDT_RETURN_IF_ERROR(links_->send(links_->right(), bytes));
  return links_->flush();
}

Status TcpCollective::receive_left(std::span<std::byte> bytes) {
  ANTDT_RETURN_IF_ERROR(has_neighbour());
  return bytes.empty() ? Status{} : links_->receive(links_->left(), bytes);
}

// Pairs take turns, so that none disturbs another: no two pairs of a turn have a member in common.
// In a ring of an odd number of members, the last pair has a turn of its own.
Result<std::optional<Duration>> TcpCollective::measure_hop() {
  if (size() < 3) return std::nullopt;
  const auto turn_of = [&](std::uint32_t rank) {
    return size() % 2 == 1 && rank == size() - 1 ? 2U : rank % 2;
  };
  hop_.resize(kHopBytes);
  Duration took{};
  for (std::uint32_t turn = 0; turn < 3; ++turn) {
    if (turn_of(rank()) == turn) {
      ANTDT_TRY(took, ask_right());
    } else if (turn_of(links_->left()) == turn) {
      ANTDT_RETURN_IF_ERROR(answer_left());
    }
  }
  return took;
}

// Two rounds: once the first is answered, the neighbour is ready, so the second measures the link
// alone.
Result<Duration> TcpCollective::ask_right() {
  const std::span<std::byte> all(hop_);
  const std::uint32_t to = links_->right();
  ANTDT_RETURN_IF_ERROR(links_->send(to, all.first(1)));
  ANTDT_RETURN_IF_ERROR(links_->receive(to, all.first(1)));
  const auto began = std::chrono::steady_clock::now();
  ANTDT_RETURN_IF_ERROR(links_->send(to, all));
  ANTDT_RETURN_IF_ERROR(links_->flush());
  ANTDT_RETURN_IF_ERROR(links_->receive(to, all));
  return std::chrono::steady_clock::now() - began;
}

Status TcpCollective::answer_left() {
  const std::span<std::byte> all(hop_);
  for (const std::size_t bytes : {std::size_t{1}, kHopBytes}) {
    ANTDT_RETURN_IF_ERROR(links_->receive(links_->left(), all.first(bytes)));
    ANTDT_RETURN_IF_ERROR(links_->send(links_->left(), all.first(bytes)));
    ANTDT_RETURN_IF_ERROR(links_->flush());
  }
  return {};
}

class TcpBuilder final : public CollectiveBuilder {
 public:
  explicit TcpBuilder(std::shared_ptr<TcpLinks> links) : links_(std::move(links)) {}
  [[nodiscard]] std::string address() const override { return links_->address(); }
  [[nodiscard]] Result<std::unique_ptr<Collective>> connect(std::span<const std::string> addresses,
                                                            const GroupKey& key) override {
    ANTDT_RETURN_IF_ERROR(
        links_->connect(peers_of(links_->rank(), links_->size()), addresses, key));
    return std::make_unique<TcpCollective>(links_);
  }
  void abort() override { links_->abort(); }

 private:
  std::shared_ptr<TcpLinks> links_;
};

}  // namespace

Result<std::unique_ptr<CollectiveBuilder>> prepare_collective(std::uint32_t rank,
                                                              std::uint32_t size,
                                                              const CollectiveOptions& options) {
  ANTDT_TRY(auto links, TcpLinks::listen(rank, size, options));
  return std::make_unique<TcpBuilder>(std::move(links));
}

}  // namespace antdt::trainer
