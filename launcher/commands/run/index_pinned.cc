#include "launcher/commands/run/index_pinned.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <utility>

#include "core/os/fs.h"
#include "jobd/programs/job_spec.h"
#include "launcher/config/rules/pin_checks.h"
#include "launcher/start/paths.h"
#include "trainer/data/index/index.h"
#include "trainer/data/index/index_build.h"

namespace antdt::cli {
namespace {

using Files = std::vector<wire::DataFile>;

std::string_view split_name(data::Split split) {
  return split == data::Split::kTrain ? "train" : "eval";
}

// Collects what is found in each domain.
class PinnedIndexer {
 public:
  explicit PinnedIndexer(const launcher::JobConfig& config) : config_(config) {
    // The launcher checked the configuration when it read it.
    config_.pins.parts = launcher::pinned_parts(config, [](const auto&, const auto&) {});
    for (const Domain& domain : config.domain) config_.pins.domains.push_back(domain.name);
  }

  Result<PinnedIndex> run() {
    PinnedIndex found;
    if (config_.data.format == "index") {
      ANTDT_TRY(found.train, built(data::Split::kTrain, ""));
      ANTDT_TRY(found.eval, built(data::Split::kEval, ""));
    } else {
      ANTDT_RETURN_IF_ERROR(find_all(found));
    }
    config_.pins.domains.clear();
    for (const Domain& domain : config_.domain) {
      const std::uint64_t records = config_.pins.records_of("train", domain.name) +
                                    config_.pins.records_of("eval", domain.name);
      if (records > 0) config_.pins.domains.push_back(domain.name);
    }
    std::erase_if(config_.pins.parts, [](const PinnedPart& part) { return part.records == 0; });
    found.pins = std::move(config_.pins);
    return found;
  }

 private:
  Result<data::DataSummary> built(data::Split split, const std::string& domain) {
    return data::build_index(launcher::to_json(config_), split, "", domain);
  }

  Status find_all(PinnedIndex& found) {
    for (const Domain& domain : config_.domain) {
      if (!domain.described.empty()) {
        ANTDT_RETURN_IF_ERROR(read_description(domain));
        continue;
      }
      for (const data::Split split : {data::Split::kTrain, data::Split::kEval}) {
        if (!config_.pins.has(split_name(split))) continue;
        ANTDT_TRY(const data::DataSummary own, built(split, domain.name));
        ANTDT_RETURN_IF_ERROR(add(own, domain.name));
      }
    }
    if (!config_.pins.has("eval") && !config_.data.eval_paths.empty()) {
      ANTDT_TRY(const data::DataSummary all, built(data::Split::kEval, ""));
      ANTDT_RETURN_IF_ERROR(add(all, ""));
      found.eval = all;
    }
    count("train", found.train);
    if (config_.pins.has("eval")) count("eval", found.eval);
    return {};
  }

  // The labels of all domains must be counted alike. `domain`: "" for files that all have.
  Status add(const data::DataSummary& own, const std::string& domain) {
    if (own.files.empty()) return {};
    const std::string where =
        domain.empty() ? "the evaluation data" : fmt::format("domain '{}'", domain);
    if (own.named_classes) {
      return fail(ErrorKind::kUsage,
                  "data.pin: the labels of {} are names, which are numbered in the order in which "
                  "the files have them, and no host has all files: write numbers from 0",
                  where);
    }
    const bool to_predict = own.classes == 1;
    std::uint32_t& classes = config_.pins.classes;
    if (classes != 0 && (classes == 1) != to_predict) {
      return fail(ErrorKind::kUsage,
                  "data.pin: the labels of {} are {}, and those of others are not: make them alike",
                  where, to_predict ? "numbers to predict" : "classes");
    }
    classes = std::max(classes, own.classes);
    if (!built_by_.empty() && own.built_by != built_by_) {
      return fail(ErrorKind::kUsage,
                  "data.pin: the records of {} were made by \"{}\", and those of others by \"{}\": "
                  "describe them with the same release of AntDT and the same options of [data]",
                  where, own.built_by, built_by_);
    }
    built_by_ = own.built_by;
    quarantined_ += own.quarantined;
    for (const wire::DataFile& file : own.files) files_[{file.split, file.path}] = file;
    return {};
  }

  // What `antdt data index JOB --json` wrote on a host of the domain.
  Status read_description(const Domain& domain) {
    const std::string path = launcher::absolute_path(domain.described, config_.job.directory);
    ANTDT_TRY(const std::string text, read_file(path));
    ANTDT_TRY(const jobd::DataFound there, jobd::data_found(text, path));
    data::DataSummary own;
    own.classes = there.classes;
    own.named_classes = there.named_classes;
    own.built_by = there.built_by;
    PinnedPart part{"train", domain.name};
    for (const wire::DataFile& file : there.files) {
      if (file.split != "train") continue;
      const bool labels = config_.data.format == "idx" && own.files.size() % 2 == 1;
      (labels ? part.labels : part.files).push_back(file.path);
      own.files.push_back(file);
    }
    if (own.files.empty() || own.classes == 0) {
      return fail(ErrorKind::kUsage,
                  "{} describes no training files of domain '{}': write it by antdt data index JOB "
                  "--json on a host of the domain",
                  path, domain.name);
    }
    for (const PinnedPart& other : config_.pins.parts) {
      for (const std::string& file : part.files) {
        if (std::ranges::find(other.files, file) == other.files.end()) continue;
        return fail(ErrorKind::kUsage,
                    "{}: '{}' is in domain '{}' already. If it is another file that has the same "
                    "path on another host, give it another path",
                    path, file, other.domain);
      }
    }
    config_.pins.parts.push_back(std::move(part));
    return add(own, domain.name);
  }

  // Numbers the records of all parts, and adds their files to the summary.
  void count(const std::string& split, data::DataSummary& all) {
    std::string bytes;
    for (PinnedPart& part : config_.pins.parts) {
      if (part.split != split) continue;
      part.records = 0;
      for (std::size_t i = 0; i < part.files.size(); ++i) {
        add_file(files_.at({split, part.files[i]}), part, all, bytes);
        if (i < part.labels.size()) add_file(files_.at({split, part.labels[i]}), part, all, bytes);
      }
    }
    all.fingerprint = data::fingerprint_of(bytes);
    all.built_by = built_by_;
    all.classes = config_.pins.classes;
    if (split == "train") all.quarantined = quarantined_;
  }

  static void add_file(const wire::DataFile& file, PinnedPart& part, data::DataSummary& all,
                       std::string& bytes) {
    part.records += file.records;
    all.records += file.records;
    all.files.push_back(file);
    all.detail += fmt::format("{}{}: {} bytes, xxh3 {}", all.detail.empty() ? "" : "; ", file.path,
                              file.bytes, file.fingerprint);
    bytes += fmt::format("{} {} {}\n", part.domain, file.bytes, file.fingerprint);
  }

  launcher::JobConfig config_;
  std::map<std::pair<std::string, std::string>, wire::DataFile> files_;  // by split and path
  std::string built_by_;
  std::uint64_t quarantined_ = 0;
};

// The parts of a split as runs of one domain each.
std::vector<std::pair<std::string, std::uint64_t>> runs_of(const PinnedData& pins,
                                                           std::string_view split) {
  std::vector<std::pair<std::string, std::uint64_t>> runs;
  for (const PinnedPart& part : pins.parts) {
    if (part.split != split) continue;
    if (!runs.empty() && runs.back().first == part.domain) {
      runs.back().second += part.records;
    } else {
      runs.emplace_back(part.domain, part.records);
    }
  }
  return runs;
}

}  // namespace

Result<PinnedIndex> index_pinned(const launcher::JobConfig& config) {
  return PinnedIndexer(config).run();
}

Status check_pins_kept(const PinnedData& before, const PinnedData& now) {
  const auto was = runs_of(before, "train"), is = runs_of(now, "train");
  bool kept =
      before.empty() == now.empty() && before.domains.size() <= now.domains.size() &&
      std::ranges::equal(
          before.domains,
          std::span(now.domains).first(std::min(before.domains.size(), now.domains.size()))) &&
      was.size() <= is.size() && runs_of(before, "eval") == runs_of(now, "eval");
  for (std::size_t i = 0; kept && i < was.size(); ++i) {
    const bool last = i + 1 == was.size();
    kept = was[i].first == is[i].first &&
           (last ? was[i].second <= is[i].second : was[i].second == is[i].second);
  }
  if (kept) return {};
  return fail(ErrorKind::kUsage,
              "the run's records are pinned to domains as they were when it began: data.pin, the "
              "order of [[domain]], and the data of each must stay. Workers and hosts of domains "
              "may change");
}

}  // namespace antdt::cli
