#include "jobd/operator_desk.h"

#include <algorithm>
#include <type_traits>

#include "core/drill/drill_json.h"
#include "core/wire/dispatch.h"
#include "jobd/shell.h"

namespace antdt::jobd {
namespace {

std::string because(const std::string& reason, const std::string& who) {
  return reason.empty() ? fmt::format("asked by {}", who)
                        : fmt::format("asked by {}: {}", who, reason);
}

// The user who sent a request is who the agent says, whatever the request says.
template <class Request>
void set_user(Request& request, const std::string& who) {
  request.who = who;
}
void set_user(wire::StopJob& request, const std::string& who) {
  request.reason = because(request.reason, who);
}
void set_user(wire::HostGone& request, const std::string& who) {
  request.reason = because(request.reason, who);
}

}  // namespace

template <class Reply>
void OperatorDesk::serve(std::string_view kind, std::string_view body, const std::string& who,
                         Reply reply) {
  const auto refuse = [&](wire::RefusalCode code, const std::string& why) {
    reply(wire::Refused{code, why});
  };
  const bool known =
      wire::dispatch<wire::StatusRequest, wire::StopJob, wire::EvictWorkers, wire::InjectRules,
                     wire::ResizeJob, wire::ApproveAction, wire::SkipRecords, wire::HostGone>(
          kind, body, [&]<class T>(Result<T> request) {
            if (!request) return refuse(wire::RefusalCode::kInvalid, request.error().message);
            if constexpr (std::is_same_v<T, wire::StatusRequest>) {
              reply(status_for(*request));
            } else {
              if (!who.empty()) set_user(*request, who);
              const Status done = ask(*request);
              if (!done) return refuse(wire::RefusalCode::kInvalid, done.error().message);
              reply(wire::Done{});
              if constexpr (std::is_same_v<T, wire::SkipRecords>) {
                shell_.skips.answer_when_kept();
              }
            }
          });
  if (!known) {
    refuse(wire::RefusalCode::kInvalid, fmt::format("the job daemon does not know '{}'", kind));
  }
}

void OperatorDesk::answer(const wire::Packet& packet, const wire::Envelope& envelope) {
  serve(envelope.kind, packet.body, "",
        [&](const auto& reply) { shell_.outbox.answer(packet, envelope, reply); });
}

void OperatorDesk::answer_relayed(const std::string& endpoint, const wire::Envelope& envelope,
                                  std::string_view body) {
  const auto reply = [&]<class T>(const T& message) {
    const wire::RelayedReply relayed{std::string(T::kKind), wire::encode(message)};
    shell_.outbox.send({endpoint, ""}, {}, {}, relayed, envelope.seq);
  };
  const auto relayed = wire::decode<wire::RelayedRequest>(body);
  if (!relayed) return reply(wire::Refused{wire::RefusalCode::kInvalid, relayed.error().message});
  serve(relayed->kind, relayed->body, relayed->who.empty() ? "an agent's user" : relayed->who,
        reply);
}

wire::StatusReply OperatorDesk::status_for(const wire::StatusRequest& request) const {
  return {ctl::status_json(shell_.report()), shell_.events.since(request.events_from),
          shell_.events.next()};
}

void OperatorDesk::stop_job(const std::string& reason, Duration grace) {
  if (shell_.ended) return shell_.checkpoints.hurry(grace);
  shell_.feed(ctl::lifecycle::StopRequested{reason, grace});
}

Status OperatorDesk::ask(const wire::StopJob& m) {
  const std::string reason = m.reason.empty() ? "stopped by an operator" : m.reason;
  if (!shell_.machine.lifecycle().outcome()) {  // a repeated request is not reported again
    shell_.feed(ctl::job::OperatorAsked{"stop", reason});
  }
  stop_job(reason, m.has_own_grace ? Duration(shell_.config.failure.stop_grace)
                                   : Duration(std::chrono::milliseconds(m.grace_ms)));
  return {};
}

Status OperatorDesk::ask(const wire::EvictWorkers& m) {
  const ctl::lifecycle::EvictionRequested evict{m.target, because(m.reason, m.who),
                                                std::chrono::milliseconds(m.deadline_ms)};
  ANTDT_RETURN_IF_ERROR(shell_.machine.check(evict));
  shell_.feed(ctl::job::OperatorAsked{"evict", fmt::format("{}, {}", m.target, evict.reason)});
  shell_.feed(evict);
  return {};
}

Status OperatorDesk::ask(const wire::HostGone& m) {
  const auto& hosts = shell_.config.cluster.hosts;
  if (std::ranges::find(hosts, m.host) == hosts.end()) {
    return fail(ErrorKind::kUsage, "{} is not among the job's cluster.hosts", m.host);
  }
  shell_.links->gone(m.host, m.reason);
  return {};
}

Status OperatorDesk::ask(const wire::InjectRules& m) {
  ANTDT_TRY([[maybe_unused]] const auto rules,
            drill::parse_rules(fmt::format("{{\"inject\": {}}}", m.rules)));
  shell_.feed(
      ctl::job::OperatorAsked{"inject", fmt::format("{}, {}", m.rules, because("", m.who))});
  shell_.feed(ctl::job::InjectionOrdered{m});
  return {};
}

Status OperatorDesk::ask(const wire::ResizeJob& m) {
  const std::string reason = because("", m.who);
  const auto resize = [&](const auto& wish, const char* what) -> Status {
    ANTDT_RETURN_IF_ERROR(shell_.machine.check(wish));
    shell_.feed(ctl::job::OperatorAsked{"resize", fmt::format("{} {}, {}", m.count, what, reason)});
    shell_.feed(wish);
    return {};
  };
  if (m.role == wire::ResizedRole::kServer) {
    return resize(ctl::lifecycle::ServerCountRequested{m.count, reason}, "parameter servers");
  }
  return resize(ctl::lifecycle::WorkerCountRequested{m.count, reason}, "workers");
}

Status OperatorDesk::ask(const wire::ApproveAction& m) {
  ANTDT_RETURN_IF_ERROR(shell_.machine.check_approve(m.number));
  shell_.feed(
      ctl::job::OperatorAsked{"approve", fmt::format("action {}, asked by {}", m.number, m.who)});
  shell_.feed(ctl::job::ApprovalReceived{m.number, m.who});
  return {};
}

Status OperatorDesk::ask(const wire::SkipRecords& m) {
  ANTDT_RETURN_IF_ERROR(shell_.machine.check(m));
  const shard_server::Phase& open = shell_.machine.ledger().phase();
  if (open.kind != shard_server::PhaseKind::kTrain) {
    return fail(ErrorKind::kRefused, "the job is not training now: ask again when it is");
  }
  shell_.feed(ctl::job::OperatorAsked{
      "skip", fmt::format("positions {}:{}, {}", m.from, m.to, because(m.reason, m.who))});
  // The skip is declared, noted and kept for later lineages, as skips of an ended run are.
  shell_.skips.add(open.epoch, m);
  shell_.skips.declare();
  return {};
}

}  // namespace antdt::jobd
