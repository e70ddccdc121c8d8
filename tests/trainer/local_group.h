// Members of one group as threads of a test, joined without a network.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "trainer/collective/collective.h"

namespace antdt::trainer {

class LocalGroup {
 public:
  explicit LocalGroup(std::uint32_t size) : size_(size), copies_(size) {}

  [[nodiscard]] std::unique_ptr<Collective> member(std::uint32_t rank) {
    return std::make_unique<Member>(*this, rank);
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
  // Waits for all members, who pass together; false when this one was aborted.
  [[nodiscard]] bool meet(const bool& aborted) {
    std::unique_lock lock(mutex_);
    const std::uint64_t round = round_;
    if (++arrived_ == size_) {
      arrived_ = 0;
      ++round_;
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return round_ != round || aborted; });
    return round_ != round;
  }

  class Member final : public Collective {
   public:
    Member(LocalGroup& group, std::uint32_t rank) : group_(group), rank_(rank) {}
    [[nodiscard]] std::uint32_t rank() const override { return rank_; }
    [[nodiscard]] std::uint32_t size() const override { return group_.size_; }
    [[nodiscard]] Status allreduce_sum(std::span<float> values) override {
      const auto bytes_of_mine = std::as_bytes(values);
      group_.copies_[rank_].assign(bytes_of_mine.begin(), bytes_of_mine.end());
      if (!group_.meet(aborted_)) return aborted();
      std::vector<float> sum(values.size());
      for (const auto& bytes : group_.copies_) {
        const auto* const other = reinterpret_cast<const float*>(bytes.data());
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += other[i];
      }
      if (!group_.meet(aborted_)) return aborted();
      std::copy(sum.begin(), sum.end(), values.begin());
      return {};
    }
    [[nodiscard]] Status allgather(std::span<const std::byte> mine,
                                   std::span<std::byte> all) override {
      group_.copies_[rank_].assign(mine.begin(), mine.end());
      if (!group_.meet(aborted_)) return aborted();
      for (std::uint32_t rank = 0; rank < group_.size_; ++rank) {
        std::memcpy(all.data() + rank * mine.size(), group_.copies_[rank].data(), mine.size());
      }
      if (!group_.meet(aborted_)) return aborted();
      return {};
    }
    void abort() override {
      const std::lock_guard lock(group_.mutex_);
      aborted_ = true;
      group_.changed_.notify_all();
    }

   private:
    [[nodiscard]] Status aborted() const { return fail(ErrorKind::kAborted, "aborted"); }
    LocalGroup& group_;
    std::uint32_t rank_;
    bool aborted_ = false;
  };

  std::uint32_t size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint32_t arrived_ = 0;
  std::uint64_t round_ = 0;
  // Copies: a member that was aborted leaves while others still read.
  std::vector<std::vector<std::byte>> copies_;
};

}  // namespace antdt::trainer
