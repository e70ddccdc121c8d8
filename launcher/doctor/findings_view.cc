#include "launcher/doctor/findings_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/os/net.h"
#include "launcher/doctor/judge.h"
#include "launcher/view/text_table.h"

namespace antdt::launcher {
namespace {

constexpr std::string_view kPlain = "\x1b[0m";

std::string_view colour_of(Level level) {
  switch (level) {
    case Level::kError:
      return "\x1b[1;31m";
    case Level::kWarning:
      return "\x1b[1;33m";
    case Level::kNote:
      return "\x1b[1;36m";
    case Level::kOk:
      return "\x1b[32m";
  }
  return "";
}

std::string level_text(Level level, bool colour) {
  const std::string_view name = name_of(level);
  return colour ? fmt::format("{}{}{}", colour_of(level), name, kPlain) : std::string(name);
}

// What hosts answer may be anything, and it must not control a terminal.
std::string line_of(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = ' ';
  }
  return text;
}

std::size_t count_of(const Findings& findings, Level level) {
  return static_cast<std::size_t>(std::ranges::count(findings, level, &Finding::level));
}

std::string short_name(const HostFacts& host) {
  return line_of(host.welcome && !host.welcome->host.empty() ? host.welcome->host : host.name);
}

// A larger matrix is wider than a terminal; each host then has one row with its worst links.
constexpr std::size_t kMatrixHosts = 12;

std::vector<std::size_t> linked_hosts(const Facts& facts) {
  std::vector<std::size_t> linked;
  for (std::size_t i = 0; i < facts.hosts.size(); ++i) {
    const auto has_it = [&](const LinkFacts& link) { return link.from == i || link.to == i; };
    if (std::ranges::any_of(facts.links, has_it)) linked.push_back(i);
  }
  return linked;
}

std::string bandwidth_cell(const LinkFacts& link) {
  return megabits(link) == 0 ? "fails" : fmt::format("{:.0f}", megabits(link));
}
std::string round_trip_cell(const LinkFacts& link) {
  return megabits(link) == 0 ? "fails" : fmt::format("{:.2f}", link.told.round_trip_us / 1e3);
}

template <class Cell>
void add_matrix(const Facts& facts, const std::string& title, Cell cell,
                std::vector<std::string>& lines) {
  std::vector<std::string> header{"from \\ to"};
  std::vector<std::vector<std::string>> rows;
  const std::vector<std::size_t> linked = linked_hosts(facts);
  for (const std::size_t i : linked) {
    header.push_back(short_name(facts.hosts[i]) + "#");
    rows.push_back({short_name(facts.hosts[i])});
    for (const std::size_t j : linked) {
      const auto link = std::ranges::find_if(
          facts.links, [&](const LinkFacts& l) { return l.from == i && l.to == j; });
      rows.back().push_back(link == facts.links.end() ? "-" : cell(*link));
    }
  }
  lines.push_back(title);
  for (const std::string& line : text_table(header, rows)) lines.push_back("  " + line);
}

// Median and least bandwidth of a host's links in one direction, and the other end of the slowest.
// A link that fails has a bandwidth of 0.
std::vector<std::string> worst_of(const Facts& facts, std::size_t host, std::size_t LinkFacts::*end,
                                  std::size_t LinkFacts::*other) {
  std::vector<const LinkFacts*> links;
  for (const LinkFacts& link : facts.links) {
    if (link.*end == host) links.push_back(&link);
  }
  if (links.empty()) return {"-", "-", "-"};
  std::ranges::sort(links, {}, [](const LinkFacts* link) { return megabits(*link); });
  return {bandwidth_cell(*links[links.size() / 2]), bandwidth_cell(*links.front()),
          short_name(facts.hosts[links.front()->*other])};
}

void add_host_rows(const Facts& facts, std::vector<std::string>& lines) {
  std::vector<std::vector<std::string>> rows;
  for (const std::size_t i : linked_hosts(facts)) {
    rows.push_back({short_name(facts.hosts[i])});
    for (auto& part : {worst_of(facts, i, &LinkFacts::from, &LinkFacts::to),
                       worst_of(facts, i, &LinkFacts::to, &LinkFacts::from)}) {
      rows.back().insert(rows.back().end(), part.begin(), part.end());
    }
    const LinkFacts* longest = nullptr;
    for (const LinkFacts& link : facts.links) {
      if (link.from == i && (!longest || link.told.round_trip_us > longest->told.round_trip_us)) {
        longest = &link;
      }
    }
    rows.back().push_back(longest ? round_trip_cell(*longest) : "-");
  }
  lines.emplace_back(
      "bandwidth of one connection, Mbit/s, and the longest round trip, ms (--json has each pair)");
  for (const std::string& line : text_table(
           {"host", "out median#", "least#", "to", "in median#", "least#", "from", "round trip#"},
           rows)) {
    lines.push_back("  " + line);
  }
}

nlohmann::ordered_json links_json(const Facts& facts) {
  nlohmann::ordered_json links = nlohmann::ordered_json::array();
  for (const LinkFacts& link : facts.links) {
    links.push_back(
        {{"from", facts.hosts[link.from].name},
         {"to", facts.hosts[link.to].name},
         {"megabits_per_second", megabits(link)},
         {"round_trip_us", link.told.round_trip_us},
         {"error", link.listen_error.empty() ? link.connect_error : link.listen_error}});
  }
  return links;
}

}  // namespace

std::vector<std::string> finding_lines(const Findings& findings, bool colour) {
  std::vector<std::string> lines;
  for (const Level level : {Level::kError, Level::kWarning, Level::kNote, Level::kOk}) {
    for (const Finding& finding : findings) {
      if (finding.level != level) continue;
      const std::string begin = fmt::format("{}: {}, {}", level_text(level, colour),
                                            line_of(finding.subject), finding.check);
      if (level == Level::kOk) {
        lines.push_back(
            fmt::format("{}: {}: {}", begin, line_of(finding.looked_at), line_of(finding.found)));
        continue;
      }
      lines.push_back(begin);
      lines.push_back("  looked at: " + line_of(finding.looked_at));
      lines.push_back("  found:     " + line_of(finding.found));
      lines.push_back("  matters:   " + line_of(finding.why));
      if (!finding.advice.empty()) lines.push_back("  do:        " + line_of(finding.advice));
    }
  }
  return lines;
}

std::vector<std::string> link_lines(const Facts& facts) {
  std::vector<std::string> lines;
  if (facts.links.empty()) return lines;
  if (linked_hosts(facts).size() > kMatrixHosts) {
    add_host_rows(facts, lines);
    return lines;
  }
  add_matrix(facts, "bandwidth of one connection, Mbit/s", bandwidth_cell, lines);
  add_matrix(facts, "round trip, ms", round_trip_cell, lines);
  return lines;
}

std::string count_line(const Findings& findings) {
  const auto some = [&](Level level, const char* what) {
    const std::size_t count = count_of(findings, level);
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  };
  return fmt::format("{}, {}, {}; {} well", some(Level::kError, "error"),
                     some(Level::kWarning, "warning"), some(Level::kNote, "note"),
                     some(Level::kOk, "check"));
}

std::string findings_json(const Facts& facts, const Findings& findings) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"level", name_of(finding.level)},
                    {"subject", finding.subject},
                    {"check", finding.check},
                    {"looked_at", finding.looked_at},
                    {"found", finding.found},
                    {"why", finding.why},
                    {"advice", finding.advice}});
  }
  const nlohmann::ordered_json out = {{"errors", count_of(findings, Level::kError)},
                                      {"warnings", count_of(findings, Level::kWarning)},
                                      {"findings", list},
                                      {"links", links_json(facts)}};
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

bool has(const Findings& findings, Level level) { return count_of(findings, level) > 0; }

}  // namespace antdt::launcher
