#include "launcher/commands/plan/make_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/clock.h"
#include "core/role_protocol.h"
#include "launcher/commands/plan/facts.h"
#include "launcher/commands/plan/trial.h"
#include "launcher/commands/run/prepare.h"
#include "launcher/commands/simulate/short_run.h"
#include "launcher/config/rules/pin_checks.h"
#include "launcher/plan/drilled_link.h"
#include "launcher/start/own_program.h"

namespace antdt::cli {
namespace {

namespace plan = launcher::plan;
using plan::Strategy;

// The job as all-reduce, to find its hosts.
Result<Prepared> prepared_as_allreduce(transport::Context& context, const std::string& job,
                                       const std::vector<std::string>& overrides,
                                       const launcher::JobConfig& config,
                                       const std::string& run_dir) {
  std::vector<std::string> settings = settings_of_trials(overrides);
  settings.insert(settings.end(), {"trainer.sync=allreduce", "roles.server.count=0"});
  launcher::RunOptions options;
  options.run_dir = run_dir;
  ANTDT_TRY(Prepared prepared, prepare(context, job, settings, options));
  prepared.config.roles.server = config.roles.server;
  prepared.config.inject = config.inject;  // which trials leave out
  return prepared;
}

// The trials of one plan.
class Trials {
 public:
  Trials(const TriedJob& job, const std::string& directory, plan::Measured& measured,
         const Say& say)
      : job_(job), directory_(directory), m_(measured), say_(say) {}

  Status run() {
    const auto batch = static_cast<std::uint64_t>(std::max(1.0, std::round(m_.batch())));
    const std::uint32_t workers = std::max(1U, m_.most_workers_of_a_host());
    if (m_.workers() > 1) {
      ANTDT_RETURN_IF_ERROR(alone(static_cast<std::uint64_t>(m_.global_batch)));
    }
    // Only what is computed for links needs it.
    if (m_.workers() == 1 || m_.link) ANTDT_RETURN_IF_ERROR(alone(batch));
    std::ranges::sort(m_.alone, {}, &plan::Point::samples);
    for (const plan::StrategyEntry& entry : plan::kStrategies) {
      const std::uint32_t servers =
          entry.on_servers && !m_.servers.empty() ? m_.servers.front().count : 0;
      if (entry.strategy == Strategy::kServersSsp) continue;  // as ps-asp
      const WantedTrial wanted{entry.strategy, workers, servers, batch};
      ANTDT_RETURN_IF_ERROR(one(wanted));
    }
    if (const auto why = m_.impossible.find(Strategy::kServersAsp); why != m_.impossible.end()) {
      m_.impossible[Strategy::kServersSsp] = why->second;
    }
    return {};
  }

 private:
  Status one(const WantedTrial& wanted) {
    const plan::StrategyEntry& entry = plan::entry_of(wanted.strategy);
    std::string why = why_impossible(job_, wanted);
    const bool needs_table = entry.sparse || wanted.strategy == Strategy::kHybrid;
    if (why.empty() && needs_table && m_.model.table_rows == 0) {
      why = "the model has no embedding table";
    }
    if (why.empty() && entry.on_servers && wanted.servers == 0) {
      why = "no host has room for servers";
    }
    if (why.empty() && entry.on_servers && plan::drills_pairs(job_.config)) {
      why = "job.toml has a drill about messages between some, which servers refuse";
    }
    if (!why.empty()) {
      m_.impossible[wanted.strategy] = why;
      return {};
    }
    if (wanted.strategy == Strategy::kGaia) return updates(wanted);
    if (entry.only_if_asked) return {};  // computed from the trial of another way
    // A trial of one worker under all-reduce was made already.
    for (const plan::Trial& t : alone_) {
      if (wanted.strategy == Strategy::kAllReduce && wanted.workers == 1 &&
          t.batch == static_cast<double>(wanted.batch)) {
        m_.trials.push_back(t);
        return {};
      }
    }
    const auto tried = tell_and_try(wanted);
    if (tried) {
      learn_model(*tried);
      m_.trials.push_back(tried->trial);
    } else {
      // The others can be compared without it.
      m_.impossible[wanted.strategy] = "its trial trained nothing";
      m_.notes.push_back(tried.error().message);
    }
    return {};
  }

  // A trial that trains nothing, for example because the host has no room for a second worker,
  // leaves the usual sizes of messages.
  Status updates(WantedTrial wanted) {
    if (!m_.domains) return {};
    wanted.workers = std::max(2U, wanted.workers);
    const auto tried = tell_and_try(wanted);
    if (tried) {
      m_.trials.push_back(tried->trial);
      m_.updates.share = tried->updates.share;
      m_.updates.messages = tried->updates.messages;
    } else {
      m_.notes.push_back(tried.error().message);
    }
    return {};
  }

  Status alone(std::uint64_t batch) {
    ANTDT_TRY(const Tried tried, tell_and_try({Strategy::kAllReduce, 1, 0, batch}));
    alone_.push_back(tried.trial);
    m_.alone.push_back({static_cast<double>(batch), tried.trial.step_s});
    learn_model(tried);
    return {};
  }

  // The first checkpoint of a trial says it. On a disk that stands still a trial may end without
  // one.
  void learn_model(const Tried& tried) {
    const bool told = !tried.model.sums.empty() || tried.model.table_rows > 0;
    if (!told || !m_.model.sums.empty()) return;
    const plan::Curve rows = std::move(m_.model.rows_of_batch);
    m_.model = tried.model;
    m_.model.rows_of_batch = rows;
  }

  Result<Tried> tell_and_try(const WantedTrial& wanted) {
    const std::string servers =
        wanted.servers == 0 ? "" : fmt::format(" and {} servers", wanted.servers);
    say_(fmt::format("trying {} with {} worker{}{}, {} samples each",
                     plan::entry_of(wanted.strategy).name, wanted.workers,
                     wanted.workers == 1 ? "" : "s", servers, wanted.batch));
    return try_out(job_, wanted, directory_);
  }

  const TriedJob& job_;
  const std::string& directory_;
  plan::Measured& m_;
  const Say& say_;
  std::vector<plan::Trial> alone_;
};

void find_links(transport::Context& context, const Prepared& prepared, const Say& say,
                plan::Measured& m) {
  const launcher::JobConfig& config = prepared.config;
  m.domains = domains_of(prepared, m.hosts);
  const auto drilled = plan::drilled_between(config);
  m.link = plan::drilled_link(config, m.notes);
  if (m.link) {
    if (m.domains) m.domains->between = *m.link;
    return;
  }
  if (m.hosts.size() < 2) {
    // Without a drill nothing between them is slow.
    if (m.domains && drilled) m.domains->between = *drilled;
    if (!drilled) m.domains = std::nullopt;
    return;
  }
  say(fmt::format("measuring the links between {} hosts", m.hosts.size()));
  const auto links = measured_links(context, config, m.hosts);
  if (!links) {
    m.link_unknown = links.error().message;
    m.domains = std::nullopt;
    return;
  }
  m.link = slowest_of(*links, Which::kAll, {});
  if (!m.domains) return;
  m.domains->within = slowest_of(*links, Which::kWithin, m.domains->of_hosts);
  m.domains->between =
      slowest_of(*links, Which::kBetween, m.domains->of_hosts).value_or(plan::Link{});
  if (drilled) m.domains->between = plan::behind(*drilled, m.domains->between);
}

// The way that the job itself names; empty: the job leaves it to the plan.
std::optional<Strategy> asked_by(const launcher::JobConfig& config) {
  for (const plan::StrategyEntry& entry : plan::kStrategies) {
    if (entry.sync == config.trainer.sync) return entry.strategy;
  }
  return std::nullopt;
}

}  // namespace

std::string why_not_planned(const launcher::JobConfig& config) {
  const launcher::RoleSection& worker = config.roles.worker;
  const std::string program =
      worker.command.empty() ? "" : std::filesystem::path(worker.command.front()).filename();
  if (!speaks(worker.protocol, Protocol::kAntdt) || !launcher::is_built_in(program)) {
    return fmt::format(
        "a plan tries ways of synchronisation with antdt-trainer, and the workers of this job run "
        "{}: name a run of it with antdt plan --from RUN, which tells what that run's own way "
        "cost",
        program.empty() ? "another program" : program);
  }
  return launcher::why_pins_are_not_planned(config);
}

Result<Planned> make_plan(transport::Context& context, const std::string& job,
                          const std::vector<std::string>& overrides, const Say& say) {
  const SteadyClock clock;
  const MonoTime begin = clock.now();
  ANTDT_TRY(const launcher::JobConfig config, launcher::load(job, overrides));
  if (std::string why = why_not_planned(config); !why.empty()) {
    return fail(ErrorKind::kUsage, "{}", why);
  }
  ANTDT_TRY(const Aside aside, Aside::make("antdt-plan"));
  ANTDT_TRY(const Prepared prepared,
            prepared_as_allreduce(context, job, overrides, config, aside.path() + "/prepared"));
  PlannedHosts hosts = hosts_of(prepared);
  Planned planned;
  plan::Measured& m = planned.measured;
  m.global_batch = static_cast<double>(config.batch.global);
  m.hosts = std::move(hosts.hosts);
  m.servers = std::move(hosts.servers);
  m.asked = asked_by(config);
  m.updates.whole_every = static_cast<double>(config.trainer.gaia.whole_every);
  find_links(context, prepared, say, m);
  const auto batch = static_cast<std::uint64_t>(std::max(1.0, std::round(m.batch())));
  ANTDT_TRY(m.model.rows_of_batch, rows_of_batches(config, {batch, config.batch.global}));

  TriedJob tried{job, overrides, config, "", m.link && m.link->held_back};
  if (!config.cluster.hosts.empty()) {
    // The host with the most workers, whose cores have most to do.
    tried.host = std::ranges::max_element(m.hosts, {}, &plan::HostLoad::workers)->name;
  }
  tried.domains =
      domains_on(prepared, tried.host.empty() ? prepared.hosts.front().name : tried.host);
  ANTDT_RETURN_IF_ERROR(Trials(tried, aside.path(), m, say).run());
  planned.plan = plan::plan_of(m);
  planned.seconds = std::chrono::duration<double>(clock.now() - begin).count();
  return planned;
}

}  // namespace antdt::cli
