#include "launcher/start/job_link.h"

#include <algorithm>
#include <utility>

#include "core/wire/admin_messages.h"
#include "core/wire/drill_messages.h"
#include "core/wire/envelope.h"
#include "core/wire/operator_messages.h"
#include "core/wire/packet.h"
#include "launcher/config/cluster.h"
#include "launcher/start/admin_link.h"

namespace antdt::launcher {
namespace {

// The number of an order whose answer is awaited without a limit; requests with one have 0.
constexpr std::uint64_t kPatient = 1;
constexpr Duration kBusyFor = std::chrono::seconds(1);

// Why an agent cannot pass a request on just now; "": it is another answer.
std::string why_busy(const wire::Envelope& envelope, const wire::Packet& packet) {
  if (envelope.kind != wire::Refused::kKind) return "";
  const auto refused = wire::decode<wire::Refused>(packet.body);
  return refused && refused->code == wire::RefusalCode::kBusy ? refused->reason : "";
}

}  // namespace

Result<JobLink> JobLink::open(transport::Context& context, const std::string& jobd_socket) {
  ANTDT_TRY(transport::Socket socket, transport::Socket::connect_ipc(context, jobd_socket));
  return JobLink(std::move(socket), "", "", "");
}

Result<JobLink> JobLink::open_through(transport::Context& context, const std::string& host_port,
                                      const std::string& keys, const std::string& job) {
  ANTDT_TRY(transport::Socket socket, connect_to_agent(context, host_port, keys));
  return JobLink(std::move(socket), job, host_port, keys);
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

// Who does not answer, for people.
Result<wire::Packet> JobLink::ask(const wire::Packet& packet, Duration timeout) {
  auto answer = transport::request(socket_, packet, timeout);
  if (answer || answer.error().kind != ErrorKind::kUnreachable) return answer;
  if (job_.empty()) {
    return fail(ErrorKind::kUnreachable, "no answer within {:g} s from the job daemon at {}",
                to_seconds(timeout), socket_.endpoint());
  }
  const Status silent = check_answers({agent_}, timeout, keys_);
  return fail(ErrorKind::kUnreachable,
              "{}. If antdt jobs --agent {} answers, it is the job's daemon that does not",
              silent.error().message, agent_);
}

Result<JobStatus> JobLink::status(std::uint64_t events_from, Duration timeout) {
  wire::StatusRequest question;
  question.events_from = events_from;
  ANTDT_TRY(const wire::Packet packet, ask(packet_of(question), timeout));
  ANTDT_TRY(wire::StatusReply reply, wire::open_reply<wire::StatusReply>(packet));
  return JobStatus{std::move(reply.status_json), std::move(reply.events), reply.next_event};
}

template <class Order>
Status JobLink::order(const Order& order, Duration timeout) {
  ANTDT_TRY(const wire::Packet packet, ask(packet_of(order), timeout));
  ANTDT_TRY([[maybe_unused]] const wire::Done done, wire::open_reply<wire::Done>(packet));
  return {};
}

template <class Order>
Status JobLink::order(const Order& order, Duration every, const std::function<Status()>& waits) {
  const SteadyClock clock;
  MonoTime tell_at = clock.now() + every;
  std::string busy;  // why the agent did not pass it on
  send(order, kPatient);
  while (true) {
    if (clock.now() >= tell_at) {
      tell_at = clock.now() + every;
      const Status may_wait = waits();
      if (!may_wait && !busy.empty()) return fail(ErrorKind::kUnreachable, "{}", busy);
      ANTDT_RETURN_IF_ERROR(may_wait);
    }
    if (!socket_.wait_readable(busy.empty() ? every : std::min(every, kBusyFor))) {
      if (!std::exchange(busy, "").empty()) send(order, kPatient);  // once for each refusal
      continue;
    }
    const std::optional<wire::Packet> packet = socket_.receive();
    if (!packet) continue;
    const Result<wire::Envelope> envelope = wire::open_envelope(*packet);
    if (!envelope || envelope->seq != kPatient) continue;  // of a request that was given up
    busy = why_busy(*envelope, *packet);
    if (!busy.empty()) continue;
    ANTDT_TRY([[maybe_unused]] const wire::Done done, wire::open_reply<wire::Done>(*packet));
    return {};
  }
}

template <class Request>
void JobLink::send(const Request& request, std::uint64_t number) {
  [[maybe_unused]] const auto sent = socket_.send(packet_of(request, number));
}

std::optional<wire::Packet> JobLink::receive() { return socket_.receive(); }

template Status JobLink::order(const wire::EvictWorkers&, Duration);
template Status JobLink::order(const wire::EvictWorkers&, Duration, const std::function<Status()>&);
template Status JobLink::order(const wire::InjectRules&, Duration, const std::function<Status()>&);
template Status JobLink::order(const wire::ResizeJob&, Duration, const std::function<Status()>&);
template Status JobLink::order(const wire::ApproveAction&, Duration,
                               const std::function<Status()>&);
template Status JobLink::order(const wire::SkipRecords&, Duration, const std::function<Status()>&);
template Status JobLink::order(const wire::StopJob&, Duration, const std::function<Status()>&);
template void JobLink::send(const wire::StatusRequest&, std::uint64_t);
template void JobLink::send(const wire::StopJob&, std::uint64_t);
template void JobLink::send(const wire::HostGone&, std::uint64_t);

}  // namespace antdt::launcher
