#include "launcher/start/job_link.h"

#include "core/wire/drill_messages.h"
#include "core/wire/envelope.h"
#include "core/wire/operator_messages.h"
#include "core/wire/packet.h"

namespace antdt::launcher {

Result<JobLink> JobLink::open(transport::Context& context, const std::string& jobd_socket) {
  ANTDT_TRY(transport::Socket socket, transport::Socket::connect_ipc(context, jobd_socket));
  return JobLink(std::move(socket));
}

Result<JobStatus> JobLink::status(std::uint64_t events_from, Duration timeout) {
  wire::StatusRequest question;
  question.events_from = events_from;
  ANTDT_TRY(const wire::Packet packet,
            transport::request(socket_, wire::make_packet(question), timeout));
  ANTDT_TRY(wire::StatusReply reply, wire::open_reply<wire::StatusReply>(packet));
  return JobStatus{std::move(reply.status_json), std::move(reply.events), reply.next_event};
}

Status JobLink::stop(const std::string& reason, std::chrono::milliseconds grace, Duration timeout) {
  wire::StopJob order;
  order.reason = reason;
  order.grace_ms = static_cast<std::uint32_t>(grace.count());
  return this->order(order, timeout);
}

template <class Order>
Status JobLink::order(const Order& order, Duration timeout) {
  ANTDT_TRY(const wire::Packet packet,
            transport::request(socket_, wire::make_packet(order), timeout));
  ANTDT_TRY([[maybe_unused]] const wire::Done done, wire::open_reply<wire::Done>(packet));
  return {};
}

template Status JobLink::order(const wire::EvictWorkers&, Duration);
template Status JobLink::order(const wire::InjectRules&, Duration);
template Status JobLink::order(const wire::ResizeJob&, Duration);
template Status JobLink::order(const wire::ApproveAction&, Duration);
template Status JobLink::order(const wire::SkipRecords&, Duration);
template Status JobLink::order(const wire::StopJob&, Duration);

}  // namespace antdt::launcher
