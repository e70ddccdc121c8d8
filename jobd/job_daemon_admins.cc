// Orders of a cluster's administrators, who cannot reach the job daemon's own socket: they
// come through an agent, which has looked at who they are.
#include "core/wire/admin_messages.h"
#include "core/wire/packet.h"
#include "jobd/job_daemon.h"

namespace antdt::jobd {

Status JobDaemon::obey(const wire::AdminOrder& order) {
  const std::string reason =
      fmt::format("asked by {}{}{}", order.who, order.reason.empty() ? "" : ": ", order.reason);
  if (order.order == wire::AdminOrderKind::kStop) {
    const auto grace =
        order.time_ms == 0 ? config_.failure.stop_grace : std::chrono::milliseconds(order.time_ms);
    return asked(wire::StopJob{reason, static_cast<std::uint32_t>(grace.count())});
  }
  wire::EvictWorkers evict;
  evict.target = order.target;
  evict.reason = order.reason;
  evict.who = order.who;
  if (order.time_ms > 0) evict.deadline_ms = order.time_ms;
  return asked(evict);
}

void JobDaemon::on_admin_order(const std::string& endpoint, const wire::Envelope& envelope,
                               std::string_view body) {
  const auto order = wire::decode<wire::AdminOrder>(body);
  const Status done = order ? obey(*order) : Status(tl::unexpected(order.error()));
  wire::AdminAnswer answer{done.has_value(), done ? "" : done.error().message};
  send({endpoint, ""}, {}, {}, answer, envelope.seq);
}

}  // namespace antdt::jobd
