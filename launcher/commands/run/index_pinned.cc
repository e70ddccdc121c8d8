#include "launcher/commands/run/index_pinned.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "core/os/fs.h"
#include "jobd/programs/described_data.h"
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
    ANTDT_TRY(jobd::DescribedData described,
              jobd::described_data(there, config_.data.format, domain.name, path));
    data::DataSummary own;
    own.classes = there.classes;
    own.named_classes = there.named_classes;
    own.built_by = there.built_by;
    own.files = std::move(described.files);
    ANTDT_RETURN_IF_ERROR(check_new(own.files, path));
    config_.pins.parts.push_back(std::move(described.part));
    return add(own, domain.name);
  }

  // Files are known by their paths.
  Status check_new(const Files& files, const std::string& path) const {
    std::map<std::string_view, std::string_view> domains;  // by path
    for (const PinnedPart& part : config_.pins.parts) {
      if (part.split != "train") continue;
      for (const std::string& file : part.files) domains.emplace(file, part.domain);
      for (const std::string& file : part.labels) domains.emplace(file, part.domain);
    }
    for (const wire::DataFile& file : files) {
      const auto other = domains.find(file.path);
      if (other == domains.end()) continue;
      return fail(ErrorKind::kUsage,
                  "{}: '{}' is in domain '{}' already. If it is another file that has the same "
                  "path on another host, give it another path",
                  path, file.path, other->second);
    }
    return {};
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

}  // namespace

Result<PinnedIndex> index_pinned(const launcher::JobConfig& config) {
  return PinnedIndexer(config).run();
}

Status check_pins_kept(const PinnedData& before, const PinnedData& now) {
  const shard_server::Pins evaluated = jobd::pins_of(before, "eval");
  const shard_server::Pins evaluates = jobd::pins_of(now, "eval");
  // The domains of the evaluation may have got new names, but no records.
  if (jobd::pins_of(now, "train").extend(jobd::pins_of(before, "train")) &&
      evaluates.extend(evaluated) && evaluates.records() == evaluated.records()) {
    return {};
  }
  return fail(ErrorKind::kUsage,
              "the run's records are pinned to domains as they were when it began: data.pin, the "
              "order of [[domain]], and the data of each must stay, and a new [[domain]] comes "
              "last. Workers and hosts of domains may change");
}

}  // namespace antdt::cli
