// Messages of workers and operators, turned into events of the machines.
#include <algorithm>

#include "cmd/antdt-jobd/job_daemon.h"
#include "core/drill/drill_json.h"
#include "core/log.h"
#include "core/wire/admin_messages.h"
#include "core/wire/approve_message.h"
#include "core/wire/packet.h"

namespace antdt::jobd {
namespace {

// Messages of our own socket handled in a turn: enough that one commit serves
// many requests, few enough that agents and timers get their turn.
constexpr int kBatch = 512;
// Of messages that came while the journal was waited for. What is sent again is not missed.
constexpr std::size_t kMostDeferred = 10'000;

std::string because(const std::string& reason, const std::string& who) {
  return reason.empty() ? fmt::format("asked by {}", who)
                        : fmt::format("asked by {}: {}", who, reason);
}

}  // namespace

void JobDaemon::receive_direct() {
  for (const wire::Packet& packet : std::exchange(deferred_, {})) on_direct(packet);
  for (int n = 0; n < kBatch; ++n) {
    const auto packet = socket_->receive();
    if (!packet) return;
    on_direct(*packet);
  }
}

// The turn that is being committed may be in what they see: nothing is done by it.
void JobDaemon::receive_status_alone() {
  while (socket_ && deferred_.size() < kMostDeferred) {
    auto packet = socket_->receive();
    if (!packet) return;
    const auto envelope = wire::open_envelope(*packet);
    if (!envelope) continue;
    const auto request = wire::decode<wire::StatusRequest>(packet->body);
    if (envelope->kind != wire::StatusRequest::kKind || !request) {
      deferred_.push_back(std::move(*packet));
      continue;
    }
    wire::Envelope reply;
    reply.job = config_.job.id;
    reply.seq = envelope->seq;
    wire::Packet answer = wire::make_packet(
        std::move(reply), wire::StatusReply{ctl::status_json(report()),
                                            events_.since(request->events_from), events_.next()});
    answer.peer = packet->peer;
    std::ignore = socket_->send(answer);
  }
}

void JobDaemon::on_direct(const wire::Packet& packet) {
  const auto envelope = wire::open_envelope(packet);
  if (!envelope) return;
  if (envelope->attempt == Attempt{}) return answer_operator(packet, *envelope);
  const Route route{"", packet.peer};
  if (envelope->kind != wire::Hello::kKind) return on_worker_message(*envelope, packet.body, route);

  // A client that came by itself; one that an agent started speaks to its agent.
  const Member member{envelope->worker, envelope->attempt};
  const auto refuse = [&](std::string code, std::string reason) {
    wire::Packet out =
        wire::make_packet(*envelope, wire::Refused{std::move(code), std::move(reason)});
    outbox_.push_back({route, std::move(out)});
  };
  if (config_.roles.worker.count > 0)
    return refuse("unknown", "this job starts its workers itself");
  const auto hello = wire::decode<wire::Hello>(packet.body);
  if (!hello) return refuse("invalid", hello.error().message);
  const auto version = wire::negotiate_version(*hello);
  if (!version) return refuse("version", version.error().message);
  routes_[member.worker] = route;
  send(route, member, {}, wire::WorkerWelcome{*version, "local", options_.run_dir, config_json_});
}

template <class T>
void JobDaemon::answer(const wire::Packet& packet, const wire::Envelope& envelope,
                       const T& message) {
  wire::Envelope reply;
  reply.job = config_.job.id;
  reply.seq = envelope.seq;
  outbox_.push_back({{"", packet.peer}, wire::make_packet(std::move(reply), message)});
}

Status JobDaemon::stop_asked(const wire::StopJob& m) {
  const std::string reason = m.reason.empty() ? "stopped by an operator" : m.reason;
  if (!machine_.lifecycle().outcome()) {  // asked again, it is no news
    feed(ctl::in::OperatorSaid{"stop", reason});
  }
  stop_job(reason, std::chrono::milliseconds(m.grace_ms));
  return {};
}

Status JobDaemon::evict_asked(const wire::EvictWorkers& m) {
  const ctl::job::EvictAsked evict{m.target, because(m.reason, m.who),
                                   std::chrono::milliseconds(m.deadline_ms)};
  ANTDT_RETURN_IF_ERROR(machine_.check(evict));
  feed(ctl::in::OperatorSaid{"evict", fmt::format("{}, {}", m.target, evict.reason)});
  feed(evict);
  return {};
}

void JobDaemon::answer_operator(const wire::Packet& packet, const wire::Envelope& envelope) {
  // Calls `use` with the request as a T; answers with what it returns.
  const auto with = [&]<class T>(std::type_identity<T>, auto&& use) {
    const auto request = wire::decode<T>(packet.body);
    if (!request)
      return answer(packet, envelope, wire::Refused{"invalid", request.error().message});
    const Status done = use(*request);
    if (!done) return answer(packet, envelope, wire::Refused{"invalid", done.error().message});
    answer(packet, envelope, wire::Done{});
    if constexpr (std::is_same_v<T, wire::SkipRecords>) {  // once it is kept
      skip_answers_.push_back(std::move(outbox_.back()));
      outbox_.pop_back();
    }
  };
  const std::string& kind = envelope.kind;
  if (kind == wire::StatusRequest::kKind) {
    const auto request = wire::decode<wire::StatusRequest>(packet.body);
    if (!request)
      return answer(packet, envelope, wire::Refused{"invalid", request.error().message});
    answer(packet, envelope,
           wire::StatusReply{ctl::status_json(report()), events_.since(request->events_from),
                             events_.next()});
  } else if (kind == wire::StopJob::kKind) {
    with(std::type_identity<wire::StopJob>(),
         [&](const wire::StopJob& m) { return stop_asked(m); });
  } else if (kind == wire::EvictWorkers::kKind) {
    with(std::type_identity<wire::EvictWorkers>(),
         [&](const wire::EvictWorkers& m) { return evict_asked(m); });
  } else if (kind == wire::InjectRules::kKind) {
    with(std::type_identity<wire::InjectRules>(), [&](const wire::InjectRules& m) -> Status {
      ANTDT_TRY([[maybe_unused]] const auto rules,
                drill::parse_rules(fmt::format("{{\"inject\": {}}}", m.rules)));
      feed(ctl::in::OperatorSaid{"inject", fmt::format("{}, {}", m.rules, because("", m.who))});
      feed(ctl::in::Inject{m});
      return {};
    });
  } else if (kind == wire::ResizeJob::kKind) {
    with(std::type_identity<wire::ResizeJob>(), [&](const wire::ResizeJob& m) -> Status {
      const std::string reason = because("", m.who);
      const auto resize = [&](const auto& wish, const char* what) -> Status {
        ANTDT_RETURN_IF_ERROR(machine_.check(wish));
        feed(ctl::in::OperatorSaid{"resize", fmt::format("{} {}, {}", m.count, what, reason)});
        feed(wish);
        return {};
      };
      if (m.role == "server") {
        return resize(ctl::job::ServersAsked{m.count, reason}, "parameter servers");
      }
      if (!m.role.empty() && m.role != "worker") {
        return fail(ErrorKind::kUsage, "the roles of a job are worker and server, not '{}'",
                    m.role);
      }
      return resize(ctl::job::ResizeAsked{m.count, reason}, "workers");
    });
  } else if (kind == wire::ApproveAction::kKind) {
    with(std::type_identity<wire::ApproveAction>(), [&](const wire::ApproveAction& m) -> Status {
      ANTDT_RETURN_IF_ERROR(machine_.check_approve(m.number));
      feed(
          ctl::in::OperatorSaid{"approve", fmt::format("action {}, asked by {}", m.number, m.who)});
      feed(ctl::in::Approve{m.number, m.who});
      return {};
    });
  } else if (kind == wire::SkipRecords::kKind) {
    with(std::type_identity<wire::SkipRecords>(), [&](const wire::SkipRecords& m) -> Status {
      ANTDT_RETURN_IF_ERROR(machine_.check_skip(m));
      if (machine_.ledger().phase().kind != shard_server::PhaseKind::kTrain) {
        return fail(ErrorKind::kRefused, "the job is not training now: ask again when it is");
      }
      feed(ctl::in::OperatorSaid{
          "skip", fmt::format("positions {}:{}, {}", m.from, m.to, because(m.reason, m.who))});
      // Declared, noted and kept for later lineages as those of an ended run are.
      skips_.push_back({machine_.ledger().phase().epoch.value, m.from, m.to, m.reason, m.who, 0});
      declare_skips();
      return {};
    });
  } else {
    answer(packet, envelope,
           wire::Refused{"invalid", fmt::format("the job daemon does not know '{}'", kind)});
  }
}

void JobDaemon::on_worker_message(const wire::Envelope& envelope, std::string_view body,
                                  const Route& route) {
  const Member member{envelope.worker, envelope.attempt};
  const bool grows_the_journal =
      envelope.kind == wire::Fetch::kKind || envelope.kind == wire::Progress::kKind;
  if (paused_ && grows_the_journal) return;  // it is said again
  inbound_ = {member, route};
  const auto refuse = [&](std::string reason) {
    send(route, member, envelope.generation, wire::Refused{"invalid", std::move(reason)},
         envelope.seq);
  };
  bool known = false;
  const auto try_as = [&]<class T>(std::type_identity<T>) {
    if (known || envelope.kind != T::kKind) return;
    known = true;
    auto message = wire::decode<T>(body);
    if (!message) return refuse(message.error().message);
    if constexpr (std::is_same_v<T, wire::Join>) routes_[member.worker] = route;
    if constexpr (std::is_same_v<T, wire::Report>) {
      feed(ctl::in::FromWorker{member, envelope.generation, envelope.seq,
                               wire::Metrics{*message, 0}});
    } else {
      feed(ctl::in::FromWorker{member, envelope.generation, envelope.seq, std::move(*message)});
    }
  };
  try_as(std::type_identity<wire::Fetch>());
  try_as(std::type_identity<wire::Progress>());
  try_as(std::type_identity<wire::Metrics>());
  try_as(std::type_identity<wire::Join>());
  try_as(std::type_identity<wire::Address>());
  try_as(std::type_identity<wire::Ready>());
  try_as(std::type_identity<wire::Recalled>());
  try_as(std::type_identity<wire::CheckpointBegun>());
  try_as(std::type_identity<wire::CheckpointWritten>());
  try_as(std::type_identity<wire::Bye>());
  try_as(std::type_identity<wire::PsServing>());
  try_as(std::type_identity<wire::PsSaved>());
  try_as(std::type_identity<wire::PsStats>());
  // A client without an agent: its reports come one by one.
  if (route.endpoint.empty()) try_as(std::type_identity<wire::Report>());
  if (!known && envelope.kind != wire::Hello::kKind) {
    refuse(fmt::format("the job daemon does not know '{}'", envelope.kind));
  }
  inbound_.reset();
}

void JobDaemon::on_agent_message(const std::string& endpoint, const wire::Envelope& envelope,
                                 std::string_view body) {
  const Member member{envelope.worker, envelope.attempt};
  if (envelope.kind == wire::ReservedPort::kKind) {
    if (const auto port = wire::decode<wire::ReservedPort>(body)) on_port(port->port);
  } else if (envelope.kind == wire::ProcessStarted::kKind) {
    if (const auto started = wire::decode<wire::ProcessStarted>(body)) {
      feed(ctl::job::Started{member, started->pid});
    }
  } else if (envelope.kind == wire::ProcessExited::kKind) {
    if (const auto exited = wire::decode<wire::ProcessExited>(body)) {
      send({endpoint, ""}, member, {}, wire::ExitSeen{});
      feed(ctl::job::Exited{member, *exited});
    }
  } else if (envelope.kind == wire::Refused::kKind) {
    if (const auto refused = wire::decode<wire::Refused>(body)) {
      feed(ctl::job::StartRefused{member, refused->reason});
    }
  } else if (envelope.kind == wire::AdminOrder::kKind) {
    on_admin_order(endpoint, envelope, body);
  } else if (envelope.attempt != Attempt{}) {
    on_worker_message(envelope, body, {endpoint, ""});
  }
}

}  // namespace antdt::jobd
