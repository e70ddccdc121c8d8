#include "launcher/commands/run/grow.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "core/role_protocol.h"
#include "ctl/membership/data_identity.h"
#include "trainer/data/content/points.h"
#include "trainer/data/index/index.h"
#include "trainer/data/index/mapped_file.h"

namespace antdt::cli {
namespace {

using Files = std::vector<wire::DataFile>;

constexpr const char* kOnlyAdded =
    "--grow is for data to which records were only added: files after the old ones, or lines at "
    "the end of the last old file";

Files of_split(const jobd::DataFound& data, std::string_view split) {
  Files files;
  std::ranges::copy_if(data.files, std::back_inserter(files),
                       [&](const wire::DataFile& file) { return file.split == split; });
  return files;
}

Status other_content(const wire::DataFile& file) {
  return fail(ErrorKind::kUsage, "{}: what the run began with is not there any more. {}", file.path,
              kOnlyAdded);
}

// The first `old.bytes` bytes of `now` are those of `old`, and end with a line.
Status check_lines_added(const wire::DataFile& old, const wire::DataFile& now) {
  if (now.bytes <= old.bytes || now.records < old.records || old.bytes == 0) {
    return other_content(now);
  }
  ANTDT_TRY(const data::MappedFile file, data::MappedFile::open(now.path));
  file.expect_sequential();
  const std::string_view before = file.bytes().substr(0, old.bytes);
  if (data::fingerprint_of(before) != old.fingerprint) return other_content(now);
  ANTDT_TRY(const data::Packing packing, data::packing_of(now.path, before));
  if (packing != data::Packing::kPlain) {
    return fail(ErrorKind::kUsage,
                "{}: nothing can be added to a packed file. Put the old file back, and the new "
                "records into a file of their own",
                now.path);
  }
  if (before.ends_with('\n')) return {};
  return fail(ErrorKind::kUsage,
              "{}: the run began with a file whose last line had no end, and what was added may "
              "belong to that line. Put the old file back, and the new records into a file of "
              "their own",
              now.path);
}

Status check_train(const Files& before, const Files& now) {
  if (now.size() < before.size()) return other_content(before.back());
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (ctl::same_file(before[i], now[i])) continue;
    // Records behind a file that is not the last would get other numbers.
    if (i + 1 != before.size()) return other_content(now[i]);
    ANTDT_RETURN_IF_ERROR(check_lines_added(before[i], now[i]));
  }
  return {};
}

Status check_job(const launcher::JobConfig& config, const jobd::DataFound& before,
                 const jobd::DataFound& now) {
  if (!speaks(config.roles.worker.protocol, Protocol::kAntdt)) {
    return fail(ErrorKind::kUsage,
                "--grow is for workers that get their records from the job; those of this job read "
                "their data by themselves");
  }
  if (config.data.encode == "vocabulary") {
    return fail(ErrorKind::kUsage,
                "--grow: with data.encode = \"vocabulary\" more records make another vocabulary, "
                "for which the model has no rows. Data that grow need \"hash\"");
  }
  if (!before.built_by.empty() && before.built_by != now.built_by) {
    return fail(ErrorKind::kUsage,
                "--grow: the run's records were made by \"{}\", and now by \"{}\"; use the release "
                "of AntDT with which the run began",
                before.built_by, now.built_by);
  }
  const Files was = of_split(before, "eval"), is = of_split(now, "eval");
  if (before.eval_records != now.eval_records || !std::ranges::equal(was, is, ctl::same_file)) {
    return fail(ErrorKind::kUsage,
                "--grow is for training data; the evaluation data must stay as they were, or "
                "evaluations could not be compared");
  }
  if (now.train_records < before.train_records) {
    return fail(ErrorKind::kUsage, "the training data have {} records, fewer than before ({}). {}",
                now.train_records, before.train_records, kOnlyAdded);
  }
  return {};
}

}  // namespace

Result<std::string> grown_data(const launcher::JobConfig& config, const jobd::DataFound& before,
                               const jobd::DataFound& now, const std::string& now_text) {
  ANTDT_RETURN_IF_ERROR(check_job(config, before, now));
  const Files was = of_split(before, "train"), is = of_split(now, "train");
  if (was.empty() != is.empty()) {
    return fail(ErrorKind::kUsage,
                "--grow: the run's data.json lists no files, so nobody can say "
                "what was added to them");
  }
  if (!was.empty()) ANTDT_RETURN_IF_ERROR(check_train(was, is));
  nlohmann::ordered_json grown = nlohmann::ordered_json::parse(now_text);
  grown["began_with"] = before.began_with != 0 ? before.began_with : before.train_records;
  return grown.dump(2) + "\n";
}

}  // namespace antdt::cli
