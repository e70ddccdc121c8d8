#include "launcher/plan/plan_view.h"

#include <fmt/format.h>

#include <cmath>

#include "launcher/plan/reasons.h"
#include "launcher/view/text_table.h"

namespace antdt::launcher::plan {
namespace {

std::string basis(const Prediction& p) {
  if (!p.offered) {
    return fmt::format("{}; recommended to jobs of this sync alone",
                       p.as_tried ? "tried" : "computed");
  }
  if (p.computed_only) return "computed";
  return p.as_tried ? "tried" : "computed from a trial";
}

std::string link_line(const std::string& which, const Link& link) {
  const std::string rate = link.bytes_per_s > 0 ? fmt::format("{:.1f} MB/s", link.bytes_per_s / 1e6)
                                                : "no bound on bytes";
  return fmt::format("{}: {}, {} a message one way, {}", which, link.name,
                     milliseconds(link.latency_s), rate);
}

std::vector<std::string> row_of(const Prediction& p, bool recommended) {
  const StrategyEntry& entry = entry_of(p.strategy);
  std::vector<std::string> row = {std::string(entry.name),
                                  entry.on_servers ? std::to_string(p.servers) : ""};
  if (!p.known()) {
    row.insert(row.end(), {"-", "-", "-", "-", "-", p.unknown});
    return row;
  }
  for (const double s : {p.step_s, p.compute_s, p.exchange_s, p.waiting_s}) {
    row.push_back(milliseconds(s));
  }
  row.push_back(grouped(static_cast<std::uint64_t>(std::llround(p.samples_per_s))));
  row.push_back(recommended ? basis(p) + "; recommended" : basis(p));
  return row;
}

nlohmann::ordered_json json_of(const Prediction& p) {
  const std::string_view sync = p.offered ? entry_of(p.strategy).sync : "";
  nlohmann::ordered_json out = {
      {"strategy", entry_of(p.strategy).name}, {"sync", sync}, {"servers", p.servers}};
  if (!p.known()) {
    out["unknown"] = p.unknown;
    return out;
  }
  out["step_seconds"] = p.step_s;
  out["compute_seconds"] = p.compute_s;
  out["exchange_seconds"] = p.exchange_s;
  out["waiting_seconds"] = p.waiting_s;
  out["samples_per_second"] = p.samples_per_s;
  out["relative_error"] = p.error;
  out["basis"] = p.computed_only ? "formula" : p.as_tried ? "trial" : "trial and formula";
  if (p.share) out["share_of_bytes"] = {{"least", p.share->least}, {"most", p.share->most}};
  if (p.step_range_s) {
    out["step_seconds_range"] = {{"least", p.step_range_s->least}, {"most", p.step_range_s->most}};
  }
  return out;
}

nlohmann::ordered_json json_of(const Link& link) {
  return {{"name", link.name},
          {"latency_seconds", link.latency_s},
          {"bytes_per_second", link.bytes_per_s},
          {"held_back", link.held_back}};
}

nlohmann::ordered_json json_of(const DomainLinks& links) {
  nlohmann::ordered_json out = {{"names", links.names}};
  for (const Group& group : links.groups) {
    out["groups"].push_back({{"domain", links.names[group.domain]}, {"workers", group.workers}});
  }
  if (links.within) out["within"] = json_of(*links.within);
  out["between"] = json_of(links.between);
  return out;
}

nlohmann::ordered_json json_of(const Curve& curve) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const Point& p : curve) out.push_back({{"samples", p.samples}, {"value", p.value}});
  return out;
}

nlohmann::ordered_json json_of(const Measured& m) {
  nlohmann::ordered_json out = {{"workers", m.workers()}, {"global_batch", m.global_batch}};
  for (const HostLoad& host : m.hosts) {
    out["hosts"].push_back({{"name", host.name}, {"cpus", host.cpus}, {"workers", host.workers}});
  }
  if (m.link) {
    out["link"] = json_of(*m.link);
  }
  if (m.domains) out["domains"] = json_of(*m.domains);
  if (m.updates.share) {
    out["updates"] = {{"share_of_bytes", *m.updates.share}, {"messages", m.updates.messages}};
  }
  out["model"] = {{"dense_bytes", m.model.dense_bytes()},
                  {"sums", m.model.sums.size()},
                  {"table_rows", m.model.table_rows},
                  {"row_bytes", m.model.row_bytes},
                  {"rows_of_batch", json_of(m.model.rows_of_batch)}};
  out["step_of_one_worker"] = json_of(m.alone);
  for (const Trial& t : m.trials) {
    out["trials"].push_back({{"strategy", entry_of(t.strategy).name},
                             {"workers", t.workers},
                             {"servers", t.servers},
                             {"batch", t.batch},
                             {"steps", t.steps},
                             {"step_seconds", t.step_s},
                             {"own_seconds", t.own_s},
                             {"longest_own_seconds", t.longest_own_s},
                             {"relative_error", t.error}});
  }
  return out;
}

}  // namespace

std::vector<std::string> settings_of(const Prediction& p) {
  const StrategyEntry& entry = entry_of(p.strategy);
  std::vector<std::string> settings = {fmt::format("trainer.sync=\"{}\"", entry.sync)};
  settings.push_back(fmt::format("roles.server.count={}", p.servers));
  if (entry.sparse) settings.emplace_back("trainer.embedding_gradients=\"sparse\"");
  if (entry.on_servers) settings.emplace_back("trainer.embedding_gradients=\"auto\"");
  return settings;
}

std::vector<std::string> toml_lines(const Prediction& p) {
  const StrategyEntry& entry = entry_of(p.strategy);
  std::vector<std::string> lines;
  if (entry.on_servers) {
    lines.insert(lines.end(), {"[roles.server]", fmt::format("count = {}", p.servers)});
  }
  lines.insert(lines.end(), {"[trainer]", fmt::format("sync = \"{}\"", entry.sync)});
  if (entry.sparse) lines.emplace_back("embedding_gradients = \"sparse\"");
  return lines;
}

std::vector<std::string> plan_lines(const Measured& m, const Plan& plan) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < plan.predictions.size(); ++i) {
    rows.push_back(row_of(plan.predictions[i], plan.recommended == i));
  }
  std::vector<std::string> lines = text_table(
      {"way", "servers#", "step#", "compute#", "exchange#", "waiting#", "samples/s#", ""}, rows);
  if (m.link) lines.push_back(link_line("slowest link", *m.link));
  if (m.domains) {
    if (m.domains->within) {
      lines.push_back(link_line("slowest link within a domain", *m.domains->within));
    }
    lines.push_back(link_line("slowest link between domains", m.domains->between));
  }
  if (plan.recommended) {
    const Prediction& chosen = plan.predictions[*plan.recommended];
    lines.push_back(fmt::format("recommended: {}", name_of(chosen)));
    for (const std::string& reason : plan.reasons) lines.push_back("  " + reason);
    lines.emplace_back("in job.toml:");
    for (const std::string& line : toml_lines(chosen)) lines.push_back("  " + line);
    if (!entry_of(chosen.strategy).on_servers) {
      lines.emplace_back("  (and no [roles.server])");
    }
  } else {
    for (const std::string& reason : plan.reasons) lines.push_back(reason);
  }
  for (const std::string& caveat : plan.caveats) lines.push_back("note: " + caveat);
  return lines;
}

nlohmann::ordered_json plan_json(const Measured& m, const Plan& plan) {
  nlohmann::ordered_json out = {{"schema", 1}, {"measured", json_of(m)}};
  out["predictions"] = nlohmann::ordered_json::array();
  for (const Prediction& p : plan.predictions) out["predictions"].push_back(json_of(p));
  if (plan.recommended) {
    const Prediction& chosen = plan.predictions[*plan.recommended];
    out["recommended"] = {{"strategy", entry_of(chosen.strategy).name},
                          {"sync", entry_of(chosen.strategy).sync},
                          {"servers", chosen.servers},
                          {"settings", settings_of(chosen)}};
  } else {
    out["recommended"] = nullptr;
  }
  out["reasons"] = plan.reasons;
  out["caveats"] = plan.caveats;
  return out;
}

}  // namespace antdt::launcher::plan
