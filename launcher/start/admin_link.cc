#include "launcher/start/admin_link.h"

#include "core/wire/packet.h"
#include "launcher/config/cluster.h"

namespace antdt::launcher {

Result<transport::Socket> connect_to_agent(transport::Context& context,
                                           const std::string& host_port, const std::string& keys) {
  ClusterSection cluster;
  cluster.hosts = {host_port};
  cluster.keys = keys;
  ANTDT_TRY(const ClusterKeys known, load_cluster_keys(cluster));
  return transport::Socket::connect_tcp(context, host_port, known.job, known.agents.front().z85);
}

Result<AdminLink> AdminLink::open(transport::Context& context, const std::string& host_port,
                                  const std::string& keys) {
  ANTDT_TRY(transport::Socket socket, connect_to_agent(context, host_port, keys));
  return AdminLink(std::move(socket));
}

Result<wire::JobsReply> AdminLink::jobs(Duration timeout) {
  ANTDT_TRY(const wire::Packet packet,
            transport::request(socket_, wire::make_packet(wire::JobsRequest{}), timeout));
  return wire::open_reply<wire::JobsReply>(packet);
}

Status AdminLink::drain(const wire::DrainHost& order, Duration timeout) {
  ANTDT_TRY(const wire::Packet packet,
            transport::request(socket_, wire::make_packet(order), timeout));
  ANTDT_TRY([[maybe_unused]] const wire::Done done, wire::open_reply<wire::Done>(packet));
  return {};
}

}  // namespace antdt::launcher
