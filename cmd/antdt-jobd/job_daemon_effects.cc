// Effects of the machines, turned into journal records and messages.
#include <nlohmann/json.hpp>

#include "cmd/antdt-jobd/job_daemon.h"
#include "core/log.h"
#include "core/wire/packet.h"
#include "shard_server/evaluation.h"

namespace antdt::jobd {
namespace {

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};

}  // namespace

std::vector<Member> JobDaemon::members() const {
  std::vector<Member> all = loose_members_;
  for (const ctl::ExpectedMember& e : membership_.members()) all.push_back(e.member);
  return all;
}

void JobDaemon::run(const std::vector<ctl::job::Effect>& effects) {
  using namespace ctl::job;
  for (const Effect& effect : effects) {
    std::visit(
        Overloaded{
            [&](const SaveImage&) { image_dirty_ = true; },
            [&](const StartWorker& e) { request_start(e.member, e.host); },
            [&](const StopWorker& e) {
              const auto grace = std::chrono::ceil<std::chrono::milliseconds>(e.grace);
              send_to(e.member, {}, wire::StopProcess{static_cast<std::uint32_t>(grace.count())});
            },
            [&](const ExpectMembers& e) {
              ctl::Expect expect;
              for (const ctl::WorkerProcess& w : e.workers) {
                expect.members.push_back({w.member(), host_name(w.place.host), w.place.host_order});
              }
              step(ctl::MembershipEvent(expect));
            },
            [&](const OpenPhase& e) { open_phase(e.start); },
            [&](const OrderCheckpoint& e) { send_to_members(wire::CheckpointOrder{e.number}); },
            [&](const LeaveAll& e) { send_to_members(e.leave); },
            [&](const Note& e) { note(e.kind, e.text); },
            [&](const End& e) { end_job(e.outcome); },
        },
        effect);
  }
}

void JobDaemon::run(const std::vector<ctl::MembershipEffect>& effects) {
  for (const ctl::MembershipEffect& effect : effects) {
    std::visit(Overloaded{
                   [&](const ctl::GenerationBegun&) { image_dirty_ = true; },
                   [&](const ctl::SendForm& e) { send_to(e.to, e.generation, e.form); },
                   [&](const ctl::SendRoster& e) { send_to(e.to, e.generation, e.roster); },
                   [&](const ctl::Settled& e) { on_settled(e); },
                   [&](const ctl::GenerationBroken& e) {
                     note("generation-broken",
                          fmt::format("generation {} is over: {}", e.generation, e.reason));
                     for (const Member member : e.left) {
                       send_to(member, e.generation, wire::Abort{e.reason});
                     }
                   },
                   [&](const ctl::CannotSettle& e) {
                     step(ctl::job::Event(ctl::job::Failed{"data", 2, e.reason}));
                   },
               },
               effect);
  }
}

void JobDaemon::run(const std::vector<ctl::Effect>& effects) {
  for (const ctl::Effect& effect : effects) {
    std::visit(Overloaded{
                   [&](const ctl::SendPlan& e) { announce_plan(e.plan); },
                   [&](const ctl::RecordAction& e) { record_action(e); },
                   [&](const ctl::Perform& e) {
                     note("action", fmt::format("{} of {} is wanted, and this version cannot do it",
                                                ctl::kind_of(e.action), ctl::target_of(e.action)));
                   },
                   [&](const ctl::Impossible& e) {
                     step(ctl::job::Event(ctl::job::Failed{"configuration", 2, e.error.message}));
                   },
               },
               effect);
  }
}

void JobDaemon::run(const ShardOutput& output) {
  for (const ShardOutput::Reply& r : output.replies) {
    send_to(r.member, r.generation, r.grants, r.seq);
  }
  for (const ShardOutput::Refusal& r : output.refusals) {
    log_warn("{} (attempt {}) was refused: {}", r.member.worker, r.member.attempt,
             r.refused.reason);
    if (r.seq != 0) send_to(r.member, membership_.generation(), r.refused, r.seq);
  }
  for (const ShardOutput::Recall& r : output.recalls) {
    send_to(r.member, r.generation, r.recall, r.number);
  }
  for (const std::string& text : output.notes) note("returned", text);
  if (output.stop_reason) step(ctl::job::Event(ctl::job::Failed{"data", 4, *output.stop_reason}));
  if (output.drained_phase) on_drained(*output.drained_phase);
}

void JobDaemon::on_drained(std::uint64_t phase) {
  const wire::PhaseStart open = lifecycle_.phase();
  if (open.phase != phase) return;
  if (open.what == "eval") {
    const auto found = shard_server::metrics(shards_.ledger().evaluation());
    epochs_.at(open.epoch.value).eval =
        EpochReport::Eval{found.auc, found.log_loss, found.accuracy, found.records};
    std::string text = fmt::format("epoch {}:", open.epoch.value + 1);
    if (found.auc) text += fmt::format(" AUC {:.4f}", *found.auc);
    if (found.accuracy) text += fmt::format(" accuracy {:.4f}", *found.accuracy);
    if (found.log_loss) text += fmt::format(" log loss {:.4f}", *found.log_loss);
    note("evaluated", fmt::format("{} on {} records", text, found.records));
  }
  image_dirty_ = true;
  step(ctl::job::Event(ctl::job::PhaseDrained{phase}));
}

void JobDaemon::on_settled(const ctl::Settled& settled) {
  shard_server::event::Settled members{settled.generation, {}, {}};
  std::vector<ctl::Monitor::MemberInfo> group;
  for (const ctl::ExpectedMember& e : settled.members) {
    members.members.push_back(e.member);
    group.push_back({e.member, e.host});
  }
  run(shards_.step(members, loop_.now()));
  step(ctl::Event(ctl::GroupFormed{group}));
  if (controller_.plan().entries.empty()) return;  // impossible, and said so
  image_dirty_ = true;
  send_to_members(wire::Settle{settled.step, controller_.plan()});
  step(ctl::job::Event(ctl::job::GenerationSettled{settled.generation}));
}

void JobDaemon::open_phase(const wire::PhaseStart& start) {
  if (start.what == "train" || start.what == "eval") {
    const bool train = start.what == "train";
    if (epochs_.size() <= start.epoch.value) epochs_.resize(start.epoch.value + 1);
    if (train) progress_.begin_phase(start.phase, loop_.now());
    note("phase", fmt::format("epoch {}: {} {} records", start.epoch.value + 1,
                              train ? "training on" : "evaluating on", start.records));
    run(shards_.step(
        shard_server::event::PhaseOpened{
            start.phase, train ? shard_server::PhaseKind::kTrain : shard_server::PhaseKind::kEval,
            start.epoch},
        loop_.now()));
  } else {
    run(shards_.step(shard_server::event::JobFinished{}, loop_.now()));
  }
  send_to_members(start);
}

void JobDaemon::announce_plan(const wire::Plan& plan) {
  image_dirty_ = true;
  shard_server::event::Shares shares;
  for (const wire::PlanEntry& entry : plan.entries) {
    shares.shares.push_back({entry.worker, ctl::share_of(entry), 0});
  }
  run(shards_.step(shares, loop_.now()));
  // The plan of a group that is about to settle travels in its Settle.
  if (lifecycle_.phase().phase > 0) send_to_members(plan);
}

void JobDaemon::record_action(const ctl::RecordAction& action) {
  actions_.push_back({seconds(), action.kind, action.target, action.reason, action.outcome});
  image_dirty_ = true;
  note("action",
       fmt::format("{} {} ({}): {}", action.kind, action.target, action.outcome, action.reason),
       fmt::format(R"("action":{},"target":{},"outcome":{})", nlohmann::json(action.kind).dump(),
                   nlohmann::json(action.target).dump(), nlohmann::json(action.outcome).dump()));
}

void JobDaemon::note(std::string_view kind, std::string_view text, std::string_view extra_json) {
  log_info("{}: {}", kind, text);
  message_ = text;
  events_.add(seconds(), kind, text, extra_json);
}

void JobDaemon::end_job(const ctl::Outcome& outcome) {
  ended_ = true;
  exit_code_ = outcome.code;
  note("end", outcome.first_cause.empty() ? fmt::format("the job is {}", outcome.state)
                                          : outcome.first_cause);
  if (const wire::PhaseStart open = lifecycle_.phase();
      open.what == "train" && epochs_.at(open.epoch.value).samples == 0) {
    fill_epoch(open.epoch);  // cut short
  }
  const bool without_phases = spec_.protocol != ctl::Protocol::kAntdt;
  if (outcome.state == "done" && without_phases) {
    run(shards_.step(shard_server::event::JobFinished{}, loop_.now()));
  }
  finish_turn();
  JobReport last = report();
  last.state = outcome.state;
  last.outcome = outcome;
  last.checkpoints = checkpoints_.list();
  last.totals = shards_.totals();
  if (outcome.code == 0 && last.totals.repeated + last.totals.lost > 0) {
    last.outcome->code = exit_code_ = 4;
    last.outcome->exit_class = "delivery";
    last.outcome->first_cause = "records were repeated or lost; see antdt data audit";
  }
  if (const auto written =
          write_file_atomic(options_.run_dir + "/summary.json", summary_json(last));
      !written) {
    log_error("{}", written.error().message);
  }
  if (links_) links_->detach();
  loop_.call_after(std::chrono::milliseconds(200), [this] { loop_.stop(); });
}

void JobDaemon::finish_turn() {
  if (image_dirty_) {
    image_dirty_ = false;
    shards_.journal_image(wire::encode(image()));
  }
  if (const auto committed = shards_.commit(); !committed) {
    // Nothing of this turn may be seen by anybody. The agent starts us again
    // and the journal says where we were.
    log_error("the journal cannot be written: {}", committed.error().message);
    std::abort();
  }
  std::vector<Outgoing> outbox;
  outbox.swap(outbox_);
  for (Outgoing& out : outbox) {
    if (out.route.peer.empty()) {
      links_->send(out.route.endpoint, out.packet);
    } else {
      out.packet.peer = std::move(out.route.peer);
      std::ignore = socket_->send(out.packet);
    }
  }
}

}  // namespace antdt::jobd
