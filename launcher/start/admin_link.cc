#include "launcher/start/admin_link.h"

#include "core/os/net.h"
#include "core/wire/packet.h"
#include "launcher/config/agent_address.h"
#include "launcher/config/cluster.h"

namespace antdt::launcher {

Result<transport::Socket> connect_to_agent(transport::Context& context,
                                           const std::string& host_port, const std::string& keys) {
  ANTDT_TRY(const std::string end_point, agent_end_point(host_port));
  const std::string name = host_of(end_point);
  if (const auto known = addresses_of(name); !known) {
    return fail(
        known.error().kind,
        "the name {} has no address: {}. Is it spelt correctly? Otherwise name the agent by "
        "its address",
        name, known.error().message);
  }
  ClusterSection cluster;
  cluster.hosts = {end_point};
  cluster.keys = keys;
  ANTDT_TRY(const ClusterKeys known, load_cluster_keys(cluster));
  return transport::Socket::connect_tcp(context, end_point, known.job, known.agents.front().z85);
}

Result<AdminLink> AdminLink::open(transport::Context& context, const std::string& host_port,
                                  const std::string& keys) {
  ANTDT_TRY(transport::Socket socket, connect_to_agent(context, host_port, keys));
  return AdminLink(std::move(socket), host_port, keys);
}

Result<wire::Packet> AdminLink::ask(const wire::Packet& packet, Duration timeout) {
  auto answer = transport::request(socket_, packet, timeout);
  if (!answer && answer.error().kind == ErrorKind::kUnreachable) {
    ANTDT_RETURN_IF_ERROR(check_answers({agent_}, timeout, keys_));
  }
  return answer;
}

Result<wire::JobsReply> AdminLink::jobs(Duration timeout) {
  ANTDT_TRY(const wire::Packet packet, ask(wire::make_packet(wire::JobsRequest{}), timeout));
  return wire::open_reply<wire::JobsReply>(packet);
}

Status AdminLink::drain(const wire::DrainHost& order, Duration timeout) {
  ANTDT_TRY(const wire::Packet packet, ask(wire::make_packet(order), timeout));
  ANTDT_TRY([[maybe_unused]] const wire::Done done, wire::open_reply<wire::Done>(packet));
  return {};
}

}  // namespace antdt::launcher
