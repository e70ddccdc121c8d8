#include "sim/messages.h"

#include "sim/servers/ps_packets.h"

namespace antdt::sim {
namespace {

struct Text {
  std::string operator()(const Start& m) const { return fmt::format("start {}", name(m.member)); }
  std::string operator()(const Stop& m) const {
    return fmt::format("stop {} within {:.1f} s", name(m.member), to_seconds(m.grace));
  }
  std::string operator()(const ExitSeen& m) const {
    return fmt::format("exit-seen {}", name(m.member));
  }
  std::string operator()(const NotAttached&) const { return "not attached"; }
  std::string operator()(const Started& m) const {
    return fmt::format("started {}", name(m.member));
  }
  std::string operator()(const Exited& m) const {
    return fmt::format("exited {} code {} signal {}", name(m.member), m.exit.code, m.exit.signal);
  }
  std::string operator()(const StartRefused& m) const {
    return fmt::format("start of {} refused: {}", name(m.member), m.reason);
  }
  std::string operator()(const ctl::job::SendToWorker& m) const {
    return fmt::format("{} g{} seq {}: {}", name(m.to), m.generation, m.seq,
                       std::visit([this](const auto& b) { return (*this)(b); }, m.body));
  }
  std::string operator()(const ctl::job::WorkerSaid& m) const {
    return fmt::format("{} g{} seq {}: {}", name(m.member), m.generation, m.seq,
                       std::visit([this](const auto& b) { return (*this)(b); }, m.body));
  }
  std::string operator()(const ctl::SharedRoster& m) const { return (*this)(m.for_wire()); }
  std::string operator()(const wire::Fetch& m) const {
    std::string text = fmt::format("fetch phase {} place {} want {}", m.phase, m.place, m.want);
    if (m.late > 0) text += fmt::format(" late {}", m.late);
    return text;
  }
  std::string operator()(const wire::Grants& m) const {
    std::string text = fmt::format("grants phase {} {}", m.phase, m.status);
    for (const wire::Piece& p : m.pieces) {
      text += fmt::format(" {}[{},{})", p.shard, p.from, p.to);
    }
    return text;
  }
  std::string operator()(const wire::Progress& m) const {
    return fmt::format("progress phase {} step {} place {} samples {}{}", m.phase, m.step, m.place,
                       m.samples, m.done ? " done" : "");
  }
  std::string operator()(const wire::Join& m) const {
    return fmt::format("join settled {} step {} {}", m.settled, m.step, m.problem);
  }
  std::string operator()(const wire::Form& m) const {
    return fmt::format("form rank {} of {} base {} restore '{}'", m.rank, m.size, m.base,
                       m.restore);
  }
  std::string operator()(const wire::Ready& m) const {
    std::string text = fmt::format("ready step {} phase {} places", m.step, m.phase);
    for (const wire::MemberPlace& p : m.places) text += fmt::format(" {}:{}", p.worker, p.place);
    return text;
  }
  std::string operator()(const wire::PhaseStart& m) const {
    return fmt::format("phase-start {} {} epoch {} committed {} of {}", m.phase, m.what, m.epoch,
                       m.committed, m.records);
  }
  std::string operator()(const wire::Settle& m) const {
    return fmt::format("settle step {} plan {}", m.step, m.plan.version);
  }
  std::string operator()(const wire::Recall& m) const {
    return fmt::format("recall phase {} keep to {}", m.phase, m.keep_to);
  }
  std::string operator()(const wire::Recalled& m) const {
    return fmt::format("recalled phase {} end {} records {}", m.phase, m.end,
                       m.records.value_or(0));
  }
  std::string operator()(const wire::Refused& m) const {
    return fmt::format("refused {}: {}", m.code, m.reason);
  }
  std::string operator()(const wire::AgentWelcome& m) const {
    std::string text = "welcome, running:";
    for (const wire::RunningProcess& p : m.running) {
      text += fmt::format(" {}.{}", p.worker, p.attempt);
    }
    return text;
  }
  std::string operator()(const wire::CheckpointWritten& m) const {
    return fmt::format("checkpoint-written {} step {}", m.number, m.step);
  }
  std::string operator()(const wire::CheckpointBegun& m) const {
    return fmt::format("checkpoint-begun {} step {}", m.number, m.step);
  }
  std::string operator()(const wire::PsServe& m) const {
    const std::string role = m.replica == wire::ReplicaRole::kAlone
                                 ? ""
                                 : fmt::format(" {} in view {}", m.replica, m.view);
    const std::string last = m.last_cut == 0 ? "" : fmt::format(" last cut {}", m.last_cut);
    return fmt::format("ps-serve {}{} of {} workers {} leaving {} restore '{}' version {}{}",
                       m.number, role, m.servers.size(), members(m.workers), members(m.leaving),
                       m.restore, m.version, last);
  }
  std::string operator()(const wire::PsServing& m) const {
    std::string text = fmt::format("ps-serving {}", m.number);
    for (const wire::PsPlaces& p : m.left) text += fmt::format(" left {}", places(p));
    return text;
  }
  std::string operator()(const wire::PsSaved& m) const {
    std::string text = fmt::format("ps-saved {} version {} {}", m.number, m.version, m.error);
    for (const wire::PsPlaces& p : m.places) text += " " + places(p);
    return text;
  }
  std::string operator()(const wire::PsCut& m) const { return fmt::format("ps-cut {}", m.number); }
  std::string operator()(const wire::PsPull& m) const {
    return fmt::format("ps-pull clock {}", m.clock);
  }
  std::string operator()(const wire::PsPulled& m) const {
    return fmt::format("ps-pulled version {}", m.version);
  }
  std::string operator()(const wire::PsPush& m) const {
    return fmt::format("ps-push {} version {}", m.number, m.version);
  }
  std::string operator()(const wire::PsStaged& m) const {
    return fmt::format("ps-staged {} {}", m.number, m.status);
  }
  std::string operator()(const wire::PsCommit& m) const {
    return fmt::format("ps-commit {} version {} phase {} places [{},{})", m.number, m.version,
                       m.phase, m.from, m.to);
  }
  std::string operator()(const wire::PsDecided& m) const {
    return fmt::format("ps-decided {} {} version {}", m.number, m.status, m.version);
  }
  std::string operator()(const wire::PsDecision& m) const {
    std::string text =
        fmt::format("ps-decision {} left {} cut {}:", m.number, members(m.left), m.cut);
    for (const wire::PsPushId& p : m.pushes) {
      text += fmt::format(" {}.{}#{}", p.worker, p.attempt, p.number);
    }
    return text;
  }
  std::string operator()(const wire::PsApplied& m) const {
    return fmt::format("ps-applied {}", m.number);
  }
  template <class Body>
  std::string operator()(const Body&) const {
    return std::string(Body::kKind);
  }
  static std::string members(const std::vector<wire::PsMember>& all) {
    std::string text;
    for (const wire::PsMember& m : all) text += fmt::format("{}.{} ", m.worker, m.attempt);
    return "(" + text.substr(0, text.empty() ? 0 : text.size() - 1) + ")";
  }
  static std::string places(const wire::PsPlaces& p) {
    std::string text = fmt::format("{}.{} phase {}", p.worker, p.attempt, p.phase);
    for (const wire::PsRange& r : p.applied) text += fmt::format(" [{},{})", r.from, r.to);
    return text;
  }
  static std::string name(Member m) { return fmt::format("{}.{}", m.worker, m.attempt); }
};

}  // namespace

std::string describe(const ToAgent& message) { return std::visit(Text{}, message.body); }
std::string describe(const ToDaemon& message) { return std::visit(Text{}, message.body); }
std::string describe(const PsPacket& packet) {
  return fmt::format("g{} seq {}: {}", packet.generation, packet.seq,
                     std::visit(Text{}, packet.body));
}
std::string describe(const PsAnswer& answer) {
  return fmt::format("seq {}: {}", answer.seq, std::visit(Text{}, answer.body));
}

}  // namespace antdt::sim
