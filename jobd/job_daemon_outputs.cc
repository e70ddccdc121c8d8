// What the machine wants done.
#include <nlohmann/json.hpp>

#include "core/log/log.h"
#include "core/overloaded.h"
#include "core/wire/packet.h"
#include "jobd/job_daemon.h"

namespace antdt::jobd {
namespace {

constexpr Duration kCopyAtTheEnd = std::chrono::seconds(30);

}  // namespace

void JobDaemon::perform(const ctl::job::PersistRecord& o) { journal_.append(o.kind, o.bytes); }

// After a restart nobody has been heard of yet: a worker that an agent started is
// where it was placed.
std::optional<JobDaemon::Route> JobDaemon::route_to(Member member) const {
  if (inbound_ && inbound_->first == member) return inbound_->second;
  const auto route = routes_.find(member.worker);
  if (route != routes_.end()) return route->second;
  const ctl::WorkerProcess* placed = machine_.lifecycle().find(member.worker);
  if (placed == nullptr || placed->place.host.empty()) return {};
  return Route{placed->place.host, ""};
}

void JobDaemon::perform(ctl::job::SendToWorker& o) {
  const std::optional<Route> route = route_to(o.to);
  if (!route) return;
  if (ends_order(o.body)) held_.erase(o.to);
  const std::size_t before = outbox_.size();
  std::visit(Overloaded{[&](const ctl::SharedRoster& roster) {
                          send(*route, o.to, o.generation, roster.for_wire(), o.seq);
                        },
                        [&](const auto& body) { send(*route, o.to, o.generation, body, o.seq); }},
             o.body);
  if (copies_->can_read(route->endpoint, o.reads)) return;
  Outgoing order = std::move(outbox_.at(before));
  outbox_.pop_back();
  hold(o.to, route->endpoint, o.reads, std::move(order));
}

void JobDaemon::perform(const ctl::lifecycle::StartWorker& o) { request_start(o.member, o.host); }

void JobDaemon::perform(const ctl::lifecycle::StopWorker& o) {
  const auto grace = std::chrono::ceil<std::chrono::milliseconds>(o.grace);
  asked_[o.member] = loop_.now();
  send({o.host, ""}, o.member, {}, wire::StopProcess{static_cast<std::uint32_t>(grace.count())});
}

void JobDaemon::perform(const ctl::lifecycle::PrepareGang& o) {
  // The port must be free on the host of rank 0: its agent says which.
  waiting_for_port_ = o.workers;
  wire::Envelope envelope;
  envelope.job = config_.job.id;
  outbox_.push_back(
      {{o.workers.front().host, ""}, wire::make_packet(envelope, wire::ReservePort{})});
}

void JobDaemon::perform(const ctl::job::RememberEntry& o) { history_.remember(o.entry); }

void JobDaemon::perform(const ctl::job::PublishNote& o) {
  const double time_s = machine_.lifecycle().seconds();
  const auto say = [this, time_s, kind = o.kind, extra = o.extra_json](const std::string& text) {
    log_info("{}: {}", kind, text);
    events_.add(time_s, kind, text, extra);
  };
  if (o.kind != "checkpoint-failed") return say(o.text);
  disks_.checkpoints().run("looking for room", [say, text = o.text, store = checkpoints_] {
    return [say, said = fmt::format("{} ({})", text, store.about_room())] { say(said); };
  });
}

// The summary comes last: whoever sees it finds all else.
void JobDaemon::perform(const ctl::lifecycle::EndJob& o) {
  ended_ = true;
  if (own_program_) own_program_->end();
  finish_turn();
  ctl::JobReport last = machine_.report();
  last.state = o.outcome.state;
  last.outcome = o.outcome;
  exit_code_ = o.outcome.code;
  if (exit_code_ == 0 && !is_kept(last.delivery, last.totals.repeated, last.totals.lost)) {
    last.outcome->code = exit_code_ = 4;
    last.outcome->exit_class = "delivery";
    last.outcome->first_cause = fmt::format(
        "records were repeated or lost, and the promise is {}; "
        "see antdt data audit",
        to_string(last.delivery));
  }
  disks_.checkpoints().run("listing the checkpoints", [this, last, store = checkpoints_,
                                                       run_dir = options_.run_dir]() mutable {
    last.checkpoints = store.list();
    RunCopies::remove_probes(run_dir);
    return [this, last] {
      if (last.outcome->state == "done") copies_->job_done(last.checkpoints);
      keep_summary(last);
    };
  });
}

void JobDaemon::keep_summary(const ctl::JobReport& last) {
  disks_.records().run("writing summary.json", [this, path = options_.run_dir + "/summary.json",
                                                text = ctl::summary_json(last)] {
    const Status written = write_file_atomic(path, text);
    return [this, written] {
      if (!written) log_error("{}", written.error().message);
      leave_when_copied(loop_.now() + kCopyAtTheEnd);
    };
  });
}

}  // namespace antdt::jobd
