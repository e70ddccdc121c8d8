#include "trainer/collective/prepare.h"

#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/log/log.h"
#include "trainer/collective/host_groups.h"
#include "trainer/collective/layered_collective.h"
#include "trainer/collective/shm/bell.h"
#include "trainer/collective/shm/host_group.h"
#include "trainer/collective/shm/host_identity.h"
#include "trainer/collective/shm/meeting.h"
#include "trainer/collective/tcp/tcp_collective.h"
#include "trainer/collective/tcp/tcp_links.h"

namespace antdt::trainer {
namespace {

struct Local {  // what a member that can share memory has
  std::string host;
  shm::Meeting meeting;
};

class Builder final : public CollectiveBuilder {
 public:
  Builder(std::shared_ptr<TcpLinks> links, std::shared_ptr<shm::Bell> bell,
          std::optional<Local> local, CollectiveOptions options)
      : links_(std::move(links)),
        bell_(std::move(bell)),
        local_(std::move(local)),
        options_(std::move(options)) {}

  [[nodiscard]] MemberAddress address() const override {
    if (!local_) return {links_->address(), {}};
    return {links_->address(), to_text({local_->host, local_->meeting.name()})};
  }

  [[nodiscard]] Result<std::unique_ptr<Collective>> connect(
      std::span<const MemberAddress> addresses, const GroupKey& key) override {
    std::vector<Sharing> sharing(addresses.size());
    std::vector<std::string> hosts;
    for (std::size_t rank = 0; rank < addresses.size(); ++rank) {
      const std::string& text = addresses[rank].sharing;
      if (local_ && !text.empty()) {
        ANTDT_TRY(sharing[rank], parse_sharing(text));
      }
      hosts.push_back(sharing[rank].host);
    }
    if (hosts.size() != links_->size()) {
      return fail(ErrorKind::kInternal, "{} addresses came for {} members", hosts.size(),
                  links_->size());
    }
    const HostGroups groups = HostGroups::of(hosts);
    return groups.any_shared() ? connect_layers(groups, sharing, addresses, key)
                               : connect_tcp(addresses, key);
  }

  void abort() override {
    links_->abort();
    bell_->abort();
  }

 private:
  [[nodiscard]] Status connect_links(const std::vector<std::uint32_t>& peers,
                                     std::span<const MemberAddress> members, const GroupKey& key) {
    std::vector<std::string> addresses;
    for (const MemberAddress& member : members) addresses.push_back(member.at);
    return links_->connect(peers, addresses, key);
  }

  [[nodiscard]] Result<std::unique_ptr<Collective>> connect_tcp(
      std::span<const MemberAddress> members, const GroupKey& key) {
    std::vector<std::uint32_t> all(links_->size());
    std::iota(all.begin(), all.end(), 0U);
    ANTDT_RETURN_IF_ERROR(
        connect_links(TcpCollective::peers_among(links_->rank(), all), members, key));
    return std::make_unique<TcpCollective>(links_, std::move(all));
  }

  [[nodiscard]] Result<std::unique_ptr<Collective>> connect_layers(
      const HostGroups& groups, const std::vector<Sharing>& sharing,
      std::span<const MemberAddress> members, const GroupKey& key) {
    const std::uint32_t rank = links_->rank();
    const auto& here = groups.ranks_on(groups.place_of(rank).host);
    LayeredCollective::Parts parts{groups, nullptr, bell_, links_};
    if (here.size() > 1) {
      std::vector<std::string> names;
      for (const Sharing& other : sharing) names.push_back(other.name);
      // Proofs for one kind of connection are worth nothing on the other.
      const GroupKey here_key{key.secret.derive("shared memory"), key.job, key.generation};
      ANTDT_TRY(auto mates, local_->meeting.meet(
                                {here_key, rank, links_->size(), options_.encrypt}, here, names,
                                {options_.connect_timeout, options_.operation_timeout}));
      mates->count_in(links_->ledger());
      parts.host = std::make_unique<shm::HostGroup>(std::move(mates), options_.send_delay);
    }
    ANTDT_RETURN_IF_ERROR(connect_links(LayeredCollective::tcp_peers(groups, rank), members, key));
    return std::make_unique<LayeredCollective>(std::move(parts));
  }

  const std::shared_ptr<TcpLinks> links_;
  const std::shared_ptr<shm::Bell> bell_;
  std::optional<Local> local_;
  const CollectiveOptions options_;
};

Result<Local> begin_sharing(const CollectiveOptions& options,
                            const std::shared_ptr<shm::Bell>& bell) {
  std::string identity = options.host;
  if (identity.empty()) {
    ANTDT_TRY(identity, own_host_identity());
  }
  if (!options.domain.empty()) identity += "/" + options.domain;
  ANTDT_TRY(auto meeting, shm::Meeting::listen(bell));
  return Local{std::move(identity), std::move(meeting)};
}

}  // namespace

Result<std::unique_ptr<CollectiveBuilder>> prepare_collective(std::uint32_t rank,
                                                              std::uint32_t size,
                                                              const CollectiveOptions& options) {
  ANTDT_TRY(auto links, TcpLinks::listen(rank, size, options));
  ANTDT_TRY(auto bell, shm::Bell::make());
  std::optional<Local> local;
  if (options.backend != Backend::kTcp && size > 1) {
    auto begun = begin_sharing(options, bell);
    if (!begun && options.backend == Backend::kShm) {
      return fail(begun.error().kind,
                  "this worker cannot share memory as trainer.collective = \"shm\" asks: {}; set "
                  "it to \"auto\" or \"tcp\"",
                  begun.error().message);
    }
    if (!begun) log_warn("this worker shares no memory with others: {}", begun.error().message);
    if (begun) local.emplace(std::move(*begun));
  }
  return std::make_unique<Builder>(std::move(links), std::move(bell), std::move(local), options);
}

}  // namespace antdt::trainer
