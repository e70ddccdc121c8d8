// The collective operations of members of which some share a host: in shared memory within each
// host, and over tcp between the hosts' leaders.
//
// A sum is reduced to each host's leader, the leaders sum over tcp, and each leader gives the
// result to its host. A host sends and receives each byte once, however many members it has, and
// hosts may have different numbers of members. What is gathered takes the same way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "trainer/collective/collective.h"
#include "trainer/collective/hop.h"
#include "trainer/collective/host_groups.h"
#include "trainer/collective/shm/bell.h"
#include "trainer/collective/shm/host_group.h"
#include "trainer/collective/tcp/tcp_collective.h"
#include "trainer/collective/tcp/tcp_links.h"

namespace antdt::trainer {

class LayeredCollective final : public Collective, private Neighbours {
 public:
  struct Parts {
    HostGroups groups;
    std::unique_ptr<shm::HostGroup> host;  // null if this member is alone on its host
    std::shared_ptr<shm::Bell> bell;       // wakes `host`
    std::shared_ptr<TcpLinks> links;       // connected to tcp_peers()
  };
  explicit LayeredCollective(Parts parts);

  // The ranks to which `rank` needs connections over tcp: other leaders if it is one, and the
  // neighbours on other hosts.
  [[nodiscard]] static std::vector<std::uint32_t> tcp_peers(const HostGroups& groups,
                                                            std::uint32_t rank);

  [[nodiscard]] std::uint32_t rank() const override { return rank_; }
  [[nodiscard]] std::uint32_t size() const override {
    return static_cast<std::uint32_t>(groups_.members());
  }
  void abort() override;
  [[nodiscard]] Status allreduce_sum(std::span<float> values) override;
  [[nodiscard]] Status allreduce_sum(std::span<double> values) override;
  [[nodiscard]] Status allgather_parts(std::span<const std::size_t> sizes,
                                       std::span<std::byte> all) override;
  // Over tcp, also between members of one host: their memory is divided among all of them.
  [[nodiscard]] Status alltoall_parts(std::span<const std::size_t> sent_sizes,
                                      std::span<const std::byte> sent,
                                      std::span<const std::size_t> received_sizes,
                                      std::span<std::byte> received) override;
  // Its operations go over tcp, also between members of one host.
  [[nodiscard]] Result<std::unique_ptr<Collective>> group(
      std::span<const std::uint32_t> ranks) override;
  [[nodiscard]] std::shared_ptr<LinkLedger> ledger() const override { return links_->ledger(); }
  [[nodiscard]] Status send_right(std::span<const std::byte> bytes) override;
  [[nodiscard]] Status receive_left(std::span<std::byte> bytes) override;
  [[nodiscard]] Result<std::optional<Duration>> measure_hop() override;
  [[nodiscard]] std::string description() const override { return groups_.in_words(); }

 private:
  template <class T>
  [[nodiscard]] Status sum(std::span<T> values);
  template <class T>
  [[nodiscard]] Status sum_over_hosts(std::span<T> values);
  [[nodiscard]] Status gather_over_hosts();
  [[nodiscard]] Status send_to(Side side, std::span<const std::byte> bytes) override;
  [[nodiscard]] Status receive_from(Side side, std::span<std::byte> bytes) override;
  [[nodiscard]] std::uint32_t neighbour(Side side) const;
  // The neighbour's index on this host; empty if it is on another one.
  [[nodiscard]] std::optional<std::uint32_t> neighbour_here(Side side) const;
  [[nodiscard]] bool leads() const { return groups_.place_of(rank_).index == 0; }
  // An error of one layer ends the other one, too, so that nobody waits for this member.
  [[nodiscard]] Status checked(Status status);

  const HostGroups groups_;
  const std::shared_ptr<shm::HostGroup> host_;
  const std::shared_ptr<shm::Bell> bell_;
  const std::shared_ptr<TcpLinks> links_;
  const std::uint32_t rank_;
  std::optional<TcpCollective> all_;        // all members over tcp, for all-to-all exchanges
  std::unique_ptr<TcpCollective> leaders_;  // only if this member leads one of several hosts
  // Where the parts of what is gathered belong: by rank, and of the members of this host by index.
  std::vector<std::span<std::byte>> parts_, parts_here_;
  std::vector<std::size_t> bytes_of_hosts_;
  std::vector<std::byte> by_host_;  // the parts of all members, host by host
};

}  // namespace antdt::trainer
