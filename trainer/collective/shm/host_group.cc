#include "trainer/collective/shm/host_group.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <utility>

#include "trainer/collective/add_into.h"
#include "trainer/collective/send_delay.h"

namespace antdt::trainer::shm {
namespace {

// A sum of no more than this is staged whole and added up by everyone: what the additions of all
// cost then is less than a second wait.
constexpr std::size_t kAtOnceBytes = 16UL * 1024;
// Values that are added up at a time stay in a core's nearest cache.
constexpr std::size_t kBlockBytes = 4UL * 1024;
// Slices begin at such multiples, so no two members write to the same cache line.
constexpr std::size_t kLineBytes = 64;

template <class T>
void copy(std::span<const T> from, std::span<T> to) {
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size_bytes());
}

template <class T>
void add_two(T* __restrict sum, const T* a, const T* b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) sum[i] = a[i] + b[i];
}

std::size_t at(Side side) { return side == Side::kRight ? 0 : 1; }

// The part of a chunk of so many values that a member adds up.
struct Slice {
  std::size_t first = 0;
  std::size_t count = 0;
};
template <class T>
Slice slice_of(std::size_t values, std::uint32_t member, std::uint32_t members) {
  constexpr std::size_t kLine = kLineBytes / sizeof(T);
  const auto begin = [&](std::uint32_t m) {
    return m == members ? values : values * m / members / kLine * kLine;
  };
  return {begin(member), begin(member + 1) - begin(member)};
}

}  // namespace

// ------------------------------------------------------------------- chunks

Status HostGroup::begin() {
  ++operation_;
  return mates_->alive();
}

Status HostGroup::claim(std::uint64_t chunk) {
  if (chunk < kSlots) return {};
  return mates_->wait_for_all(
      [&](std::uint32_t m) { return mates_->words(m).done.load() > chunk - kSlots; });
}

void HostGroup::write(std::span<std::byte> slot, std::span<const std::byte> bytes) const {
  if (bytes.empty()) return;
  if (stores_.streams()) return copy_streaming(slot.data(), bytes.data(), bytes.size());
  std::memcpy(slot.data(), bytes.data(), bytes.size());
}

// What is written to for the first time takes longer: the kernel makes its pages.
void HostGroup::copied(std::uint64_t chunk, std::size_t bytes, MonoTime began) {
  if (chunk >= kSlots) stores_.copied(bytes, std::chrono::steady_clock::now() - began);
}

void HostGroup::staged(std::uint64_t chunk, std::size_t bytes_of_operation,
                       std::size_t bytes_of_chunk) {
  hold_back_for_all(bytes_of_chunk);
  Words& own = mates_->words(self());
  Header& header = own.headers[chunk % kSlots];
  header.operation.store(operation_, std::memory_order_relaxed);
  header.bytes.store(bytes_of_operation, std::memory_order_relaxed);
  mates_->post(own.staged, chunk + 1);
}

Status HostGroup::await_staged(std::uint64_t chunk) {
  return mates_->wait_for_all(
      [&](std::uint32_t m) { return mates_->words(m).staged.load() > chunk; });
}

Status HostGroup::check(std::uint32_t member, std::uint64_t chunk, std::size_t bytes) {
  const Header& header = mates_->words(member).headers[chunk % kSlots];
  const std::uint64_t operation = header.operation.load(std::memory_order_relaxed);
  const std::uint64_t has = header.bytes.load(std::memory_order_relaxed);
  if (operation == operation_ && has == bytes) return {};
  return mates_->die(fmt::format("rank {} staged {} bytes in operation {} where {} in operation "
                                 "{} were due: it does not run the same operations",
                                 mates_->rank_of(member), has, operation, bytes, operation_),
                     ErrorKind::kCorrupt);
}

void HostGroup::done(std::uint64_t chunk) { mates_->post(mates_->words(self()).done, chunk + 1); }

void HostGroup::hold_back_for_all(std::size_t bytes) const {
  if (!send_delay_) return;
  Duration longest{};
  for_others([&](std::uint32_t m) {
    longest = std::max(longest, send_delay_(mates_->rank_of(m), bytes).sum());
  });
  hold_back(longest, mates_->aborted());
}

// ------------------------------------------------------------------- sums

template <class T>
Status HostGroup::sum(std::span<T> values, For whom) {
  if (values.empty()) return mates_->alive();
  ANTDT_RETURN_IF_ERROR(begin());
  return values.size_bytes() <= kAtOnceBytes ? sum_at_once(values, whom)
                                             : sum_by_slices(values, whom);
}

template <class T>
void HostGroup::add_up(std::uint64_t chunk, std::size_t first, std::span<T> values, bool publish) {
  std::array<T, kBlockBytes / sizeof(T)> block;
  const SharedMemory& memory = mates_->memory();
  for (std::size_t done = 0; done < values.size(); done += block.size()) {
    const std::size_t count = std::min(block.size(), values.size() - done);
    T* const own = values.data() + done;
    const auto of = [&](std::uint32_t m) -> T* {
      if (m == self()) return own;
      return reinterpret_cast<T*>(memory.slot(m, chunk).data()) + first + done;
    };
    add_two(block.data(), of(0), of(1), count);
    for (std::uint32_t m = 2; m < size(); ++m) add_into(block.data(), of(m), count);
    std::memcpy(own, block.data(), count * sizeof(T));
    if (!publish) continue;
    write(memory.slot(self(), chunk).subspan((first + done) * sizeof(T)),
          std::as_bytes(std::span(block).first(count)));
  }
}

template <class T>
Status HostGroup::sum_at_once(std::span<T> values, For whom) {
  const std::uint64_t chunk = next_chunk_++;
  const std::size_t bytes = values.size_bytes();
  ANTDT_RETURN_IF_ERROR(claim(chunk));
  std::memcpy(mates_->memory().slot(self(), chunk).data(), values.data(), bytes);
  staged(chunk, bytes, bytes);
  if (whom == For::kAll || self() == 0) {
    ANTDT_RETURN_IF_ERROR(await_staged(chunk));
    for (std::uint32_t m = 0; m < size(); ++m) ANTDT_RETURN_IF_ERROR(check(m, chunk, bytes));
    add_up(chunk, 0, values, false);
    for_others([&](std::uint32_t m) { mates_->received(m, bytes); });
  }
  for_others([&](std::uint32_t m) {
    if (whom == For::kAll || m == 0) mates_->sent(m, bytes);
  });
  done(chunk);
  return mates_->alive();
}

template <class T>
Status HostGroup::sum_by_slices(std::span<T> values, For whom) {
  constexpr std::size_t kChunk = kSlotBytes / sizeof(T);
  const SharedMemory& memory = mates_->memory();
  const std::uint64_t first_chunk = next_chunk_;
  const std::uint64_t chunks = (values.size() + kChunk - 1) / kChunk;
  next_chunk_ += chunks;
  const auto part = [&](std::uint64_t i) {
    return values.subspan(i * kChunk, std::min(kChunk, values.size() - i * kChunk));
  };
  const auto in_slot = [&](std::uint32_t m, std::uint64_t i, const Slice& slice) {
    return std::span(reinterpret_cast<T*>(memory.slot(m, first_chunk + i).data()) + slice.first,
                     slice.count);
  };
  const auto stage = [&](std::uint64_t i) -> Status {
    const std::span<T> own = part(i);
    ANTDT_RETURN_IF_ERROR(claim(first_chunk + i));
    const auto began = std::chrono::steady_clock::now();
    const Slice summed_here = slice_of<T>(own.size(), self(), size());
    const std::span<std::byte> slot = memory.slot(self(), first_chunk + i);
    const std::size_t end = summed_here.first + summed_here.count;
    write(slot, std::as_bytes(own.first(summed_here.first)));
    write(slot.subspan(end * sizeof(T)), std::as_bytes(own.subspan(end)));
    copied(first_chunk + i, own.size_bytes() - summed_here.count * sizeof(T), began);
    staged(first_chunk + i, values.size_bytes(), own.size_bytes());
    return {};
  };
  const auto reduce_slice = [&](std::uint64_t i) -> Status {
    const std::uint64_t chunk = first_chunk + i;
    ANTDT_RETURN_IF_ERROR(await_staged(chunk));
    for (std::uint32_t m = 0; m < size(); ++m) {
      ANTDT_RETURN_IF_ERROR(check(m, chunk, values.size_bytes()));
    }
    const Slice slice = slice_of<T>(part(i).size(), self(), size());
    add_up(chunk, slice.first, part(i).subspan(slice.first, slice.count), true);
    for_others([&](std::uint32_t m) {
      mates_->received(m, slice.count * sizeof(T));
      mates_->sent(m, slice_of<T>(part(i).size(), m, size()).count * sizeof(T));  // what m adds up
      if (whom == For::kAll || m == 0) mates_->sent(m, slice.count * sizeof(T));  // and the sums
    });
    mates_->post(mates_->words(self()).reduced, chunk + 1);
    return {};
  };
  const auto collect = [&](std::uint64_t i) -> Status {
    const std::uint64_t chunk = first_chunk + i;
    if (whom == For::kAll || self() == 0) {
      ANTDT_RETURN_IF_ERROR(mates_->wait_for_all(
          [&](std::uint32_t m) { return mates_->words(m).reduced.load() > chunk; }));
      for (std::uint32_t n = 1; n < size(); ++n) {
        const std::uint32_t m = (self() + n) % size();  // not all from the same member at once
        const Slice slice = slice_of<T>(part(i).size(), m, size());
        copy<T>(in_slot(m, i, slice), part(i).subspan(slice.first, slice.count));
        mates_->received(m, slice.count * sizeof(T));
      }
    }
    done(chunk);
    return {};
  };
  for (std::uint64_t i = 0; i < chunks + 2; ++i) {
    if (i < chunks) ANTDT_RETURN_IF_ERROR(stage(i));
    if (i >= 1 && i <= chunks) ANTDT_RETURN_IF_ERROR(reduce_slice(i - 1));
    if (i >= 2) ANTDT_RETURN_IF_ERROR(collect(i - 2));
  }
  return mates_->alive();
}

template <class T>
Status HostGroup::allreduce(std::span<T> values) {
  return sum(values, For::kAll);
}
template <class T>
Status HostGroup::reduce(std::span<T> values) {
  return sum(values, For::kFirst);
}
template Status HostGroup::allreduce(std::span<float>);
template Status HostGroup::allreduce(std::span<double>);
template Status HostGroup::reduce(std::span<float>);
template Status HostGroup::reduce(std::span<double>);

// ------------------------------------------------------------------- copies

Status HostGroup::broadcast(std::span<std::byte> bytes) {
  std::vector<std::span<std::byte>> parts(size());
  parts.front() = bytes;
  return gather(parts);
}

Status HostGroup::gather(std::span<const std::span<std::byte>> parts) {
  std::size_t most = 0;
  for (const auto& part : parts) most = std::max(most, part.size());
  if (most == 0) return mates_->alive();
  ANTDT_RETURN_IF_ERROR(begin());
  const SharedMemory& memory = mates_->memory();
  const std::uint64_t first_chunk = next_chunk_;
  const std::uint64_t chunks = (most + kSlotBytes - 1) / kSlotBytes;
  next_chunk_ += chunks;
  const auto piece = [&](std::uint32_t m, std::uint64_t i) {
    const std::size_t begin = std::min<std::size_t>(i * kSlotBytes, parts[m].size());
    return parts[m].subspan(begin, std::min(kSlotBytes, parts[m].size() - begin));
  };
  const auto stage = [&](std::uint64_t i) -> Status {
    const auto own = piece(self(), i);
    if (own.empty()) return {};
    ANTDT_RETURN_IF_ERROR(claim(first_chunk + i));
    const auto began = std::chrono::steady_clock::now();
    write(memory.slot(self(), first_chunk + i), own);
    copied(first_chunk + i, own.size(), began);
    staged(first_chunk + i, parts[self()].size(), own.size());
    for_others([&](std::uint32_t m) { mates_->sent(m, own.size()); });
    return {};
  };
  const auto collect = [&](std::uint64_t i) -> Status {
    const std::uint64_t chunk = first_chunk + i;
    ANTDT_RETURN_IF_ERROR(mates_->wait_for_all([&](std::uint32_t m) {
      return piece(m, i).empty() || mates_->words(m).staged.load() > chunk;
    }));
    for (std::uint32_t n = 1; n < size(); ++n) {
      const std::uint32_t m = (self() + n) % size();
      const auto into = piece(m, i);
      if (into.empty()) continue;
      ANTDT_RETURN_IF_ERROR(check(m, chunk, parts[m].size()));
      copy<std::byte>(memory.slot(m, chunk).first(into.size()), into);
      mates_->received(m, into.size());
    }
    done(chunk);
    return {};
  };
  for (std::uint64_t i = 0; i < chunks + 1; ++i) {
    if (i < chunks) ANTDT_RETURN_IF_ERROR(stage(i));
    if (i >= 1) ANTDT_RETURN_IF_ERROR(collect(i - 1));
  }
  return mates_->alive();
}

// ------------------------------------------------------------------- along the ring

Status HostGroup::send(Side side, std::uint32_t to, std::span<const std::byte> bytes) {
  ANTDT_RETURN_IF_ERROR(mates_->alive());
  if (send_delay_) {
    hold_back(send_delay_(mates_->rank_of(to), bytes.size()).sum(), mates_->aborted());
  }
  const MessageHeader header{bytes.size(), sent_[at(side)].messages++};
  ANTDT_RETURN_IF_ERROR(push(side, to, std::as_bytes(std::span(&header, 1))));
  ANTDT_RETURN_IF_ERROR(push(side, to, bytes));
  mates_->sent(to, bytes.size());
  return mates_->alive();
}

Status HostGroup::receive(Side side, std::uint32_t from, std::span<std::byte> bytes) {
  ANTDT_RETURN_IF_ERROR(mates_->alive());
  MessageHeader header;
  ANTDT_RETURN_IF_ERROR(pull(side, from, std::as_writable_bytes(std::span(&header, 1))));
  const std::uint64_t due = received_[at(side)].messages++;
  if (header.bytes != bytes.size() || header.number != due) {
    return mates_->die(
        fmt::format("rank {} sent {} bytes as message {} where {} as message {} were due: it does "
                    "not run the same operations",
                    mates_->rank_of(from), header.bytes, header.number, bytes.size(), due),
        ErrorKind::kCorrupt);
  }
  ANTDT_RETURN_IF_ERROR(pull(side, from, bytes));
  mates_->received(from, bytes.size());
  return mates_->alive();
}

Status HostGroup::push(Side side, std::uint32_t to, std::span<const std::byte> bytes) {
  Channel& channel = mates_->words(self()).channels[at(side)];
  const std::span<std::byte> ring = mates_->memory().channel(self(), side);
  std::uint64_t& sent = sent_[at(side)].bytes;
  while (!bytes.empty()) {
    const auto used = [&] { return sent - channel.received.load(); };
    ANTDT_RETURN_IF_ERROR(
        mates_->wait_for(to, [&](std::uint32_t) { return used() != ring.size(); }));
    const std::uint64_t taken = used();
    if (taken > ring.size()) {
      return mates_->die(
          fmt::format("rank {} says that it received what was never sent", mates_->rank_of(to)),
          ErrorKind::kCorrupt);
    }
    const std::size_t begin = sent % ring.size();
    const std::size_t count = std::min({bytes.size(), ring.size() - static_cast<std::size_t>(taken),
                                        ring.size() - begin, ring.size() / 4});
    copy<std::byte>(bytes.first(count), ring.subspan(begin, count));
    bytes = bytes.subspan(count);
    sent += count;
    mates_->post(channel.sent, sent);
  }
  return {};
}

Status HostGroup::pull(Side side, std::uint32_t from, std::span<std::byte> bytes) {
  Channel& channel = mates_->words(from).channels[at(side)];
  const std::span<const std::byte> ring = mates_->memory().channel(from, side);
  std::uint64_t& received = received_[at(side)].bytes;
  while (!bytes.empty()) {
    const auto waiting = [&] { return channel.sent.load() - received; };
    ANTDT_RETURN_IF_ERROR(mates_->wait_for(from, [&](std::uint32_t) { return waiting() != 0; }));
    const std::uint64_t there = waiting();
    if (there > ring.size()) {
      return mates_->die(fmt::format("rank {} says that it sent more than there is room for",
                                     mates_->rank_of(from)),
                         ErrorKind::kCorrupt);
    }
    const std::size_t begin = received % ring.size();
    const std::size_t count = std::min(
        {bytes.size(), static_cast<std::size_t>(there), ring.size() - begin, ring.size() / 4});
    copy<std::byte>(ring.subspan(begin, count), bytes.first(count));
    bytes = bytes.subspan(count);
    received += count;
    mates_->post(channel.received, received);
  }
  return {};
}

}  // namespace antdt::trainer::shm
