// Messages of workers and operators, turned into events of the machines.
#include <algorithm>
#include <type_traits>

#include "core/drill/drill_json.h"
#include "core/log/log.h"
#include "core/overloaded.h"
#include "core/wire/dispatch.h"
#include "core/wire/packet.h"
#include "jobd/job_daemon.h"

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
  const auto refuse = [&](wire::RefusalCode code, std::string reason) {
    wire::Packet out =
        wire::make_packet(*envelope, wire::Refused{code, std::move(reason)});
    outbox_.push_back({route, std::move(out)});
  };
  if (config_.roles.worker.count > 0)
    return refuse(wire::RefusalCode::kUnknown, "this job starts its workers itself");
  const auto hello = wire::decode<wire::Hello>(packet.body);
  if (!hello) return refuse(wire::RefusalCode::kInvalid, hello.error().message);
  const auto version = wire::negotiate_version(*hello);
  if (!version) return refuse(wire::RefusalCode::kVersion, version.error().message);
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

Status JobDaemon::asked(const wire::StopJob& m) {
  const std::string reason = m.reason.empty() ? "stopped by an operator" : m.reason;
  if (!machine_.lifecycle().outcome()) {  // asked again, it is no news
    feed(ctl::job::OperatorAsked{"stop", reason});
  }
  stop_job(reason, std::chrono::milliseconds(m.grace_ms));
  return {};
}

Status JobDaemon::asked(const wire::EvictWorkers& m) {
  const ctl::lifecycle::EvictionRequested evict{m.target, because(m.reason, m.who),
                                                std::chrono::milliseconds(m.deadline_ms)};
  ANTDT_RETURN_IF_ERROR(machine_.check(evict));
  feed(ctl::job::OperatorAsked{"evict", fmt::format("{}, {}", m.target, evict.reason)});
  feed(evict);
  return {};
}

void JobDaemon::answer_operator(const wire::Packet& packet, const wire::Envelope& envelope) {
  const auto invalid = [&](const std::string& why) {
    answer(packet, envelope, wire::Refused{wire::RefusalCode::kInvalid, why});
  };
  const bool known =
      wire::dispatch<wire::StatusRequest, wire::StopJob, wire::EvictWorkers, wire::InjectRules,
                     wire::ResizeJob, wire::ApproveAction, wire::SkipRecords>(
          envelope.kind, packet.body, [&]<class T>(const Result<T>& request) {
            if (!request) return invalid(request.error().message);
            if constexpr (std::is_same_v<T, wire::StatusRequest>) {
              answer(packet, envelope, status_for(*request));
            } else {
              const Status done = asked(*request);
              if (!done) return invalid(done.error().message);
              answer(packet, envelope, wire::Done{});
              if constexpr (std::is_same_v<T, wire::SkipRecords>) {  // once it is kept
                skip_answers_.push_back(std::move(outbox_.back()));
                outbox_.pop_back();
              }
            }
          });
  if (!known) invalid(fmt::format("the job daemon does not know '{}'", envelope.kind));
}

wire::StatusReply JobDaemon::status_for(const wire::StatusRequest& request) {
  return {ctl::status_json(report()), events_.since(request.events_from), events_.next()};
}

Status JobDaemon::asked(const wire::InjectRules& m) {
  ANTDT_TRY([[maybe_unused]] const auto rules,
            drill::parse_rules(fmt::format("{{\"inject\": {}}}", m.rules)));
  feed(ctl::job::OperatorAsked{"inject", fmt::format("{}, {}", m.rules, because("", m.who))});
  feed(ctl::job::InjectionOrdered{m});
  return {};
}

Status JobDaemon::asked(const wire::ResizeJob& m) {
  const std::string reason = because("", m.who);
  const auto resize = [&](const auto& wish, const char* what) -> Status {
    ANTDT_RETURN_IF_ERROR(machine_.check(wish));
    feed(ctl::job::OperatorAsked{"resize", fmt::format("{} {}, {}", m.count, what, reason)});
    feed(wish);
    return {};
  };
  if (m.role == wire::ResizedRole::kServer) {
    return resize(ctl::lifecycle::ServerCountRequested{m.count, reason}, "parameter servers");
  }
  return resize(ctl::lifecycle::WorkerCountRequested{m.count, reason}, "workers");
}

Status JobDaemon::asked(const wire::ApproveAction& m) {
  ANTDT_RETURN_IF_ERROR(machine_.check_approve(m.number));
  feed(ctl::job::OperatorAsked{"approve", fmt::format("action {}, asked by {}", m.number, m.who)});
  feed(ctl::job::ActionApproved{m.number, m.who});
  return {};
}

Status JobDaemon::asked(const wire::SkipRecords& m) {
  ANTDT_RETURN_IF_ERROR(machine_.check(m));
  if (machine_.ledger().phase().kind != shard_server::PhaseKind::kTrain) {
    return fail(ErrorKind::kRefused, "the job is not training now: ask again when it is");
  }
  feed(ctl::job::OperatorAsked{
      "skip", fmt::format("positions {}:{}, {}", m.from, m.to, because(m.reason, m.who))});
  // Declared, noted and kept for later lineages as those of an ended run are.
  skips_.push_back({machine_.ledger().phase().epoch.value, m.from, m.to, m.reason, m.who, 0});
  declare_skips();
  return {};
}

void JobDaemon::on_worker_message(const wire::Envelope& envelope, std::string_view body,
                                  const Route& route) {
  const Member member{envelope.worker, envelope.attempt};
  const bool grows_the_journal =
      envelope.kind == wire::Fetch::kKind || envelope.kind == wire::Progress::kKind;
  if (paused_ && grows_the_journal) return;  // it is said again
  inbound_ = {member, route};
  const auto refuse = [&](std::string reason) {
    send(route, member, envelope.generation, wire::Refused{wire::RefusalCode::kInvalid, std::move(reason)},
         envelope.seq);
  };
  const auto say = [&]<class T>(Result<T> message) {
    if (!message) return refuse(message.error().message);
    if constexpr (std::is_same_v<T, wire::Join>) routes_[member.worker] = route;
    if constexpr (std::is_same_v<T, wire::Report>) {
      feed(ctl::job::WorkerSaid{member, envelope.generation, envelope.seq,
                                wire::Metrics{*message, 0}});
    } else {
      feed(ctl::job::WorkerSaid{member, envelope.generation, envelope.seq, std::move(*message)});
    }
  };
  bool known =
      wire::dispatch<wire::Fetch, wire::Progress, wire::Metrics, wire::Join, wire::Address,
                     wire::Ready, wire::Recalled, wire::CheckpointBegun, wire::CheckpointWritten,
                     wire::Bye, wire::PsServing, wire::PsSaved, wire::PsStats>(envelope.kind, body,
                                                                               say);
  // A client without an agent: its reports come one by one.
  if (!known && route.endpoint.empty()) {
    known = wire::dispatch<wire::Report>(envelope.kind, body, say);
  }
  if (!known && envelope.kind != wire::Hello::kKind) {
    refuse(fmt::format("the job daemon does not know '{}'", envelope.kind));
  }
  inbound_.reset();
}

void JobDaemon::on_agent_message(const std::string& endpoint, const wire::Envelope& envelope,
                                 std::string_view body) {
  const Member member{envelope.worker, envelope.attempt};
  if (envelope.kind == wire::AdminOrder::kKind) return on_admin_order(endpoint, envelope, body);
  // What cannot be read is let lie: the agent says it again.
  const auto act = Overloaded{[&](const wire::ReservedPort& m) { on_port(m.port); },
                              [&](const wire::ProcessStarted& m) {
                                feed(ctl::lifecycle::WorkerStarted{member, m.pid});
                              },
                              [&](const wire::ProcessExited& m) {
                                send({endpoint, ""}, member, {}, wire::ExitSeen{});
                                feed(ctl::lifecycle::WorkerExited{member, m});
                              },
                              [&](const wire::Refused& m) {
                                feed(ctl::lifecycle::WorkerStartRefused{member, m.reason});
                              }};
  const bool of_agent =
      wire::dispatch<wire::ReservedPort, wire::ProcessStarted, wire::ProcessExited, wire::Refused>(
          envelope.kind, body, [&](const auto& message) {
            if (message) act(*message);
          });
  if (!of_agent && envelope.attempt != Attempt{}) on_worker_message(envelope, body, {endpoint, ""});
}

}  // namespace antdt::jobd
