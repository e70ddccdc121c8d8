#include "jobd/standby/standby_desk.h"

#include <algorithm>
#include <tuple>

#include "core/os/net.h"
#include "core/overloaded.h"
#include "core/utf8.h"
#include "core/wire/dispatch.h"
#include "jobd/disk/run_journal.h"
#include "jobd/shell.h"
#include "launcher/start/paths.h"

namespace antdt::jobd {
namespace {

constexpr std::size_t kMostOfAReason = 500;  // of what an agent says about an end
constexpr std::uint32_t kStopGraceMs = 2'000;

std::uint32_t wanted_by(const launcher::ClusterSection& cluster) {
  return cluster.store.empty() || cluster.hosts.empty() ? 0 : cluster.standbys;
}

// The number of the host on which this process runs, if it is one of the job's.
std::optional<std::uint32_t> own_number(const Options& options,
                                        const launcher::ClusterSection& cluster) {
  if (options.standby) return options.standby;
  for (std::uint32_t i = 0; i < cluster.hosts.size(); ++i) {
    if (!own_address_among({cluster.hosts[i]}).empty()) return i;
  }
  return {};
}

std::string reason_of(const wire::ProcessExited& exit) {
  std::string reason = exit.error;
  if (reason.empty()) {
    reason = exit.signal != 0 ? fmt::format("signal {}", exit.signal)
                              : fmt::format("exit code {}", exit.code);
  }
  std::string_view last = exit.last_lines;
  while (last.ends_with('\n')) last.remove_suffix(1);
  last = last.substr(last.rfind('\n') + 1);
  if (!last.empty()) reason += fmt::format(" ({})", last);
  return valid_utf8(reason, kMostOfAReason);
}

}  // namespace

StandbyDesk::StandbyDesk(Shell& shell)
    : shell_(shell),
      standbys_(wanted_by(shell.config.cluster), shell.turns.incarnation(),
                own_number(shell.options, shell.config.cluster)) {}

void StandbyDesk::on_welcome(const std::string& host, std::uint32_t order,
                             wire::AgentWelcome& welcome) {
  std::optional<Attempt> up;
  for (const wire::RunningProcess& process : welcome.running) {
    if (process.worker == WorkerId{ctl::standby::kStandby, order}) up = process.attempt;
  }
  std::erase_if(welcome.running, [](const wire::RunningProcess& process) {
    return process.worker.role == ctl::standby::kStandby;
  });
  if (welcome.drain && !up) return;
  feed(ctl::standby::HostCame{host, welcome.host, order, up});
}

void StandbyDesk::on_lost(const std::string& host) { feed(ctl::standby::HostGone{host}); }

bool StandbyDesk::on_agent_message(const std::string& host, const wire::Envelope& envelope,
                                   std::string_view body) {
  if (envelope.worker.role != ctl::standby::kStandby) return false;
  const Member member{envelope.worker, envelope.attempt};
  const Overloaded act{
      [&](const wire::ProcessStarted&) { feed(ctl::standby::StandbyStarted{member}); },
      [&](const wire::ProcessExited& m) {
        shell_.outbox.send({host, ""}, member, {}, wire::ExitSeen{});
        feed(ctl::standby::StandbyEnded{member, reason_of(m)});
      },
      [&](const wire::Refused& m) {
        feed(ctl::standby::StandbyEnded{member, valid_utf8(m.reason, kMostOfAReason)});
      }};
  std::ignore = wire::dispatch<wire::ProcessStarted, wire::ProcessExited, wire::Refused>(
      envelope.kind, body, [&](const auto& message) {
        if (message) act(*message);
      });
  return true;
}

void StandbyDesk::tick() { feed(ctl::standby::TimePassed{}); }

void StandbyDesk::job_ended() { feed(ctl::standby::JobEnded{}); }

void StandbyDesk::feed(const ctl::standby::Input& input) {
  ctl::standby::Effects effects;
  standbys_.step(input, shell_.loop.now(), effects);
  const Overloaded carry_out{
      [this](const ctl::standby::StartStandby& e) { start(e); },
      [this](const ctl::standby::StopStandby& e) {
        shell_.outbox.send({e.host, ""}, e.member, {}, wire::StopProcess{kStopGraceMs});
      },
      [this](const ctl::standby::TellOperator& e) { shell_.note("standby", e.text); }};
  for (const ctl::standby::Effect& effect : effects) std::visit(carry_out, effect);
}

void StandbyDesk::start(const ctl::standby::StartStandby& effect) {
  const launcher::JobConfig& config = shell_.config;
  const Options& options = shell_.options;
  wire::StartProcess start;
  start.role = "standby";
  start.command = {launcher::program_directory() + "/antdt-jobd",
                   "--standby",
                   RunJournal(config, options.run_dir, options.state_dir).name_in_etcd(),
                   "--run-dir",
                   options.run_dir,
                   "--state-dir",
                   options.state_dir,
                   "--log-file",
                   fmt::format("{}/jobd.{}.log", options.run_dir, effect.member.worker)};
  const launcher::ClusterSection& cluster = config.cluster;
  for (const auto& [flag, value] : {std::pair{"--keys", cluster.keys},
                                    {"--store", cluster.store},
                                    {"--store-ca", cluster.store_ca},
                                    {"--store-cert", cluster.store_cert},
                                    {"--store-key", cluster.store_key},
                                    {"--store-user", cluster.store_user},
                                    {"--store-password-file", cluster.store_password_file},
                                    {"--store-prefix", cluster.store_prefix}}) {
    if (!value.empty()) start.command.insert(start.command.end(), {flag, value});
  }
  start.working_directory = config.job.directory;
  start.run_dir = options.run_dir;
  start.log_bytes = config.logs.max_bytes;
  start.orphan_timeout_ms = static_cast<std::uint32_t>(config.failure.orphan_timeout.count());
  shell_.outbox.send({effect.host, ""}, effect.member, {}, start);
}

}  // namespace antdt::jobd
