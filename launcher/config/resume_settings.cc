#include "launcher/config/resume_settings.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <sstream>
#include <utility>

#include "core/os/fs.h"
#include "core/schema/keys.h"

namespace antdt::launcher {
namespace {

struct Rule {
  std::string_view prefix;  // prefix of keys; the longest match counts
  std::string_view why;     // why it is fixed; empty: it may change
};

constexpr std::array kRules = {
    Rule{"failure", ""},
    Rule{"checkpoint", ""},
    Rule{"control", ""},
    Rule{"cluster", ""},
    Rule{"logs", ""},
    Rule{"metrics", ""},
    Rule{"hooks", ""},
    Rule{"domain", ""},
    Rule{"roles.worker.resources", ""},
    Rule{"roles.server.resources", ""},
    Rule{"trainer.lr", ""},
    Rule{"trainer.collective", ""},
    Rule{"trainer.gaia", ""},  // a checkpoint holds a model with nothing pending
    Rule{"cluster.store", "the journal that the run goes on from is there"},
    Rule{"cluster.store_prefix", "the journal that the run goes on from is below it"},
    Rule{"schema", "it says how the file is read, and the file has been read"},
    Rule{"job", "name, epochs and seed say which records come when, and the journal goes by them"},
    Rule{"roles",
         "the programs, and how many there are, are those that the journal knows; antdt "
         "resize RUN N changes their number once the run goes on"},
    Rule{"data", "records are known by number, and other files or options would number others so"},
    Rule{"batch",
         "the plan in the journal divides the global batch, and the training is what it is "
         "by that batch"},
    Rule{"trainer", "the checkpoint holds the state of this model, optimizer and sync"},
    Rule{"user", "the program has made its model and its data by it"},
    Rule{"device",
         "what workers compute on was said when the run began, and its measurements go by "
         "it"},
    Rule{"emulated", "the emulated devices are a part of what the run trains"},
    Rule{"inject", "antdt inject RUN begins a drill in a run that trains"},
};

bool is_below(std::string_view key, std::string_view prefix) {
  return key.starts_with(prefix) &&
         (key.size() == prefix.size() || key[prefix.size()] == '.' || key[prefix.size()] == '[');
}

// What says where the data are, and how many records they have.
constexpr std::array<std::string_view, 3> kOfGrowingData = {"data.paths", "data.labels",
                                                            "data.records"};

Status check_key(std::string_view key, bool data_grow) {
  const std::string_view why = why_fixed(key);
  if (why.empty()) return {};
  if (data_grow && std::ranges::find(kOfGrowingData, key) != kOfGrowingData.end()) return {};
  return fail(ErrorKind::kUsage, "--set {}: a run that is resumed cannot change this: {}", key,
              why);
}

// Every key with its value, as in effective.toml; tables of a list are numbered.
std::map<std::string, std::string> values_of(const JobConfig& config) {
  std::map<std::string, std::string> values;
  std::map<std::string, int> items;
  std::istringstream lines(to_toml(config));
  std::string section;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("[[")) {
      const std::string list = line.substr(2, line.size() - 4);
      section = fmt::format("{}[{}].", list, items[list]++);
    } else if (line.starts_with("[")) {
      section = line.substr(1, line.size() - 2) + ".";
    } else if (const std::size_t equals = line.find(" = "); equals != std::string::npos) {
      if (!line.starts_with("#"))
        values[section + line.substr(0, equals)] = line.substr(equals + 3);
    }
  }
  return values;
}

std::vector<ChangedSetting> differences(const JobConfig& before, const JobConfig& after) {
  const auto was = values_of(before);
  const auto is = values_of(after);
  std::vector<ChangedSetting> changes;
  for (const auto& [key, value] : is) {
    const auto old = was.find(key);
    if (old != was.end() && old->second == value) continue;
    changes.push_back({key, old == was.end() ? "" : old->second, value});
  }
  for (const auto& [key, value] : was) {
    if (!is.contains(key)) changes.push_back({key, value, ""});
  }
  return changes;
}

}  // namespace

std::string_view why_fixed(std::string_view key) {
  const Rule* best = nullptr;
  for (const Rule& rule : kRules) {
    if (is_below(key, rule.prefix) && (best == nullptr || best->prefix.size() < rule.prefix.size()))
      best = &rule;
  }
  return best == nullptr ? "it is no key of job.toml" : best->why;
}

Result<ChangedConfig> change_settings(const JobConfig& before,
                                      const std::vector<std::string>& overrides, bool data_grow) {
  for (const std::string& text : overrides) {
    const std::string key = text.substr(0, text.find('='));
    if (schema::find_key(key) == nullptr && !schema::is_section(key))
      continue;  // the reader will suggest the key that was meant
    ANTDT_RETURN_IF_ERROR(check_key(key, data_grow));
  }
  ChangedConfig changed;
  const std::string path = before.job.directory + "/effective.toml";
  ANTDT_TRY(changed.config, load_text(to_toml(before), path, overrides));
  // What no key contains: the id of the run, and the count within { min, max }.
  changed.config.job.id = before.job.id;
  changed.config.roles.worker.count = before.roles.worker.count;
  changed.changes = differences(before, changed.config);
  // A whole table may have been given.
  for (const ChangedSetting& change : changed.changes) {
    ANTDT_RETURN_IF_ERROR(check_key(change.key, data_grow));
  }
  return changed;
}

Status write_effective(const std::string& run_dir, const JobConfig& config) {
  const auto path = [&](const std::string& name, const std::string& number, const char* ending) {
    return run_dir + "/" + name + number + ending;
  };
  int number = 1;
  const auto aside = [&] { return fmt::format(".{}", number); };
  while (::access(path("job", aside(), ".json").c_str(), F_OK) == 0) ++number;
  for (const auto& [name, ending] : {std::pair("effective", ".toml"), std::pair("job", ".json")}) {
    ANTDT_TRY(const std::string old, read_file(path(name, "", ending)));
    ANTDT_RETURN_IF_ERROR(write_file_atomic(path(name, aside(), ending), old, 0600));
  }
  ANTDT_RETURN_IF_ERROR(write_file_atomic(path("effective", "", ".toml"), to_toml(config), 0600));
  return write_file_atomic(path("job", "", ".json"), to_json(config), 0600);
}

std::string text_of(const std::vector<ChangedSetting>& changes) {
  std::string text;
  for (const ChangedSetting& c : changes) {
    text +=
        fmt::format("{}{} from {} to {}", text.empty() ? "" : ", ", c.key,
                    c.before.empty() ? "nothing" : c.before, c.after.empty() ? "nothing" : c.after);
  }
  return text;
}

}  // namespace antdt::launcher
