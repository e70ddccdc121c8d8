// Members of one group as threads of a test, joined without a network.
//
// As in a real ring, an operation completes for a member as soon as everyone's part of it is there,
// and cannot complete once a member has gone whose part is missing. So some members may complete an
// operation that others do not. A script can make that happen, or kill a member (by an exception),
// at any operation.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

#include "trainer/collective/collective.h"

namespace antdt::trainer {

// Thrown out of a collective whose member is killed there.
struct Killed {};

// The fault of a member in an operation.
enum class Fate {
  kGoesOn,
  kBreaks,  // gives its part, and the operation fails for this member nevertheless
  kDies,    // gives its part and is killed
  kIsGone,  // is killed before it gave anything
};
enum class OperationKind { kSum, kGather, kSend, kReceive };

class LocalGroup {
 public:
  // `number` counts a member's sums and gathers together, its sends, and its
  // receives, each from 0.
  using Script = std::function<Fate(OperationKind kind, std::uint64_t number)>;

  explicit LocalGroup(std::uint32_t size) : size_(size), gone_(size), links_(size) {}

  [[nodiscard]] std::unique_ptr<Collective> member(std::uint32_t rank, Script script = {}) {
    const std::lock_guard lock(mutex_);
    gone_[rank] = false;
    return std::make_unique<Member>(*this, rank, std::move(script));
  }

  // Runs `body` once for each rank, each in a thread.
  void run(const std::function<void(Collective&)>& body) {
    std::vector<std::thread> threads;
    for (std::uint32_t rank = 0; rank < size_; ++rank) {
      threads.emplace_back([&, rank] { body(*member(rank)); });
    }
    for (auto& thread : threads) thread.join();
  }

 private:
  using Bytes = std::vector<std::byte>;
  struct Operation {
    std::map<std::uint32_t, Bytes> parts;  // by rank
    std::uint32_t done = 0;                // members that need it no more
  };
  struct Link {  // from a rank to the one after it
    std::deque<Bytes> waiting;
    std::uint64_t taken = 0;
  };

  [[nodiscard]] std::uint32_t right(std::uint32_t rank) const { return (rank + 1) % size_; }
  [[nodiscard]] std::uint32_t left(std::uint32_t rank) const { return (rank + size_ - 1) % size_; }

  class Member final : public Collective {
   public:
    Member(LocalGroup& group, std::uint32_t rank, Script script)
        : group_(group), rank_(rank), script_(std::move(script)) {}
    ~Member() override { go(); }
    [[nodiscard]] std::uint32_t rank() const override { return rank_; }
    [[nodiscard]] std::uint32_t size() const override { return group_.size_; }

    [[nodiscard]] Status allreduce_sum(std::span<float> values) override { return sum_of(values); }
    [[nodiscard]] Status allreduce_sum(std::span<double> values) override { return sum_of(values); }
    template <class T>
    [[nodiscard]] Status sum_of(std::span<T> values) {
      std::vector<T> sum(values.size());
      ANTDT_RETURN_IF_ERROR(exchange(
          OperationKind::kSum, std::as_bytes(values), [&](std::uint32_t, const Bytes& bytes) {
            const auto* const part = reinterpret_cast<const T*>(bytes.data());
            for (std::size_t i = 0; i < sum.size(); ++i) {
              sum[i] += part[i];
            }
          }));
      std::copy(sum.begin(), sum.end(), values.begin());
      return {};
    }
    [[nodiscard]] Status allgather(std::span<const std::byte> mine,
                                   std::span<std::byte> all) override {
      return exchange(OperationKind::kGather, mine, [&](std::uint32_t rank, const Bytes& bytes) {
        std::memcpy(all.data() + rank * mine.size(), bytes.data(), mine.size());
      });
    }
    [[nodiscard]] Status allgather_parts(std::span<const std::size_t> sizes,
                                         std::span<std::byte> all) override {
      std::vector<std::size_t> begins(sizes.size());
      std::exclusive_scan(sizes.begin(), sizes.end(), begins.begin(), std::size_t{0});
      return exchange(OperationKind::kGather, all.subspan(begins[rank_], sizes[rank_]),
                      [&](std::uint32_t rank, const Bytes& bytes) {
                        EXPECT_EQ(bytes.size(), sizes[rank]) << "sizes are agreed beforehand";
                        std::copy_n(bytes.data(), std::min(bytes.size(), sizes[rank]),
                                    all.data() + begins[rank]);
                      });
    }
    [[nodiscard]] Status send_right(std::span<const std::byte> bytes) override {
      const Fate fate = begin(OperationKind::kSend, sends_++);
      std::unique_lock lock(group_.mutex_);
      if (over()) return broken();
      Link& link = group_.links_[rank_];
      link.waiting.emplace_back(bytes.begin(), bytes.end());
      group_.changed_.notify_all();
      if (fate != Fate::kGoesOn) return end(fate, lock);
      const std::uint64_t until = link.taken + link.waiting.size();
      const std::uint32_t to = group_.right(rank_);
      group_.changed_.wait(lock, [&] { return link.taken >= until || over() || group_.gone_[to]; });
      return link.taken >= until ? Status{} : broken();
    }
    [[nodiscard]] Status receive_left(std::span<std::byte> bytes) override {
      const Fate fate = begin(OperationKind::kReceive, receives_++);
      std::unique_lock lock(group_.mutex_);
      const std::uint32_t from = group_.left(rank_);
      Link& link = group_.links_[from];
      group_.changed_.wait(lock,
                           [&] { return !link.waiting.empty() || over() || group_.gone_[from]; });
      if (over() || link.waiting.empty()) return broken();
      EXPECT_EQ(link.waiting.front().size(), bytes.size()) << "sizes are agreed beforehand";
      std::memcpy(bytes.data(), link.waiting.front().data(),
                  std::min(bytes.size(), link.waiting.front().size()));
      link.waiting.pop_front();
      ++link.taken;
      group_.changed_.notify_all();
      return fate == Fate::kGoesOn ? Status{} : end(fate, lock);
    }
    void abort() override { go(); }

   private:
    // The member contributes nothing more.
    void go() {
      const std::lock_guard lock(group_.mutex_);
      group_.gone_[rank_] = true;
      group_.changed_.notify_all();
    }
    [[nodiscard]] bool over() const { return group_.gone_[rank_]; }
    [[nodiscard]] static Status broken() {
      return fail(ErrorKind::kIo, "the group of the test is broken");
    }
    [[nodiscard]] Fate begin(OperationKind kind, std::uint64_t number) {
      const Fate fate = script_ ? script_(kind, number) : Fate::kGoesOn;
      if (fate == Fate::kIsGone) {
        go();
        throw Killed{};
      }
      return fate;
    }
    [[nodiscard]] Status end(Fate fate, std::unique_lock<std::mutex>& lock) {
      group_.gone_[rank_] = true;
      group_.changed_.notify_all();
      lock.unlock();
      if (fate == Fate::kDies) throw Killed{};
      return broken();
    }

    // Contributes `mine`, waits for the parts of all members, and reads all of them.
    template <class Read>
    [[nodiscard]] Status exchange(OperationKind kind, std::span<const std::byte> mine, Read read) {
      const std::uint64_t number = operations_++;
      const Fate fate = begin(kind, number);
      std::unique_lock lock(group_.mutex_);
      if (over()) return broken();
      Operation& operation = group_.operations_[number];
      operation.parts[rank_].assign(mine.begin(), mine.end());
      group_.changed_.notify_all();
      if (fate != Fate::kGoesOn) return end(fate, lock);
      group_.changed_.wait(lock, [&] {
        return operation.parts.size() == size() || over() || group_.lacks_a_part(operation);
      });
      if (operation.parts.size() < size()) return broken();
      for (const auto& [rank, bytes] : operation.parts) read(rank, bytes);
      if (++operation.done == size()) group_.operations_.erase(number);
      return {};
    }

    LocalGroup& group_;
    const std::uint32_t rank_;
    const Script script_;
    std::uint64_t operations_ = 0, sends_ = 0, receives_ = 0;
  };

  [[nodiscard]] bool lacks_a_part(const Operation& operation) const {
    for (std::uint32_t rank = 0; rank < size_; ++rank) {
      if (gone_[rank] && !operation.parts.contains(rank)) return true;
    }
    return false;
  }

  const std::uint32_t size_;
  std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  std::vector<bool> gone_;
  std::map<std::uint64_t, Operation> operations_;
  std::vector<Link> links_;  // by the rank that sends
};

}  // namespace antdt::trainer
