#include "launcher/config/rules/pin_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "core/role_protocol.h"
#include "launcher/plan/strategies.h"
#include "launcher/start/paths.h"

namespace antdt::launcher {
namespace {

using Texts = std::vector<std::string>;

struct RecordRange {
  std::uint64_t from = 0, to = 0;
  std::string domain;
};

bool is_pinned(const JobConfig& config) { return config.data.pin == "domain"; }

std::string data_key(std::size_t domain) { return fmt::format("domain[{}].data", domain); }

std::optional<RecordRange> parse_range(const std::string& text, const std::string& domain) {
  RecordRange range{0, 0, domain};
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, range.from);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != ':') return {};
  const auto second = std::from_chars(first.ptr + 1, end, range.to);
  if (second.ec != std::errc() || second.ptr != end || range.from >= range.to) return {};
  return range;
}

// Assigns files, or records, to domains.
class Pinner {
 public:
  Pinner(const JobConfig& config, const PinProblem& problem) : c_(config), problem_(problem) {
    for (const Domain& domain : c_.domain) {
      Texts& full = patterns_.emplace_back();
      for (const std::string& pattern : domain.data) {
        full.push_back(absolute_path(pattern, c_.job.directory));
      }
      matched_.emplace_back(full.size(), false);
    }
  }

  [[nodiscard]] std::vector<PinnedPart> parts() {
    if (c_.data.format == "index") return records();
    files("train", "data.paths", c_.data.paths, c_.data.labels);
    const bool eval = std::ranges::any_of(
        c_.data.eval_paths, [&](const std::string& path) { return !domains_of(path).empty(); });
    // Evaluation files of no domain at all are read everywhere.
    if (eval) files("eval", "data.eval_paths", c_.data.eval_paths, c_.data.eval_labels);
    unmatched();
    return std::move(parts_);
  }

 private:
  std::vector<std::size_t> domains_of(const std::string& path) {
    std::vector<std::size_t> domains;
    for (std::size_t i = 0; i < patterns_.size(); ++i) {
      for (std::size_t k = 0; k < patterns_[i].size(); ++k) {
        if (::fnmatch(patterns_[i][k].c_str(), path.c_str(), FNM_PATHNAME) != 0) continue;
        matched_[i][k] = true;
        if (domains.empty() || domains.back() != i) domains.push_back(i);
      }
    }
    return domains;
  }

  void files(const std::string& split, const std::string& key, const Texts& paths,
             const Texts& labels) {
    for (std::size_t f = 0; f < paths.size(); ++f) {
      const auto domains = domains_of(paths[f]);
      if (domains.empty()) {
        problem_(key, fmt::format("'{}' is in no domain: with data.pin = \"domain\" each file must "
                                  "be in the data of one [[domain]]",
                                  paths[f]));
        continue;
      }
      if (domains.size() > 1) {
        problem_(data_key(domains[1]),
                 fmt::format("'{}' is in domain '{}' already: a file is in one domain only",
                             paths[f], c_.domain[domains[0]].name));
        continue;
      }
      const std::string& domain = c_.domain[domains.front()].name;
      const bool goes_on =
          !parts_.empty() && parts_.back().split == split && parts_.back().domain == domain;
      PinnedPart& part = goes_on ? parts_.back() : parts_.emplace_back();
      part.split = split;
      part.domain = domain;
      part.files.push_back(paths[f]);
      if (f < labels.size()) part.labels.push_back(labels[f]);
    }
  }

  void unmatched() {
    for (std::size_t i = 0; i < matched_.size(); ++i) {
      for (std::size_t k = 0; k < matched_[i].size(); ++k) {
        if (matched_[i][k]) continue;
        problem_(data_key(i), fmt::format("'{}' is none of the files of data.paths and "
                                          "data.eval_paths: correct it, or add the file there",
                                          patterns_[i][k]));
      }
    }
  }

  std::vector<PinnedPart> records() {
    std::vector<RecordRange> ranges;
    for (std::size_t i = 0; i < c_.domain.size(); ++i) {
      for (const std::string& text : c_.domain[i].data) {
        const auto range = parse_range(text, c_.domain[i].name);
        if (!range || range->to > c_.data.records) {
          problem_(data_key(i), fmt::format("'{}' is no range of records: write it as in "
                                            "\"0:5000\", at most to data.records, which is {}",
                                            text, c_.data.records));
          return {};
        }
        ranges.push_back(*range);
      }
    }
    std::ranges::sort(ranges, {}, &RecordRange::from);
    std::uint64_t end = 0;
    for (const RecordRange& range : ranges) {
      if (range.from > end) gap(end, range.from);
      if (range.from < end) {
        problem_("domain", fmt::format("records {}:{} are in domain '{}' and in '{}': a record is "
                                       "in one domain only",
                                       range.from, std::min(end, range.to), parts_.back().domain,
                                       range.domain));
      }
      end = std::max(end, range.to);
      parts_.push_back({"train", range.domain, range.to - range.from});
    }
    if (end < c_.data.records) gap(end, c_.data.records);
    return std::move(parts_);
  }

  void gap(std::uint64_t from, std::uint64_t to) {
    problem_("domain",
             fmt::format("records {}:{} are in no domain: with data.pin = \"domain\" each record "
                         "must be in the data of one [[domain]]",
                         from, to));
  }

  const JobConfig& c_;
  const PinProblem& problem_;
  std::vector<Texts> patterns_;             // by domain, absolute
  std::vector<std::vector<bool>> matched_;  // which of them name a file
  std::vector<PinnedPart> parts_;
};

bool has_data(const Domain& domain) { return !domain.data.empty() || !domain.described.empty(); }

}  // namespace

std::vector<PinnedPart> pinned_parts(const JobConfig& config, const PinProblem& problem) {
  if (!is_pinned(config)) return {};
  return Pinner(config, problem).parts();
}

std::string why_pins_are_not_planned(const JobConfig& config) {
  if (!is_pinned(config)) return "";
  return "with data.pin = \"domain\" no way of synchronisation can be tried, because the launching "
         "host has no workers of the other domains: name a way in trainer.sync, and compare the "
         "runs; antdt plan --from RUN tells what the way of an ended run cost";
}

void check_pins(const JobConfig& c, Problems& problems) {
  const auto needs = [&](bool fine, const char* key, const std::string& text) {
    if (!fine && !problems.has(key)) problems.add(key, text);
  };
  if (!is_pinned(c)) {
    for (std::size_t i = 0; i < c.domain.size(); ++i) {
      if (!has_data(c.domain[i])) continue;
      problems.add(c.domain[i].data.empty() ? fmt::format("domain[{}].described", i) : data_key(i),
                   "pins data to a domain: write data.pin = \"domain\" as well, or remove it");
    }
    return;
  }
  for (const char* key :
       {"data.format", "data.paths", "data.eval_paths", "data.records", "domain"}) {
    if (problems.has(key)) return;
  }
  needs(speaks(c.roles.worker.protocol, Protocol::kAntdt) && c.data.format != "none", "data.pin",
        "\"domain\" is for workers that get their records from the job; those of this job read "
        "their data by themselves");
  needs(c.data.encode != "vocabulary", "data.encode",
        "\"vocabulary\" needs all training data in one place, and data.pin = \"domain\" keeps them "
        "apart: use \"hash\"");
  needs(!c.control.share_steps, "control.share_steps",
        "lets workers compute records of their neighbours, which data.pin = \"domain\" forbids: "
        "remove one of them");
  needs(c.trainer.sync != plan::kAutoSync, "trainer.sync",
        "'auto': " + why_pins_are_not_planned(c));
  needs(std::ranges::any_of(c.domain, has_data), "data.pin",
        "\"domain\" needs to know what is where: write the data of each [[domain]]");
  for (std::size_t i = 0; i < c.domain.size(); ++i) {
    const Domain& domain = c.domain[i];
    if (domain.described.empty()) continue;
    const std::string key = fmt::format("domain[{}].described", i);
    needs(c.data.format != "index", key.c_str(),
          "is for files; the records of format \"index\" are told by domain[].data");
    needs(domain.data.empty(), key.c_str(),
          "and data both say what is in the domain: files that this host has go into data, and if "
          "it lacks some of them, describe them all");
  }
  if (problems.has("data.pin")) return;
  static_cast<void>(pinned_parts(
      c, [&](const std::string& key, const std::string& text) { problems.add(key, text); }));
}

std::string unfit_for_pins(const JobConfig& config,
                           const std::vector<std::string>& hosts_of_workers) {
  if (!is_pinned(config)) return "";
  const Domains domains(config.domain);
  std::set<std::string> with_data, with_workers;
  for (const Domain& domain : config.domain) {
    if (has_data(domain)) with_data.insert(domain.name);
  }
  for (std::size_t i = 0; i < hosts_of_workers.size(); ++i) {
    const WorkerId worker{'w', static_cast<std::uint32_t>(i)};
    const std::string domain = domains.of(worker, hosts_of_workers[i]);
    if (!with_data.contains(domain)) {
      return fmt::format(
          "data.pin: {} on {} is in {}, so it would never be given a record: name {} in the hosts "
          "or workers of a [[domain]] that has data, or use fewer workers",
          to_string(worker), hosts_of_workers[i],
          domain.empty() ? std::string("no domain")
                         : fmt::format("domain '{}' without data", domain),
          hosts_of_workers[i]);
    }
    with_workers.insert(domain);
  }
  for (const std::string& domain : with_data) {
    if (with_workers.contains(domain)) continue;
    return fmt::format(
        "data.pin: domain '{}' has data and no worker, so the job could never train them: the "
        "workers are on {}. Raise roles.worker.count, make room on a host of the domain, or name "
        "workers in it",
        domain, fmt::join(std::set(hosts_of_workers.begin(), hosts_of_workers.end()), ", "));
  }
  return "";
}

}  // namespace antdt::launcher
