#include "trainer/loop/served/linked_rows.h"

#include <array>
#include <utility>

#include "core/check.h"
#include "trainer/ps/placement.h"

namespace antdt::trainer {

class LinkedRows::Guarded final : public StepRows::Link {
 public:
  explicit Guarded(std::shared_ptr<ps::WorkerLink> link) : link_(std::move(link)) {}
  void abort() override { link_->abort(); }

 private:
  std::shared_ptr<ps::WorkerLink> link_;
};

Result<std::shared_ptr<StepRows::Link>> LinkedRows::use(Generation group,
                                                        const wire::PsRoster& servers) {
  leave();
  const Status connected = connect(group, servers);
  if (!connected) {
    unconnected_ = connected.error();
    return tl::unexpected<Error>(connected.error());
  }
  group_ = group;
  return std::make_shared<Guarded>(link_);
}

Status LinkedRows::connect(Generation group, const wire::PsRoster& servers) {
  ps::Peers peers;
  peers.generation = group;
  peers.servers = servers.servers;
  peers.keys = servers.keys;
  peers.own = parts_.keys;
  peers.send_delay = parts_.send_delay;
  peers.number = servers.number;
  ANTDT_TRY(peers.consistency, ps::consistency_of(servers.sync));
  ANTDT_TRY(link_, ps::WorkerLink::connect(context_, std::move(peers), parts_.self));
  return {};
}

void LinkedRows::leave() {
  link_.reset();
  unconnected_.reset();
  open_ = false;
  part_.clear();
}

Status LinkedRows::open(const HostedRows& rows) {
  if (unconnected_) return tl::unexpected<Error>(*unconnected_);
  ANTDT_CHECK(link_ != nullptr, "rows are wanted, and no generation has settled");
  if (open_) return {};
  ANTDT_RETURN_IF_ERROR(link_->open({parts_.seed, rows.tables()}));
  open_ = true;
  return {};
}

void LinkedRows::complete(wire::PsConcluded& concluded) const {
  if (concluded.cut != 0) concluded.directory = directory_of(concluded.cut);
}

std::string LinkedRows::directory_of(std::uint64_t cut) const {
  return wire::slices_directory(cut, group_);
}

Status LinkedRows::pull(HostedRows& rows, const data::Examples& batch,
                        wire::PsConcluded concluded) {
  ANTDT_RETURN_IF_ERROR(open(rows));
  complete(concluded);
  std::vector<ps::TableKeys> keys = rows.rows_of(batch);
  ANTDT_TRY(const auto pulled, link_->step_pull(keys, concluded));
  return rows.put(std::move(keys), pulled.values);
}

void LinkedRows::add(std::vector<ps::TableGradient> gradients) {
  if (part_.empty()) {
    part_ = std::move(gradients);
    return;
  }
  ANTDT_CHECK(part_.size() == gradients.size(), "{} and {} tables", part_.size(), gradients.size());
  for (std::size_t t = 0; t < part_.size(); ++t) {
    const ps::Gradient& more = gradients[t].gradient;
    if (more.keys.empty()) continue;
    const std::array both{&std::as_const(part_[t].gradient), &more};
    part_[t].gradient =
        ps::merge(both, static_cast<std::uint32_t>(more.values.size() / more.keys.size()));
  }
}

Status LinkedRows::send(HostedRows& rows, wire::PsConcluded concluded, std::uint32_t rank) {
  ANTDT_RETURN_IF_ERROR(open(rows));
  complete(concluded);
  const std::vector<ps::TableGradient> part = std::exchange(part_, {});
  return link_->say_part(part, concluded, rank);
}

Status LinkedRows::await_staged() { return link_->await_staged(); }

Status LinkedRows::conclude(HostedRows& rows, wire::PsConcluded concluded) {
  ANTDT_RETURN_IF_ERROR(open(rows));
  complete(concluded);
  ANTDT_RETURN_IF_ERROR(link_->step_pull({}, concluded));
  return {};
}

}  // namespace antdt::trainer
