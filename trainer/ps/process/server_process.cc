#include "trainer/ps/process/server_process.h"

#include <utility>

#include "core/check.h"
#include "trainer/ps/placement.h"

namespace antdt::ps {
void ServerProcess::step(const process::Input& input, MonoTime now, process::Effects& out) {
  if (ended()) return;
  std::visit([&](const auto& i) { on(i, now, out); }, input);
  check_invariants();
}

void ServerProcess::check_invariants() const {
  ANTDT_CHECK(!greeted() || !endpoint_.empty(), "{} is welcome, and has no end point",
              self_.worker);
  ANTDT_CHECK(cutting_.empty() || has_group(), "{} writes checkpoints of no group", self_.worker);
}

// ----------------------------------------------------------------------- its agent

void ServerProcess::on(const process::TimePassed&, MonoTime now, process::Effects& out) {
  if (state_ == State::kGreeting && now >= complains_at_) complain(now, out);
  speak(out);
}

// To: greeting.
void ServerProcess::greet(MonoTime now) {
  state_ = State::kGreeting;
  greets_since_ = now;
  complains_at_ = now + kComplainAfter;
}

void ServerProcess::complain(MonoTime now, process::Effects& out) {
  complains_at_ = now + kComplainAgain;
  out.emplace_back(process::TellOperator{fmt::format(
      "no agent answered on {} for {:.0f} s: is antdtd running on this host, as the same "
      "user? This server waits for it as long as its shim lives",
      agent_, to_seconds(now - greets_since_))});
}

// Repeats what must be answered.
void ServerProcess::speak(process::Effects& out) {
  if (state_ == State::kGreeting) {
    out.emplace_back(process::SayHello{});
  } else if (state_ == State::kGreeted && generation_ == Generation{}) {
    wire::Join join;
    join.collective = false;
    join.endpoint = endpoint_;
    join.key = key_;
    out.emplace_back(process::SayJoin{std::move(join)});
  }
}

// From: greeting. To: opening; greeted, if its end point is open; ended, if the agent is of an
// incompatible release.
void ServerProcess::on(const process::WelcomeHeard& input, MonoTime, process::Effects& out) {
  if (input.version < wire::kMinVersion || input.version > wire::kMaxVersion) {
    return give_up(
        {ErrorKind::kRefused,
         fmt::format("the agent chose protocol version {}, this server speaks {} to {}: install "
                     "the same release on both",
                     input.version, wire::kMinVersion, wire::kMaxVersion)},
        out);
  }
  if (state_ != State::kGreeting) return;
  if (endpoint_.empty()) {
    state_ = State::kOpening;
    out.emplace_back(process::OpenEndPoint{});
    return;
  }
  state_ = State::kGreeted;
  speak(out);
}

// From: opening. To: greeted.
void ServerProcess::on(const process::EndPointOpened& input, MonoTime, process::Effects& out) {
  endpoint_ = input.endpoint;
  key_ = input.key;
  state_ = State::kGreeted;
  speak(out);
}

// From: opening. To: ended.
void ServerProcess::on(const process::EndPointFailed& input, MonoTime, process::Effects& out) {
  give_up(input.error, out);
}

// From: any. To: the same, if the message is repeated anyway; greeting, with a new agent; ended.
void ServerProcess::on(const process::RefusalHeard& input, MonoTime now, process::Effects& out) {
  const wire::Refused& refused = input.refused;
  if (refused.code == wire::RefusalCode::kBusy || refused.code == wire::RefusalCode::kFull) return;
  if (refused.code == wire::RefusalCode::kUnknown && !endpoint_.empty()) {
    if (state_ != State::kGreeted) return;
    greet(now);
    return speak(out);
  }
  // Another attempt has replaced this one.
  if (refused.code == wire::RefusalCode::kStale) return end(0, out);
  give_up({ErrorKind::kRefused, refused.reason}, out);
}

void ServerProcess::on(const process::PulsePassed& input, MonoTime, process::Effects& out) {
  if (!greeted()) return;
  wire::Report report;
  report.step = Step{input.version};
  report.activity = "compute";
  if (input.writing) {
    report.io = "writing the checkpoint";
    report.io_path = input.writing->directory;
    report.io_done_bytes = input.writing->done_bytes;
    report.io_total_bytes = input.writing->total_bytes;
  }
  out.emplace_back(process::SayReport{generation_, std::move(report)});
  if (has_group()) out.emplace_back(process::SayStats{generation_});
}

// ----------------------------------------------------------------------- its group

// From: no group, an earlier one. To: the group; the same, if it makes no sense here.
void ServerProcess::on(const process::GroupOrderHeard& input, MonoTime, process::Effects& out) {
  const bool welcome = !endpoint_.empty();
  if (input.generation < generation_ || input.generation == Generation{} || !welcome) return;
  if (input.generation > generation_) {
    auto start = start_of(input.serve, input.generation);
    if (!start) {
      out.emplace_back(process::RefuseGroupOrder{
          input.generation, {wire::RefusalCode::kInvalid, start.error().message}});
      return;
    }
    // The previous group is over.
    generation_ = input.generation;
    order_ = {};
    cutting_.clear();
    out.emplace_back(process::BeginGroup{std::move(*start), input.serve.keep});
  }
  if (input.serve.number >= order_.number) order_ = input.serve;
  out.emplace_back(process::OrderGroup{order_});
}

// From: a group. To: ended. The rows of the group before are gone, and its end is how the job
// daemon hears of that: it counts what was only in them.
void ServerProcess::on(const process::GroupFailed& input, MonoTime, process::Effects& out) {
  give_up({input.error.kind, fmt::format("it cannot begin to serve generation {}: {}", generation_,
                                         input.error.message)},
          out);
}

Result<linked::Start> ServerProcess::start_of(const wire::PsServe& serve,
                                              Generation generation) const {
  linked::Start start;
  ANTDT_TRY(start.node.consistency, consistency_of(serve.sync));
  start.role = serve.replica;
  const bool listed = start.role == replica::Role::kPrimary || start.role == replica::Role::kAlone;
  const bool has_place = serve.index < serve.servers.size();
  if (!has_place || (serve.servers[serve.index] == endpoint_) != listed) {
    return fail(ErrorKind::kUsage, "{} is at {}, which is not end point {} of the {} of its group",
                self_.worker, endpoint_, serve.index, serve.servers.size());
  }
  start.node.generation = generation;
  start.node.index = serve.index;
  start.node.servers = static_cast<std::uint32_t>(serve.servers.size());
  // Both processes of a server learn the workers by copied events, so that they begin alike.
  if (serve.view == 0) {
    for (const wire::PsMember& m : serve.workers) {
      start.node.workers.push_back({m.worker, m.attempt});
    }
    start.node.backups = serve.backups;
  }
  start.node.restore = serve.restore;
  start.node.version = serve.version;
  start.view = serve.view;
  start.endpoints = serve.servers;
  start.keys = linked::keys_in(serve);
  if (start.role == replica::Role::kPrimary) {
    start.backup = serve.other;
    start.backup_key = serve.other_key;
  }
  return start;
}

void ServerProcess::on(const process::OrderTaken& input, MonoTime, process::Effects& out) {
  out.emplace_back(process::AnswerGroupOrder{generation_, input.serving});
}

// If the group is over, has not begun here, or this process has not heard yet that it is promoted,
// the order is repeated if it is still wanted.
void ServerProcess::on(const process::CutOrderHeard& input, MonoTime, process::Effects& out) {
  const bool second =
      order_.replica == wire::ReplicaRole::kBackup || order_.replica == wire::ReplicaRole::kJoining;
  if (input.generation != generation_ || !has_group() || second) return;
  if (cutting_.insert(input.cut.number).second) out.emplace_back(process::OrderSlices{input.cut});
}

// The last checkpoint has the final state of this server, so its result is reported before the end.
void ServerProcess::on(const process::CutTaken& input, MonoTime, process::Effects& out) {
  cutting_.erase(input.saved.number);
  out.emplace_back(process::SayStats{generation_});
  out.emplace_back(process::AnswerCutOrder{generation_, input.saved});
}

// ------------------------------------------------------------------------- its end

// To: ended. A new process receives from the primary what this one could not read.
void ServerProcess::on(const process::BackupBroken& input, MonoTime, process::Effects& out) {
  if (input.unread) return end(kLostGroup, out);
  give_up({ErrorKind::kIo, fmt::format("it cannot be the backup of its server: {}", input.error)},
          out);
}

void ServerProcess::on(const process::LeaveHeard& input, MonoTime, process::Effects& out) {
  end(input.code, out);
}

void ServerProcess::on(const process::StopAsked&, MonoTime, process::Effects& out) {
  end(kResumable, out);
}

// To: ended.
void ServerProcess::end(int code, process::Effects& out) {
  state_ = State::kEnded;
  out.emplace_back(process::EndProcess{code});
}

// To: ended.
void ServerProcess::give_up(Error error, process::Effects& out) {
  state_ = State::kEnded;
  out.emplace_back(process::GiveUpProcess{std::move(error)});
}

}  // namespace antdt::ps
