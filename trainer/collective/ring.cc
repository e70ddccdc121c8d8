#include "trainer/collective/ring.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "trainer/collective/gloo_links.h"
#include "trainer/collective/ring_plan.h"

namespace antdt::trainer {
namespace {

// Small enough that sending and adding overlap, large enough that the cost of
// a message (some 10 us) does not show.
constexpr std::size_t kSegmentFloats = 64 * 1024;
// Receives that are posted ahead: a message whose receive is posted when it is
// sent needs no round trip.
constexpr std::size_t kReceivesAhead = 4;
// Bytes that go along one link only. Their slots are counted apart, at each end
// of each link: who takes part in them differs from member to member, and the
// other operations must be numbered alike on all.
constexpr std::size_t kLinkChunkBytes = 1024 * 1024;
// Of a message that measures a hop: what bandwidth the link has shows in it, and it is
// soon there.
constexpr std::size_t kHopBytes = 16 * 1024;
constexpr std::uint64_t kHopMessages = 4;
constexpr std::uint64_t kLinkSlots = std::uint64_t{1} << 62;

void add_into(float* __restrict sum, const float* __restrict values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) sum[i] += values[i];
}

class Ring final : public Collective {
 public:
  explicit Ring(std::shared_ptr<GlooLinks> links) : links_(std::move(links)) {}

  [[nodiscard]] std::uint32_t rank() const override { return links_->rank(); }
  [[nodiscard]] std::uint32_t size() const override { return links_->size(); }
  void abort() override {
    aborted_ = true;
    links_->abort();
  }
  [[nodiscard]] Status allreduce_sum(std::span<float> values) override;
  [[nodiscard]] Status allgather(std::span<const std::byte> mine,
                                 std::span<std::byte> all) override;
  [[nodiscard]] Status allgather_parts(std::span<const std::size_t> sizes,
                                       std::span<std::byte> all) override;
  [[nodiscard]] Status send_right(std::span<const std::byte> bytes) override;
  [[nodiscard]] Status receive_left(std::span<std::byte> bytes) override;
  [[nodiscard]] Result<std::optional<Duration>> measure_hop() override;
  // Compares the key and the rank with both neighbours.
  [[nodiscard]] Status greet(std::uint64_t key);

 private:
  struct Greeting {
    std::uint64_t key = 0;
    std::uint32_t rank = 0;
    std::uint32_t size = 0;
    bool operator==(const Greeting&) const = default;
  };
  [[nodiscard]] Status has_neighbour() const {
    if (size() > 1) return {};
    return fail(ErrorKind::kInternal, "a ring of one member has no neighbour to pass bytes to");
  }
  [[nodiscard]] Status alone() const {
    if (!aborted_) return {};
    return fail(ErrorKind::kAborted, "the collective of rank {} was aborted", rank());
  }
  // Where operation `i` of an all-reduce is received, and starting to do so.
  [[nodiscard]] Status post_receive(const RingPlan& plan, std::size_t i, GlooLinks::Buffer& data,
                                    GlooLinks::Buffer& staging);
  [[nodiscard]] Status send_operation(const RingPlan& plan, std::size_t i, GlooLinks::Buffer& data);
  // Does start(slot, offset, bytes) for each chunk of `bytes`, a few ahead of
  // wait().
  template <class Start, class Wait>
  [[nodiscard]] Status in_chunks(std::size_t bytes, std::uint64_t& slot, Start start, Wait wait);

  [[nodiscard]] Result<Duration> ask_right();
  [[nodiscard]] Status answer_left();

  std::shared_ptr<GlooLinks> links_;
  std::atomic<bool> aborted_ = false;
  std::uint64_t next_slot_ = 2;  // 0 and 1 are the greetings
  std::uint64_t sent_right_ = kLinkSlots;
  std::uint64_t received_left_ = kLinkSlots;
  std::vector<float> staging_;
  std::vector<std::byte> ask_;  // to the right, of a hop
  std::vector<std::byte> answer_;
};

Status Ring::greet(std::uint64_t key) {
  if (size() == 1) return {};
  const Greeting own{key, rank(), size()};
  std::array<Greeting, 2> sent{own, own};
  std::array<Greeting, 2> heard{};
  constexpr std::size_t kBytes = sizeof(Greeting);
  ANTDT_TRY(GlooLinks::Buffer* const out, links_->buffer(sent.data(), sizeof(sent)));
  ANTDT_TRY(GlooLinks::Buffer* const in, links_->buffer(heard.data(), sizeof(heard)));
  // Slot 0 runs to the right, slot 1 to the left.
  ANTDT_RETURN_IF_ERROR(links_->receive(*in, links_->left(), 0, 0, kBytes));
  ANTDT_RETURN_IF_ERROR(links_->receive(*in, links_->right(), 1, kBytes, kBytes));
  ANTDT_RETURN_IF_ERROR(links_->send(*out, links_->right(), 0, 0, kBytes));
  ANTDT_RETURN_IF_ERROR(links_->send(*out, links_->left(), 1, kBytes, kBytes));
  for (const std::uint32_t neighbour : {links_->left(), links_->right()}) {
    ANTDT_RETURN_IF_ERROR(links_->wait_sent(*out, neighbour));
    ANTDT_RETURN_IF_ERROR(links_->wait_received(*in, neighbour));
  }
  const std::array<Greeting, 2> expected{Greeting{key, links_->left(), size()},
                                         Greeting{key, links_->right(), size()}};
  for (std::size_t i = 0; i < 2; ++i) {
    if (heard[i] == expected[i]) continue;
    return fail(ErrorKind::kRefused,
                "the {} neighbour of rank {} in the ring says rank {} of {} with key {:016x}, "
                "expected rank {} of {} with key {:016x}: it belongs to another generation",
                i == 0 ? "left" : "right", rank(), heard[i].rank, heard[i].size, heard[i].key,
                expected[i].rank, expected[i].size, expected[i].key);
  }
  return {};
}

Status Ring::post_receive(const RingPlan& plan, std::size_t i, GlooLinks::Buffer& data,
                          GlooLinks::Buffer& staging) {
  const RingPlan::Range range = plan.received(i);
  if (range.count == 0) return {};
  const std::size_t bytes = range.count * sizeof(float);
  if (!plan.adds(i)) {
    return links_->receive(data, links_->left(), next_slot_ + i, range.first * sizeof(float),
                           bytes);
  }
  const std::size_t place = i % kReceivesAhead * kSegmentFloats * sizeof(float);
  return links_->receive(staging, links_->left(), next_slot_ + i, place, bytes);
}

Status Ring::send_operation(const RingPlan& plan, std::size_t i, GlooLinks::Buffer& data) {
  const RingPlan::Range range = plan.sent(i);
  if (range.count == 0) return {};
  return links_->send(data, links_->right(), next_slot_ + i, range.first * sizeof(float),
                      range.count * sizeof(float));
}

Status Ring::allreduce_sum(std::span<float> values) {
  if (size() == 1) return alone();
  if (values.empty()) return {};
  const RingPlan plan(rank(), size(), values.size(), kSegmentFloats);
  staging_.resize(kReceivesAhead * kSegmentFloats);
  ANTDT_TRY(GlooLinks::Buffer* const data, links_->buffer(values.data(), values.size_bytes()));
  ANTDT_TRY(GlooLinks::Buffer* const staging,
            links_->buffer(staging_.data(), staging_.size() * sizeof(float)));

  const std::size_t operations = plan.operations();
  for (std::size_t i = 0; i < std::min(kReceivesAhead, operations); ++i) {
    ANTDT_RETURN_IF_ERROR(post_receive(plan, i, *data, *staging));
  }
  for (std::size_t i = 0; i < plan.segments(); ++i) {
    ANTDT_RETURN_IF_ERROR(send_operation(plan, i, *data));
  }
  std::size_t sends = 0;
  for (std::size_t i = 0; i < operations; ++i) {
    sends += plan.sent(i).count > 0 ? 1 : 0;
    if (const RingPlan::Range range = plan.received(i); range.count > 0) {
      ANTDT_RETURN_IF_ERROR(links_->wait_received(plan.adds(i) ? *staging : *data, links_->left()));
      if (plan.adds(i)) {
        add_into(values.data() + range.first, staging_.data() + i % kReceivesAhead * kSegmentFloats,
                 range.count);
      }
    }
    if (i + plan.segments() < operations) {
      ANTDT_RETURN_IF_ERROR(send_operation(plan, i + plan.segments(), *data));
    }
    if (i + kReceivesAhead < operations) {
      ANTDT_RETURN_IF_ERROR(post_receive(plan, i + kReceivesAhead, *data, *staging));
    }
  }
  for (; sends > 0; --sends) ANTDT_RETURN_IF_ERROR(links_->wait_sent(*data, links_->right()));
  next_slot_ += operations;
  return {};
}

Status Ring::allgather(std::span<const std::byte> mine, std::span<std::byte> all) {
  const std::size_t bytes = mine.size();
  if (all.size() != bytes * size()) {
    return fail(ErrorKind::kInternal, "cannot gather {} bytes of each of {} members into {} bytes",
                bytes, size(), all.size());
  }
  std::memcpy(all.data() + rank() * bytes, mine.data(), bytes);
  return allgather_parts(std::vector<std::size_t>(size(), bytes), all);
}

Status Ring::allgather_parts(std::span<const std::size_t> sizes, std::span<std::byte> all) {
  const std::size_t total = std::reduce(sizes.begin(), sizes.end());
  if (sizes.size() != size() || total > all.size()) {
    return fail(ErrorKind::kInternal, "cannot gather {} parts of {} bytes of {} members into {}",
                sizes.size(), total, size(), all.size());
  }
  if (size() == 1) return alone();
  if (total == 0) return {};
  ANTDT_TRY(GlooLinks::Buffer* const data, links_->buffer(all.data(), all.size()));
  std::vector<std::size_t> begins(sizes.size());
  std::exclusive_scan(sizes.begin(), sizes.end(), begins.begin(), std::size_t{0});
  // In round t rank r passes on what rank r - t gave; an empty part is no message.
  const std::size_t rounds = size() - 1;
  const auto origin = [&](std::size_t back) { return (rank() + size() - back) % size(); };
  for (std::size_t t = 0; t < rounds; ++t) {
    const std::size_t from = origin(t + 1);
    if (sizes[from] == 0) continue;
    ANTDT_RETURN_IF_ERROR(
        links_->receive(*data, links_->left(), next_slot_ + t, begins[from], sizes[from]));
  }
  std::size_t sends = 0;
  for (std::size_t t = 0; t < rounds; ++t) {
    const std::size_t from = origin(t);
    if (sizes[from] > 0) {
      ANTDT_RETURN_IF_ERROR(
          links_->send(*data, links_->right(), next_slot_ + t, begins[from], sizes[from]));
      ++sends;
    }
    if (sizes[origin(t + 1)] > 0)
      ANTDT_RETURN_IF_ERROR(links_->wait_received(*data, links_->left()));
  }
  for (; sends > 0; --sends) ANTDT_RETURN_IF_ERROR(links_->wait_sent(*data, links_->right()));
  next_slot_ += rounds;
  return {};
}

template <class Start, class Wait>
Status Ring::in_chunks(std::size_t bytes, std::uint64_t& slot, Start start, Wait wait) {
  const std::size_t chunks = (bytes + kLinkChunkBytes - 1) / kLinkChunkBytes;
  for (std::size_t i = 0; i < chunks + kReceivesAhead; ++i) {
    if (i >= kReceivesAhead && i - kReceivesAhead < chunks) ANTDT_RETURN_IF_ERROR(wait());
    if (i >= chunks) continue;
    const std::size_t offset = i * kLinkChunkBytes;
    ANTDT_RETURN_IF_ERROR(start(slot++, offset, std::min(kLinkChunkBytes, bytes - offset)));
  }
  return {};
}

Status Ring::send_right(std::span<const std::byte> bytes) {
  ANTDT_RETURN_IF_ERROR(has_neighbour());
  if (bytes.empty()) return {};
  // Gloo takes no const pointer, and only reads what is sent.
  ANTDT_TRY(GlooLinks::Buffer* const data,
            links_->buffer(const_cast<std::byte*>(bytes.data()), bytes.size()));
  return in_chunks(
      bytes.size(), sent_right_,
      [&](std::uint64_t slot, std::size_t offset, std::size_t count) {
        return links_->send(*data, links_->right(), slot, offset, count);
      },
      [&] { return links_->wait_sent(*data, links_->right()); });
}

Status Ring::receive_left(std::span<std::byte> bytes) {
  ANTDT_RETURN_IF_ERROR(has_neighbour());
  if (bytes.empty()) return {};
  ANTDT_TRY(GlooLinks::Buffer* const data, links_->buffer(bytes.data(), bytes.size()));
  return in_chunks(
      bytes.size(), received_left_,
      [&](std::uint64_t slot, std::size_t offset, std::size_t count) {
        return links_->receive(*data, links_->left(), slot, offset, count);
      },
      [&] { return links_->wait_received(*data, links_->left()); });
}

// In turns, so that no pair disturbs another: of the pairs of a turn no two have a member
// in common. In a ring of an odd number the last pair has a turn of its own.
Result<std::optional<Duration>> Ring::measure_hop() {
  if (size() < 3) return std::nullopt;
  const auto turn_of = [&](std::uint32_t rank) {
    return size() % 2 == 1 && rank == size() - 1 ? 2U : rank % 2;
  };
  Duration took{};
  for (std::uint32_t turn = 0; turn < 3; ++turn) {
    if (turn_of(rank()) == turn) {
      ANTDT_TRY(took, ask_right());
    } else if (turn_of(links_->left()) == turn) {
      ANTDT_RETURN_IF_ERROR(answer_left());
    }
  }
  next_slot_ += kHopMessages;
  return took;
}

// Two rounds. When the first is answered the neighbour is here, too, so the second finds
// it at once.
Result<Duration> Ring::ask_right() {
  ask_.resize(2 * kHopBytes + 1);
  ANTDT_TRY(GlooLinks::Buffer* const data, links_->buffer(ask_.data(), ask_.size()));
  const std::uint32_t to = links_->right();
  ANTDT_RETURN_IF_ERROR(links_->receive(*data, to, next_slot_ + 1, 2 * kHopBytes, 1));
  ANTDT_RETURN_IF_ERROR(links_->receive(*data, to, next_slot_ + 3, kHopBytes, kHopBytes));
  ANTDT_RETURN_IF_ERROR(links_->send(*data, to, next_slot_, 0, 1));
  ANTDT_RETURN_IF_ERROR(links_->wait_received(*data, to));
  const auto began = std::chrono::steady_clock::now();
  ANTDT_RETURN_IF_ERROR(links_->send(*data, to, next_slot_ + 2, 0, kHopBytes));
  ANTDT_RETURN_IF_ERROR(links_->wait_received(*data, to));
  const Duration took = std::chrono::steady_clock::now() - began;
  for (int i = 0; i < 2; ++i) ANTDT_RETURN_IF_ERROR(links_->wait_sent(*data, to));
  return took;
}

Status Ring::answer_left() {
  answer_.resize(2 * kHopBytes + 1);
  ANTDT_TRY(GlooLinks::Buffer* const data, links_->buffer(answer_.data(), answer_.size()));
  const std::uint32_t to = links_->left();
  ANTDT_RETURN_IF_ERROR(links_->receive(*data, to, next_slot_, 2 * kHopBytes, 1));
  ANTDT_RETURN_IF_ERROR(links_->receive(*data, to, next_slot_ + 2, kHopBytes, kHopBytes));
  ANTDT_RETURN_IF_ERROR(links_->wait_received(*data, to));
  ANTDT_RETURN_IF_ERROR(links_->send(*data, to, next_slot_ + 1, 0, 1));
  ANTDT_RETURN_IF_ERROR(links_->wait_received(*data, to));
  ANTDT_RETURN_IF_ERROR(links_->send(*data, to, next_slot_ + 3, 0, kHopBytes));
  for (int i = 0; i < 2; ++i) ANTDT_RETURN_IF_ERROR(links_->wait_sent(*data, to));
  return {};
}

class RingBuilder final : public CollectiveBuilder {
 public:
  explicit RingBuilder(std::shared_ptr<GlooLinks> links) : links_(std::move(links)) {}
  [[nodiscard]] std::string address_for_left() const override {
    return links_->address_for(links_->left());
  }
  [[nodiscard]] std::string address_for_right() const override {
    return links_->address_for(links_->right());
  }
  [[nodiscard]] Result<std::unique_ptr<Collective>> connect(const std::string& left,
                                                            const std::string& right,
                                                            std::uint64_t key) override {
    ANTDT_RETURN_IF_ERROR(links_->connect(left, right));
    auto ring = std::make_unique<Ring>(links_);
    ANTDT_RETURN_IF_ERROR(ring->greet(key));
    return ring;
  }
  void abort() override { links_->abort(); }

 private:
  std::shared_ptr<GlooLinks> links_;
};

}  // namespace

Result<std::unique_ptr<CollectiveBuilder>> prepare_ring(std::uint32_t rank, std::uint32_t size,
                                                        const RingOptions& options) {
  ANTDT_TRY(auto links, GlooLinks::listen(rank, size, options));
  return std::make_unique<RingBuilder>(std::move(links));
}

}  // namespace antdt::trainer
