// The collective operations over tcp connections between members.
//
// A member is connected to the ranks at distances of 1, 2, 4, ... on both sides; there is no store
// and no full mesh. A group of members is another such object over the same connections, of which
// those that are missing are made when the group is; an all-to-all exchange connects the rest.
// Large sums go around the ring, which sends the fewest bytes. Small sums, and gathering, use
// doubling distances, which takes the fewest rounds (trainer/collective/tcp/rounds.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/result.h"
#include "trainer/collective/collective.h"
#include "trainer/collective/hop.h"
#include "trainer/collective/tcp/rounds.h"
#include "trainer/collective/tcp/tcp_links.h"

namespace antdt::trainer {

class TcpCollective final : public Collective, private Neighbours {
 public:
  // `members` are ranks of the links, and the links' own is one of them; a member's rank here is
  // its place among them. The links must be connected to peers_among() them.
  TcpCollective(std::shared_ptr<TcpLinks> links, std::vector<std::uint32_t> members);

  // The ranks with which `rank` exchanges messages, if these are the members.
  [[nodiscard]] static std::vector<std::uint32_t> peers_among(
      std::uint32_t rank, const std::vector<std::uint32_t>& members);

  [[nodiscard]] std::uint32_t rank() const override { return rank_; }
  [[nodiscard]] std::uint32_t size() const override {
    return static_cast<std::uint32_t>(members_.size());
  }
  void abort() override { links_->abort(); }
  [[nodiscard]] Status allreduce_sum(std::span<float> values) override;
  [[nodiscard]] Status allreduce_sum(std::span<double> values) override;
  [[nodiscard]] Status allgather_parts(std::span<const std::size_t> sizes,
                                       std::span<std::byte> all) override;
  [[nodiscard]] Status alltoall_parts(std::span<const std::size_t> sent_sizes,
                                      std::span<const std::byte> sent,
                                      std::span<const std::size_t> received_sizes,
                                      std::span<std::byte> received) override;
  [[nodiscard]] Result<std::unique_ptr<Collective>> group(
      std::span<const std::uint32_t> ranks) override;
  [[nodiscard]] std::shared_ptr<LinkLedger> ledger() const override { return links_->ledger(); }
  [[nodiscard]] Status send_right(std::span<const std::byte> bytes) override;
  [[nodiscard]] Status receive_left(std::span<std::byte> bytes) override;
  [[nodiscard]] Result<std::optional<Duration>> measure_hop() override;
  [[nodiscard]] std::string description() const override;

 private:
  [[nodiscard]] Status send_to(Side side, std::span<const std::byte> bytes) override;
  [[nodiscard]] Status receive_from(Side side, std::span<std::byte> bytes) override;
  [[nodiscard]] std::uint32_t neighbour(Side side) const;  // its rank of the links
  [[nodiscard]] Status has_neighbour() const;
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
  [[nodiscard]] std::span<T> staging(std::size_t count) const {
    return {reinterpret_cast<T*>(links_->staging(count * sizeof(T)).data()), count};
  }
  // Calls f for each run of `blocks` in memory that has any bytes: one run, or two if the blocks
  // wrap around.
  template <class F>
  [[nodiscard]] Status for_each_run(const Blocks& blocks, std::span<std::byte> all, F f) const;

  const std::shared_ptr<TcpLinks> links_;
  const std::vector<std::uint32_t> members_;
  const std::uint32_t rank_;
  const DoublingPlan doubling_;
  const std::vector<GatherRound> gathering_;
  std::vector<std::size_t> begins_;  // begin of each rank's part in what is gathered, and the end
};

}  // namespace antdt::trainer
