// What an agent does for administrators, and for users whose job daemon is on another host: it
// lists the jobs on this host, tells monitoring of them, drains the host, and passes requests on to
// job daemons, which otherwise only their own user can reach, on their own host.
#include "antdtd/agent/agent.h"
#include "core/log/log.h"
#include "core/utf8.h"
#include "core/wire/operator_messages.h"
#include "core/wire/packet.h"

namespace antdt::antdtd {
namespace {

// What an administrator may do to a job of another user, in words; empty for what they may not.
std::string_view deed_of_administrators(std::string_view kind) {
  if (kind == wire::StatusRequest::kKind) return "ask for the status of";
  if (kind == wire::StopJob::kKind) return "stop";
  if (kind == wire::EvictWorkers::kKind) return "evict from";
  return "";
}

std::string why_not(std::string_view deed, std::string_view kind, const std::string& job,
                    const std::string& user) {
  if (deed.empty()) {
    return fmt::format("only its own user may send '{}' to job {}, and that is not '{}'", kind, job,
                       user);
  }
  return fmt::format(
      "only its own user and members of the group {} may {} job {}, and '{}' is neither on this "
      "host",
      kAdminGroup, deed, job, user);
}

}  // namespace

void Agent::on_admin(const wire::Envelope& envelope, const wire::Packet& packet,
                     const KnownUser& user) {
  if (envelope.kind == wire::JobsRequest::kKind) return list_jobs(envelope, packet, user);
  if (envelope.kind == wire::DrainHost::kKind) return drain_host(envelope, packet, user);
  Result<wire::RelayedRequest> request = wire::decode<wire::RelayedRequest>(packet.body);
  if (!request)
    return daemons_->refuse(packet, envelope, wire::RefusalCode::kInvalid, request.error().message);
  const bool own =
      records_.contains(envelope.job) && sockets_->owner_of(envelope.job).uid == user.identity.uid;
  if (supervision_.is_over(envelope.job) && (own || user.admin)) {
    return daemons_->refuse(
        packet, envelope, wire::RefusalCode::kUnknown,
        fmt::format("job {} has ended; its last processes here are being ended", envelope.job));
  }
  if (!daemons_->links().attached(envelope.job)) {
    if (own || (user.admin && records_.contains(envelope.job))) {
      return daemons_->refuse(packet, envelope, wire::RefusalCode::kBusy,
                              fmt::format("the daemon of job {} is not connected to this agent "
                                          "just now: try again when it is back",
                                          envelope.job));
    }
    return daemons_->refuse(packet, envelope, wire::RefusalCode::kUnknown,
                            fmt::format("no daemon of job {} is connected to this agent: antdt "
                                        "jobs --agent lists those that are",
                                        envelope.job));
  }
  const std::string_view deed = deed_of_administrators(request->kind);
  if (!own && (!user.admin || deed.empty())) {
    log_warn("the user {} sent '{}' to job {} and may not: refused", user.identity.name,
             request->kind, envelope.job);
    return daemons_->refuse(packet, envelope, wire::RefusalCode::kUser,
                            why_not(deed, request->kind, envelope.job, user.identity.name));
  }
  request->who =
      fmt::format("{}{}@{}", own ? "" : "the administrator ", user.identity.name, options_.host);
  if (request->kind != wire::StatusRequest::kKind) {
    log_info("{} sends '{}' to job {}", request->who, request->kind, envelope.job);
  }
  wire::Envelope to;
  to.job = envelope.job;
  to.seq = desk_.ask({envelope.job, packet.peer, envelope.seq});
  daemons_->send_or_drop(envelope.job, wire::make_packet(to, *request));
}

void Agent::list_jobs(const wire::Envelope& envelope, const wire::Packet& packet,
                      const KnownUser& user) {
  wire::JobsReply reply;
  for (const auto& [job, record] : records_) {
    const UserIdentity& owner = sockets_->owner_of(job);
    if (!user.admin && owner.uid != user.identity.uid) continue;
    reply.jobs.push_back({job, owner.name,
                          static_cast<std::uint32_t>(supervision_.running(job).size()),
                          daemons_->links().attached(job), supervision_.is_over(job)});
  }
  reply.drain = drain_;
  daemons_->reply(packet, wire::make_packet(envelope, reply));
}

// A daemon that is away hears of it when it attaches.
void Agent::drain_host(const wire::Envelope& envelope, const wire::Packet& packet,
                       const KnownUser& user) {
  const Result<wire::DrainHost> order = wire::decode<wire::DrainHost>(packet.body);
  if (!order)
    return daemons_->refuse(packet, envelope, wire::RefusalCode::kInvalid, order.error().message);
  if (!user.admin && user.identity.uid != sockets_->own().uid) {
    log_warn("the user {} asked to drain this host and is no administrator: refused",
             user.identity.name);
    return daemons_->refuse(
        packet, envelope, wire::RefusalCode::kUser,
        fmt::format("only {} and members of the group {} may drain host {}, and '{}' is neither",
                    sockets_->own().name, kAdminGroup, options_.host, user.identity.name));
  }
  std::optional<wire::Drain> drain;
  if (order->drained) {
    drain = wire::Drain{fmt::format("{}@{}", user.identity.name, options_.host),
                        valid_utf8(order->reason, wire::Drain::kMostOfAReason)};
  }
  if (const Status saved = store_.save_drain(drain); !saved) {
    return daemons_->refuse(packet, envelope, wire::RefusalCode::kIo, saved.error().message);
  }
  drain_ = std::move(drain);
  log_info("{}", drain_ ? "this host is drained " + wire::to_text(*drain_)
                        : fmt::format("{} ended the drain of this host", user.identity.name));
  for (const auto& [job, record] : records_) {
    if (!daemons_->links().attached(job)) continue;
    wire::Envelope to;
    to.job = job;
    daemons_->send(job, wire::make_packet(to, wire::HostDrain{drain_}));
  }
  daemons_->reply(packet, wire::make_packet(envelope, wire::Done{}));
}

metrics::Families Agent::families() const {
  AgentFacts facts{options_.version, options_.host, options_.capacity, supervision_.free(), {},
                   counts_};
  facts.whole.devices = static_cast<std::uint32_t>(supervision_.devices().devices().size());
  for (const auto& [job, record] : records_) {
    facts.jobs.push_back({job, sockets_->owner_of(job).name,
                          static_cast<std::uint32_t>(supervision_.running(job).size()),
                          daemons_->links().attached(job)});
  }
  return agent_metrics(facts);
}

std::string Agent::summary() const {
  std::size_t processes = 0;
  std::size_t unattended = 0;
  for (const auto& [job, record] : records_) {
    processes += supervision_.running(job).size();
    if (!daemons_->links().attached(job)) ++unattended;
  }
  std::string text = fmt::format("{} jobs, {} processes", records_.size(), processes);
  if (unattended > 0) text += fmt::format("; the job daemons of {} are away", unattended);
  if (drain_) text += "; drained " + wire::to_text(*drain_);
  return text;
}

void Agent::on_relayed_reply(const wire::Envelope& envelope, wire::RelayedReply reply) {
  const auto waiting = desk_.take(envelope.seq, envelope.job);
  if (!waiting) return;
  wire::Packet to;
  to.peer = waiting->peer;
  wire::Envelope about;
  about.job = envelope.job;
  about.seq = waiting->seq;
  about.kind = std::move(reply.kind);
  daemons_->reply(to, wire::make_packet_of(about, std::move(reply.body)));
}

}  // namespace antdt::antdtd
