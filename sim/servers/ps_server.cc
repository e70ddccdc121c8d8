#include "sim/servers/ps_server.h"

#include "sim/surroundings.h"
#include "trainer/ps/placement.h"

namespace antdt::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kAskAgain = milliseconds(500);
constexpr Duration kPulse = seconds(1);

}  // namespace

void PsServer::start() {
  later({}, [this] { say_again(); });
  later(kPulse, [this] { report(); });
}

void PsServer::terminate() {
  later({}, [this] { exit(kResumable); });
}

std::string PsServer::doing() const {
  return fmt::format("{}.{} on {}{}: generation {}, serve {}, version {}", member_.worker,
                     member_.attempt, host_, standing(), generation_, serve_.number,
                     server_ ? server_->version() : 0);
}

// ---------------------------------------------------------------- what is said

void PsServer::say(decltype(Said::body) body, Generation generation, std::uint64_t seq) {
  around_.to_agent(*this, {generation, seq, std::move(body)});
}

void PsServer::say_again() {
  if (!greeted_) {
    say(wire::Hello{wire::kMinVersion, wire::kMaxVersion, "antdt-server"});
  } else if (generation_ == Generation{}) {
    wire::Join join;
    join.pid = pid_;
    join.collective = false;
    join.endpoint = endpoint_of(member_, host_);
    say(ctl::in::WorkerBody(join));
  }
  later(clock_.real(kAskAgain), [this, turn = ++turn_] {
    if (turn == turn_) say_again();
  });
}

void PsServer::report() {
  later(clock_.real(kPulse), [this] { report(); });
  if (!greeted_) return;
  wire::Report report;
  report.step = Step{server_ ? server_->version() : 0};
  report.activity = "compute";
  say(std::move(report), generation_);
}

// --------------------------------------------------------------- what is heard

void PsServer::receive(Told message) {
  later({}, [this, message = std::move(message)] { hear(message); });
}

void PsServer::hear(const Told& message) {
  if (const auto* serve = std::get_if<wire::PsServe>(&message.body)) {
    return on(*serve, message.generation);
  }
  if (const auto* cut = std::get_if<wire::PsCut>(&message.body)) {
    return on(*cut, message.generation);
  }
  const auto& body = std::get<client::Inbound>(message.body);
  if (const auto* welcome = std::get_if<wire::WorkerWelcome>(&body)) return on(*welcome);
  if (const auto* refused = std::get_if<wire::Refused>(&body)) return on(*refused);
  if (const auto* leave = std::get_if<wire::Leave>(&body)) exit(static_cast<int>(leave->code));
}

void PsServer::on(const wire::WorkerWelcome& welcome) {
  welcome_ = welcome;
  if (!std::exchange(greeted_, true)) say_again();
}

void PsServer::on(const wire::Refused& refused) {
  if (refused.code == "unknown" && welcome_) {
    if (std::exchange(greeted_, false)) say_again();
    return;
  }
  if (refused.code == "stale") return exit(0);
  world_.say("{}.{} is refused: {}", member_.worker, member_.attempt, refused.reason);
  exit(1);
}

// -------------------------------------------------------------------- the group

void PsServer::on(const wire::PsServe& message, Generation generation) {
  if (generation < generation_ || generation == Generation{} || !welcome_) return;
  if (generation > generation_ || !server_) {
    if (!open_group(message, generation)) {
      return say(ctl::in::WorkerBody(wire::PsServing{}), generation);
    }
  }
  if (message.number >= serve_.number) serve_ = message;
  server_->serve(serve_, [this, generation](const wire::PsServing& serving) {
    say(ctl::in::WorkerBody(serving), generation);
  });
  if (!server_->speaks()) {
    say(ctl::in::WorkerBody(wire::PsServing{serve_.number, {}}), generation);
  }
}

bool PsServer::open_group(const wire::PsServe& message, Generation generation) {
  const bool joining = message.replica == "joining";
  const bool backup = joining || message.replica == "backup";
  const bool fits = message.index < message.servers.size() &&
                    (message.servers[message.index] == endpoint_of(member_, host_)) != backup;
  if (!fits) {
    world_.violate("a server is asked where it is", doing());
    return false;
  }
  const auto consistency = ps::parse_consistency(message.sync);
  if (!consistency) return false;
  PsGroup group;
  group.generation = generation;
  group.consistency = *consistency;
  group.endpoints = message.servers;
  if (message.view == 0) {
    for (const wire::PsMember& m : message.workers) group.workers.push_back({m.worker, m.attempt});
    group.backups = message.backups;
  }
  group.view = message.view;
  if (backup) group.role = ps::replica::Role::kBackup;
  if (joining) group.role = ps::replica::Role::kJoining;
  if (message.replica == "primary") {
    group.role = ps::replica::Role::kPrimary;
    group.backup = message.other;
  }
  group.restore = message.restore;
  group.version = message.version;
  std::optional<ps::Server::Rows> rows;
  if (server_ && message.keep) rows = server_->release();
  server_.reset();
  cutting_.clear();
  generation_ = generation;
  serve_ = {};
  around_.group_began(generation, message.restore);
  server_ = std::make_unique<PsServerLoop>(outside_of(generation), group, message.index);
  if (rows) server_->adopt(std::move(*rows));
  for (const PsPacket& packet : std::exchange(unread_, {})) server_->asked(packet);
  return true;
}

PsServerLoop::Outside PsServer::outside_of(Generation generation) {
  return {[this](Duration delay, World::Action action) {
            later(clock_.real(delay), std::move(action));
          },
          [this](const std::string& endpoint, PsPacket packet) {
            if (may_send()) around_.ask(*this, endpoint, std::move(packet));
          },
          [this](PsAnswer answer) {
            if (may_send()) around_.answer(*this, std::move(answer));
          },
          [this](const std::string& directory, const PsSlices& slices) {
            return around_.write_slices(directory, slices);
          },
          [this](const std::string& directory) { return around_.read_slices(directory); },
          [this, generation](std::uint32_t home, const wire::PsDecision& d) {
            around_.decided(generation, home, d);
          },
          [this] { return around_.new_socket(*this); },
          [this] { return world_.rng().time(milliseconds(1), milliseconds(600)); },
          [this](const std::string& error) {
            world_.say("{}.{} is no backup: {}", member_.worker, member_.attempt, error);
            later({}, [this] { exit(1); });
          },
          [this] { return world_.rng().time({}, milliseconds(20)); },
          [this] { return around_.loses_child(); }};
}

void PsServer::on(const wire::PsCut& message, Generation generation) {
  if (generation != generation_ || !server_) return;
  if (!cutting_.insert(message.number).second) return;
  server_->cut(message, [this, generation](const wire::PsSaved& saved) {
    cutting_.erase(saved.number);
    say(ctl::in::WorkerBody(saved), generation);
  });
}

void PsServer::asked(const PsPacket& packet) {
  later({}, [this, packet] { server_ ? server_->asked(packet) : unread_.push_back(packet); });
}

void PsServer::answered(const PsAnswer& answer) {
  later({}, [this, answer] {
    if (server_) server_->answered(answer);
  });
}

}  // namespace antdt::sim
