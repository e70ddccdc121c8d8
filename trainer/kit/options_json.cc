#include "trainer/kit/options_json.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace antdt::trainer {
namespace {

using Json = nlohmann::json;
using kit::Options;

Result<Options::Value> value_of(const std::string& key, const Json& json) {
  const auto all = [&](auto is_kind) { return std::ranges::all_of(json, is_kind); };
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  if (json.is_array()) {
    if (all([](const Json& item) { return item.is_number_integer(); })) {
      return json.get<Options::Integers>();
    }
    if (all([](const Json& item) { return item.is_number(); })) {
      return json.get<Options::Numbers>();
    }
    if (all([](const Json& item) { return item.is_string(); })) return json.get<Options::Texts>();
  }
  return fail(ErrorKind::kUsage,
              "[user] {} is {}: a program made with the C++ kit reads strings, numbers, booleans, "
              "lists of numbers and lists of strings",
              key, json.dump());
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

Result<Options> parse_options(const std::string& config_json) {
  const Json job = Json::parse(config_json, nullptr, false);
  std::map<std::string, Options::Value> values;
  const auto user = job.is_object() ? job.find("user") : job.end();
  if (user == job.end()) return Options();
  for (const auto& [key, json] : user->items()) {
    ANTDT_TRY(values[key], value_of(key, json));
  }
  return Options(std::move(values));
}

Status all_read(const Options& options) {
  const std::vector<std::string> unread = options.unread();
  if (unread.empty()) return {};
  const std::vector<std::string> known = options.known();
  return fail(ErrorKind::kUsage,
              "[user] has {}, which the program does not read with these settings{}: remove it, or "
              "correct its name",
              joined(unread),
              known.empty() ? ", and it reads none" : "; it reads " + joined(known));
}

}  // namespace antdt::trainer
