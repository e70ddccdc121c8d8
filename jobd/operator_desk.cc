#include "jobd/operator_desk.h"

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

}  // namespace

void OperatorDesk::answer(const wire::Packet& packet, const wire::Envelope& envelope) {
  Outbox& outbox = shell_.outbox;
  const auto invalid = [&](const std::string& why) {
    outbox.answer(packet, envelope, wire::Refused{wire::RefusalCode::kInvalid, why});
  };
  const bool known =
      wire::dispatch<wire::StatusRequest, wire::StopJob, wire::EvictWorkers, wire::InjectRules,
                     wire::ResizeJob, wire::ApproveAction, wire::SkipRecords>(
          envelope.kind, packet.body, [&]<class T>(const Result<T>& request) {
            if (!request) return invalid(request.error().message);
            if constexpr (std::is_same_v<T, wire::StatusRequest>) {
              outbox.answer(packet, envelope, status_for(*request));
            } else {
              const Status done = ask(*request);
              if (!done) return invalid(done.error().message);
              outbox.answer(packet, envelope, wire::Done{});
              if constexpr (std::is_same_v<T, wire::SkipRecords>) {
                shell_.skips.answer_when_kept();
              }
            }
          });
  if (!known) invalid(fmt::format("the job daemon does not know '{}'", envelope.kind));
}

wire::StatusReply OperatorDesk::status_for(const wire::StatusRequest& request) const {
  return {ctl::status_json(shell_.report()), shell_.events.since(request.events_from),
          shell_.events.next()};
}

void OperatorDesk::stop_job(const std::string& reason, Duration grace) {
  shell_.feed(ctl::lifecycle::StopRequested{reason, grace});
}

Status OperatorDesk::ask(const wire::StopJob& m) {
  const std::string reason = m.reason.empty() ? "stopped by an operator" : m.reason;
  if (!shell_.machine.lifecycle().outcome()) {  // a repeated request is not reported again
    shell_.feed(ctl::job::OperatorAsked{"stop", reason});
  }
  stop_job(reason, std::chrono::milliseconds(m.grace_ms));
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

Status OperatorDesk::obey(const wire::AdminOrder& order) {
  if (order.order == wire::AdminOrderKind::kStop) {
    const auto grace = order.time_ms == 0 ? shell_.config.failure.stop_grace
                                          : std::chrono::milliseconds(order.time_ms);
    return ask(
        wire::StopJob{because(order.reason, order.who), static_cast<std::uint32_t>(grace.count())});
  }
  wire::EvictWorkers evict;
  evict.target = order.target;
  evict.reason = order.reason;
  evict.who = order.who;
  if (order.time_ms > 0) evict.deadline_ms = order.time_ms;
  return ask(evict);
}

void OperatorDesk::on_admin_order(const std::string& endpoint, const wire::Envelope& envelope,
                                  std::string_view body) {
  const auto order = wire::decode<wire::AdminOrder>(body);
  const Status done = order ? obey(*order) : Status(tl::unexpected(order.error()));
  const wire::AdminAnswer answer{done.has_value(), done ? "" : done.error().message};
  shell_.outbox.send({endpoint, ""}, {}, {}, answer, envelope.seq);
}

}  // namespace antdt::jobd
