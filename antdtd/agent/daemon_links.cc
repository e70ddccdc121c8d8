#include "antdtd/agent/daemon_links.h"

#include <utility>

#include "antdtd/files/file_services.h"
#include "antdtd/shim/process_key.h"
#include "core/log/log.h"
#include "core/wire/admin_messages.h"
#include "core/wire/agent_messages.h"
#include "core/wire/packet.h"

namespace antdt::antdtd {
namespace {
// Bounds the links that sent Hello and never attached; any authorised key can make such links.
constexpr std::size_t kMaxVersions = 10000;
}  // namespace

DaemonLinks::DaemonLinks(transport::Socket socket, Handlers handlers)
    : socket_(std::move(socket)), handlers_(std::move(handlers)) {}

void DaemonLinks::receive(int limit) {
  for (int n = 0; n < limit; ++n) {
    auto packet = socket_.receive();
    if (!packet) return;
    handle(std::move(*packet));
  }
}

void DaemonLinks::handle(wire::Packet packet) {
  const Result<wire::Envelope> envelope = wire::open_envelope(packet);
  if (!envelope) return log_debug("from a job daemon: {}", envelope.error().message);
  if (!handlers_.authorized(packet.user)) return refuse_revoked(packet, envelope->job);
  if (envelope->kind == wire::Hello::kKind) return hello(*envelope, packet);
  const bool of_admin = envelope->kind == wire::RelayedRequest::kKind ||
                        envelope->kind == wire::JobsRequest::kKind ||
                        envelope->kind == wire::DrainHost::kKind;
  if (of_admin) return on_admin(*envelope, packet);
  if (!valid_job_id(envelope->job)) {
    return refuse(packet, *envelope, wire::RefusalCode::kInvalid,
                  fmt::format("'{}' is no job id: letters, digits, '-', '_' and '.', at most 128",
                              envelope->job));
  }
  if (FileServices::is_about_files(envelope->kind)) {
    return handlers_.on_files(*envelope, std::move(packet));
  }
  if (envelope->kind == wire::StartJob::kKind) return handlers_.on_start_job(*envelope, packet);
  if (envelope->kind == wire::Attach::kKind) return attach(*envelope, packet);
  if (!links_.speaks_for(packet.peer, envelope->job)) {
    wire::Envelope link;  // an envelope about the link, not about the worker that the packet names
    link.job = envelope->job;
    return refuse(packet, link, wire::RefusalCode::kUnknown,
                  "this link does not speak for job " + envelope->job + ": attach first");
  }
  handlers_.on_message(*envelope, std::move(packet));
}

void DaemonLinks::on_admin(const wire::Envelope& envelope, const wire::Packet& packet) {
  const Result<KnownUser> user = handlers_.user_of(packet.user);
  if (!user) return refuse(packet, envelope, wire::RefusalCode::kUser, user.error().message);
  handlers_.on_admin(envelope, packet, *user);
}

void DaemonLinks::refuse_revoked(const wire::Packet& packet, const std::string& job) {
  if (links_.speaks_for(packet.peer, job)) drop_revoked();
  wire::Envelope link;
  link.job = job;
  const Result<KnownUser> user = handlers_.user_of(packet.user);
  refuse(packet, link, wire::RefusalCode::kUser,
         user ? "the key is authorized again: ask again" : user.error().message);
}

void DaemonLinks::drop_revoked() {
  std::vector<std::string> revoked;
  for (const auto& [job, link] : links_.jobs()) {
    if (link.link && !handlers_.authorized(link.link->key)) revoked.push_back(job);
  }
  for (const std::string& job : revoked) {
    log_warn("the key of the daemon of job {} is not authorized any more: its link is cut", job);
    wire::Envelope envelope;
    envelope.job = job;
    wire::Packet to;
    to.peer = links_.find(job)->link->peer;
    refuse(
        to, envelope, wire::RefusalCode::kUser,
        "its key is not authorized on this agent any more: its file in authorized/ was removed or "
        "replaced, or cannot be read (the agent's log then says why)");
    versions_.erase(to.peer);
    lose_link(job);
    daemons_.erase(job);
  }
}

void DaemonLinks::hello(const wire::Envelope& envelope, const wire::Packet& packet) {
  const Result<wire::Hello> hello = wire::decode<wire::Hello>(packet.body);
  if (!hello) return refuse(packet, envelope, wire::RefusalCode::kInvalid, hello.error().message);
  const Result<std::uint32_t> version = wire::negotiate_version(*hello);
  if (!version)
    return refuse(packet, envelope, wire::RefusalCode::kVersion, version.error().message);
  const Result<KnownUser> user = handlers_.user_of(packet.user);
  if (!user) return refuse(packet, envelope, wire::RefusalCode::kUser, user.error().message);
  if (envelope.job.empty()) {
    // A launcher asks which resources are free here before there is a job.
    wire::AgentWelcome welcome = handlers_.welcome("", user->identity);
    welcome.version = *version;
    welcome.user = user->identity.name;
    return reply(packet, wire::make_packet(envelope, welcome));
  }
  if (versions_.size() >= kMaxVersions) versions_.clear();
  versions_[packet.peer] = *version;
}

Status DaemonLinks::try_attach(const std::string& job, const wire::Attach& attach,
                               const wire::Packet& packet, const UserIdentity& user) {
  const JobLinks::Job* const known = links_.find(job);
  const auto before = known == nullptr ? std::nullopt : std::optional(*known);
  links::Effects wanted;
  links_.step(links::AttachAsked{job, attach.incarnation, packet.peer, user.name, packet.user},
              wanted);
  if (const auto* refused = std::get_if<links::RefuseLink>(&wanted.front())) {
    return fail(ErrorKind::kRefused, "{}", refused->reason);
  }
  if (!std::get<links::AdmitLink>(wanted.front()).is_new) return {};
  // Durable before it is acted on: an agent that comes after this one must not
  // let the predecessor in again.
  Status stored = handlers_.on_attach(job, user);
  links::Effects none;
  if (!stored) links_.step(links::AttachFailed{job, before}, none);
  return stored;
}

void DaemonLinks::restore(const std::string& job, Incarnation incarnation,
                          const std::string& user) {
  links::Effects none;
  links_.step(links::JobFound{job, incarnation, user}, none);
}

void DaemonLinks::lose_link(const std::string& job) {
  links::Effects none;
  links_.step(links::LinkLost{job}, none);
}

void DaemonLinks::attach(const wire::Envelope& envelope, const wire::Packet& packet) {
  const auto version = versions_.find(packet.peer);
  if (version == versions_.end()) {
    return refuse(packet, envelope, wire::RefusalCode::kVersion, "say hello before attach");
  }
  const Result<wire::Attach> body = wire::decode<wire::Attach>(packet.body);
  if (!body) return refuse(packet, envelope, wire::RefusalCode::kInvalid, body.error().message);
  const Result<KnownUser> user = handlers_.user_of(packet.user);
  if (!user) return refuse(packet, envelope, wire::RefusalCode::kUser, user.error().message);
  if (const Status attached = try_attach(envelope.job, *body, packet, user->identity); !attached) {
    log_warn("refused to attach: {}", attached.error().message);
    const bool fenced = attached.error().kind == ErrorKind::kRefused;
    return refuse(packet, envelope, fenced ? wire::RefusalCode::kStale : wire::RefusalCode::kBusy,
                  attached.error().message);
  }
  wire::AgentWelcome welcome = handlers_.welcome(envelope.job, user->identity);
  welcome.version = version->second;
  welcome.user = user->identity.name;
  reply(packet, wire::make_packet(envelope, welcome));
  daemons_[envelope.job].set_peer(socket_, packet.peer);
  handlers_.on_attached(envelope.job);
}

void DaemonLinks::send(const std::string& job, wire::Packet packet) {
  daemons_[job].send(socket_, std::move(packet));
}

void DaemonLinks::send_or_drop(const std::string& job, wire::Packet packet) {
  const auto daemon = daemons_.find(job);
  if (daemon == daemons_.end()) return;
  daemon->second.send_or_drop(socket_, std::move(packet));
  if (daemon->second.peer().empty()) lose_link(job);
}

void DaemonLinks::send_to_peer(const wire::Packet& packet) {
  [[maybe_unused]] const auto sent = socket_.send(packet);  // the sender repeats its request
}

void DaemonLinks::reply(const wire::Packet& to, wire::Packet packet) {
  packet.peer = to.peer;
  [[maybe_unused]] const auto sent = socket_.send(packet);  // the sender repeats its request
}

void DaemonLinks::refuse(const wire::Packet& to, const wire::Envelope& envelope,
                         wire::RefusalCode code, std::string reason) {
  reply(to, wire::make_packet(envelope, wire::Refused{code, std::move(reason)}));
}

void DaemonLinks::heartbeat_all() {
  std::vector<std::string> jobs;
  for (const auto& [job, link] : links_.jobs()) {
    if (link.link) jobs.push_back(job);
  }
  for (const std::string& job : jobs) {
    wire::Envelope envelope;
    envelope.job = job;
    send_or_drop(job, wire::make_packet(envelope, wire::Heartbeat{}));
  }
}

void DaemonLinks::forget(const std::string& job) {
  const JobLinks::Job* const known = links_.find(job);
  if (known != nullptr && known->link) versions_.erase(known->link->peer);
  links::Effects none;
  links_.step(links::JobForgotten{job}, none);
  daemons_.erase(job);
}

bool DaemonLinks::flush() {
  bool left = false;
  for (auto& [job, outbox] : daemons_) {
    if (!outbox.stuck()) continue;
    outbox.flush(socket_);
    left = left || outbox.stuck();
  }
  return left;
}

}  // namespace antdt::antdtd
