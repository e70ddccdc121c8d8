#include "launcher/start/job_link.h"

#include "core/wire/admin_messages.h"
#include "core/wire/drill_messages.h"
#include "core/wire/envelope.h"
#include "core/wire/operator_messages.h"
#include "core/wire/packet.h"
#include "launcher/start/admin_link.h"

namespace antdt::launcher {

Result<JobLink> JobLink::open(transport::Context& context, const std::string& jobd_socket) {
  ANTDT_TRY(transport::Socket socket, transport::Socket::connect_ipc(context, jobd_socket));
  return JobLink(std::move(socket), "");
}

Result<JobLink> JobLink::open_through(transport::Context& context, const std::string& host_port,
                                      const std::string& keys, const std::string& job) {
  ANTDT_TRY(transport::Socket socket, connect_to_agent(context, host_port, keys));
  return JobLink(std::move(socket), job);
}

template <class Request>
wire::Packet JobLink::packet_of(const Request& request, std::uint64_t number) const {
  wire::Envelope envelope;
  envelope.seq = number;
  if (job_.empty()) return wire::make_packet(envelope, request);
  envelope.job = job_;
  return wire::make_packet(
      envelope, wire::RelayedRequest{std::string(Request::kKind), wire::encode(request), ""});
}

Result<JobStatus> JobLink::status(std::uint64_t events_from, Duration timeout) {
  wire::StatusRequest question;
  question.events_from = events_from;
  ANTDT_TRY(const wire::Packet packet, transport::request(socket_, packet_of(question), timeout));
  ANTDT_TRY(wire::StatusReply reply, wire::open_reply<wire::StatusReply>(packet));
  return JobStatus{std::move(reply.status_json), std::move(reply.events), reply.next_event};
}

Status JobLink::stop(const std::string& reason, std::optional<std::chrono::milliseconds> grace,
                     Duration timeout) {
  wire::StopJob order;
  order.reason = reason;
  order.has_own_grace = !grace.has_value();
  if (grace) order.grace_ms = static_cast<std::uint32_t>(grace->count());
  return this->order(order, timeout);
}

template <class Order>
Status JobLink::order(const Order& order, Duration timeout) {
  ANTDT_TRY(const wire::Packet packet, transport::request(socket_, packet_of(order), timeout));
  ANTDT_TRY([[maybe_unused]] const wire::Done done, wire::open_reply<wire::Done>(packet));
  return {};
}

template <class Request>
void JobLink::send(const Request& request, std::uint64_t number) {
  [[maybe_unused]] const auto sent = socket_.send(packet_of(request, number));
}

std::optional<wire::Packet> JobLink::receive() { return socket_.receive(); }

template Status JobLink::order(const wire::EvictWorkers&, Duration);
template Status JobLink::order(const wire::InjectRules&, Duration);
template Status JobLink::order(const wire::ResizeJob&, Duration);
template Status JobLink::order(const wire::ApproveAction&, Duration);
template Status JobLink::order(const wire::SkipRecords&, Duration);
template Status JobLink::order(const wire::StopJob&, Duration);
template void JobLink::send(const wire::StatusRequest&, std::uint64_t);
template void JobLink::send(const wire::StopJob&, std::uint64_t);
template void JobLink::send(const wire::HostGone&, std::uint64_t);

}  // namespace antdt::launcher
