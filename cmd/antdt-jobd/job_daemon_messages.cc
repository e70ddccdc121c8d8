// Messages of workers and operators, turned into events of the machines.
#include <algorithm>

#include "cmd/antdt-jobd/job_daemon.h"
#include "core/log.h"
#include "core/wire/packet.h"

namespace antdt::jobd {
namespace {

// Messages of our own socket handled in a turn: enough that one commit serves
// many requests, few enough that agents and timers get their turn.
constexpr int kBatch = 512;

}  // namespace

void JobDaemon::receive_direct() {
  for (int n = 0; n < kBatch; ++n) {
    const auto packet = socket_->receive();
    if (!packet) return;
    on_direct(*packet);
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
  if (!spec_.external) return refuse("unknown", "this job starts its workers itself");
  const auto hello = wire::decode<wire::Hello>(packet.body);
  if (!hello) return refuse("invalid", hello.error().message);
  const auto version = wire::negotiate_version(*hello);
  if (!version) return refuse("version", version.error().message);
  routes_[member.worker] = route;
  send_to(member, {}, wire::WorkerWelcome{*version, "local", options_.run_dir, config_json_});
}

void JobDaemon::answer_operator(const wire::Packet& packet, const wire::Envelope& envelope) {
  const Route route{"", packet.peer};
  const auto answer = [&](auto&& message) {
    wire::Envelope reply;
    reply.job = config_.job.id;
    reply.seq = envelope.seq;
    outbox_.push_back({route, wire::make_packet(std::move(reply), message)});
  };
  if (envelope.kind == wire::StatusRequest::kKind) {
    const auto request = wire::decode<wire::StatusRequest>(packet.body);
    if (!request) return answer(wire::Refused{"invalid", request.error().message});
    answer(wire::StatusReply{status_json(report()), events_.since(request->events_from),
                             events_.next()});
  } else if (envelope.kind == wire::StopJob::kKind) {
    const auto stop = wire::decode<wire::StopJob>(packet.body);
    if (!stop) return answer(wire::Refused{"invalid", stop.error().message});
    answer(wire::Done{});
    stop_job(stop->reason.empty() ? "stopped by an operator" : stop->reason,
             std::chrono::milliseconds(stop->grace_ms));
  } else {
    answer(
        wire::Refused{"invalid", fmt::format("the job daemon does not know '{}'", envelope.kind)});
  }
}

void JobDaemon::on_worker_message(const wire::Envelope& envelope, std::string_view body,
                                  const Route& route) {
  const Member member{envelope.worker, envelope.attempt};
  const auto refuse = [&](std::string code, std::string reason) {
    wire::Packet out =
        wire::make_packet(envelope, wire::Refused{std::move(code), std::move(reason)});
    outbox_.push_back({route, std::move(out)});
  };
  if (!spec_.external && !lifecycle_.is_current(member)) {
    return refuse("stale", fmt::format("attempt {} of {} is not the current one", member.attempt,
                                       member.worker));
  }
  // Calls `use` with the body as a T, or refuses.
  const auto with = [&]<class T>(std::type_identity<T>, auto&& use) {
    auto message = wire::decode<T>(body);
    if (!message) return refuse("invalid", message.error().message);
    use(*message);
  };
  const std::string& kind = envelope.kind;
  if (kind == wire::Fetch::kKind) {
    with(std::type_identity<wire::Fetch>(), [&](const wire::Fetch& m) {
      run(shards_.step(shard_server::event::Fetch{member, envelope.generation, envelope.seq, m},
                       loop_.now()));
    });
  } else if (kind == wire::Progress::kKind) {
    with(std::type_identity<wire::Progress>(),
         [&](const auto& m) { on_progress(member, envelope.generation, m); });
  } else if (kind == wire::Join::kKind) {
    with(std::type_identity<wire::Join>(),
         [&](const auto& m) { on_join(member, envelope.generation, m, route); });
  } else if (kind == wire::Address::kKind) {
    with(std::type_identity<wire::Address>(), [&](const auto& m) {
      step(ctl::MembershipEvent(ctl::AddressArrived{member, envelope.generation, m}));
    });
  } else if (kind == wire::Ready::kKind) {
    with(std::type_identity<wire::Ready>(),
         [&](const wire::Ready& m) { on_ready(member, envelope.generation, m); });
  } else if (kind == wire::Recalled::kKind) {
    with(std::type_identity<wire::Recalled>(), [&](const wire::Recalled& m) {
      run(shards_.step(
          shard_server::event::Recalled{member, envelope.generation, envelope.seq, m.phase, m.end},
          loop_.now()));
    });
  } else if (kind == wire::CheckpointWritten::kKind) {
    with(std::type_identity<wire::CheckpointWritten>(),
         [&](const auto& m) { on_checkpoint_written(member, m); });
  } else if (kind == wire::Bye::kKind) {
    with(std::type_identity<wire::Bye>(), [&](const auto& m) { on_bye(member, m); });
  } else if (kind == wire::Metrics::kKind) {
    with(std::type_identity<wire::Metrics>(), [&](const auto& m) { on_metrics(member, m); });
  } else if (kind == wire::Report::kKind && route.endpoint.empty()) {
    // A client without an agent: its reports come one by one.
    with(std::type_identity<wire::Report>(), [&](const wire::Report& m) {
      on_metrics(member, {m, 0});
    });
  } else if (kind != wire::Hello::kKind) {
    refuse("invalid", fmt::format("the job daemon does not know '{}'", kind));
  }
}

void JobDaemon::on_join(Member member, Generation generation, const wire::Join& join,
                        const Route& route) {
  routes_[member.worker] = route;
  if (join.collective && !spec_.external) {
    step(ctl::job::Event(ctl::job::Joined{member, true}));
    step(ctl::MembershipEvent(ctl::MemberJoined{member, generation, join}));
    return;
  }
  if (std::ranges::find(loose_members_, member) == loose_members_.end()) {
    std::erase_if(loose_members_, [&](Member m) { return m.worker == member.worker; });
    loose_members_.push_back(member);
    run(shards_.step(shard_server::event::MemberAdmitted{member, membership_.generation()},
                     loop_.now()));
  }
  const std::uint64_t phase_before = lifecycle_.phase().phase;
  step(ctl::job::Event(ctl::job::Joined{member, false}));
  // Who comes later, or asks again, hears of the phase that is open.
  if (lifecycle_.phase().phase == phase_before && phase_before > 0) {
    send_to(member, membership_.generation(), lifecycle_.phase());
  }
}

void JobDaemon::on_ready(Member member, Generation generation, const wire::Ready& ready) {
  const bool settled_already = membership_.state() == ctl::Membership::State::kSettled &&
                               generation == membership_.generation() &&
                               membership_.contains(member);
  if (settled_already) {  // our answer was lost
    send_to(member, generation, wire::Settle{ready.step, controller_.plan()});
    if (lifecycle_.phase().phase > 0) send_to(member, generation, lifecycle_.phase());
    return;
  }
  step(ctl::MembershipEvent(ctl::ReadyArrived{member, generation, ready}));
}

void JobDaemon::on_progress(Member member, Generation generation, const wire::Progress& progress) {
  const MonoTime now = loop_.now();
  run(shards_.step(
      shard_server::event::Progress{member, generation, progress.phase, progress.place}, now));
  progress_.update(progress, now);
  if (progress.plan != PlanVersion{}) step(ctl::Event(ctl::PlanInForce{progress.plan}));
  if (!progress.done) return;
  const wire::PhaseStart open = lifecycle_.phase();
  if (progress.phase < open.phase) {  // it has not heard of the next phase
    send_to(member, membership_.generation(), open);
    return;
  }
  if (progress.phase == open.phase && open.what == "train") close_epoch(open.epoch);
  step(ctl::job::Event(ctl::job::MemberDone{member, progress.phase}));
}

void JobDaemon::fill_epoch(Epoch epoch) {
  EpochReport& report = epochs_.at(epoch.value);
  report.train_loss = progress_.phase_loss();
  report.samples = progress_.samples_in_phase();
  report.seconds = progress_.phase_seconds(loop_.now());
  progress_.end_phase(loop_.now());
}

void JobDaemon::close_epoch(Epoch epoch) {
  const EpochReport& report = epochs_.at(epoch.value);
  if (report.samples > 0) return;  // by an earlier member's report
  fill_epoch(epoch);
  note("epoch", fmt::format("epoch {}: training loss {:.4f}, {:.0f} samples/s", epoch.value + 1,
                            report.train_loss,
                            static_cast<double>(report.samples) / std::max(report.seconds, 1e-9)));
}

void JobDaemon::on_checkpoint_written(Member member, const wire::CheckpointWritten& written) {
  if (!written.error.empty()) {
    step(ctl::job::Event(ctl::job::CheckpointStored{written.number, written.error}));
    return;
  }
  const auto stored = [&]() -> Result<std::string> {
    ANTDT_TRY(const std::string ledger, shards_.checkpoint_json(written.places));
    return checkpoints_.store(written, member, Lineage{1}, membership_.generation(), ledger);
  }();
  if (stored) note("checkpoint", fmt::format("checkpoint {} is stored", *stored));
  step(ctl::job::Event(
      ctl::job::CheckpointStored{written.number, stored ? "" : stored.error().message}));
}

void JobDaemon::on_metrics(Member member, const wire::Metrics& metrics) {
  WorkerReport& measured = measured_[member.worker];
  measured.samples = std::max(measured.samples, metrics.sum.samples_total);
  measured.time = metrics.sum.account;
  step(ctl::Event(ctl::Observed{{member, metrics}}));
}

void JobDaemon::on_bye(Member member, const wire::Bye& bye) {
  WorkerReport& measured = measured_[member.worker];
  measured.samples = std::max(measured.samples, bye.samples_total);
  measured.time = bye.account;
  if (!bye.error.empty()) {
    note("worker-error", fmt::format("{}: {}", member.worker, bye.error));
  }
  step(ctl::job::Event(ctl::job::SaidBye{member, bye.error}));
}

}  // namespace antdt::jobd
