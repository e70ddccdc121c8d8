#include "core/schema/job_reader.h"

#include <utility>

#include "core/check.h"
#include "core/schema/units.h"

namespace antdt::schema {

using Json = nlohmann::json;
namespace {

// Null if there is none. Something that is not an object contains no keys.
const Json* entry(const Json& json, const std::string& name) {
  const auto found = json.is_object() ? json.find(name) : json.end();
  return found == json.end() ? nullptr : &*found;
}

}  // namespace

Json default_value(const Key& key) {
  if (key.fallback.empty() || key.type == KeyType::kCount) return nullptr;
  // Values of these types are written alike in TOML and JSON.
  Json value = Json::parse(key.fallback);
  if (key.type == KeyType::kMicroseconds || key.type == KeyType::kMilliseconds) {
    const auto us = parse_duration(value.get<std::string>());
    ANTDT_CHECK(us.has_value(), "the default of {} is no time", key.path);
    return key.type == KeyType::kMicroseconds ? us->count() : us->count() / 1000;
  }
  if (key.type == KeyType::kSize) {
    const auto bytes = parse_size(value.get<std::string>());
    ANTDT_CHECK(bytes.has_value(), "the default of {} is no size", key.path);
    return *bytes;
  }
  return value;
}

JobReader::JobReader(const std::string& config_json)
    : job_(Json::parse(config_json, nullptr, /*allow_exceptions=*/false)) {
  if (job_.is_discarded()) {
    status_ = fail(ErrorKind::kUsage, "cannot read the job's configuration: it is no JSON");
  }
}

void JobReader::read_largest(std::string_view path, std::uint32_t& value) {
  read(path, value);
  const Json* const section = section_of(path);
  const Json* const max = section == nullptr ? nullptr : entry(*section, "max");
  if (max != nullptr) convert(path, *max, value);
}

const Json* JobReader::section_of(std::string_view path) const {
  const Json* at = scope_.json;
  std::string_view rest = parent(path.substr(scope_.skip));
  while (at != nullptr && !rest.empty()) {
    const std::size_t dot = rest.find('.');
    at = entry(*at, std::string(rest.substr(0, dot)));
    rest = dot == std::string_view::npos ? std::string_view() : rest.substr(dot + 1);
  }
  return at;
}

Json JobReader::value_of(std::string_view path) {
  const Key* key = find_key(path);
  ANTDT_CHECK(key != nullptr, "no key of job.toml is called {}", path);
  const Json* at = section_of(path);
  if (at != nullptr) at = entry(*at, json_name(*key));
  if (at != nullptr && !at->is_null()) return *at;
  if (key->fallback.empty()) problem(path, "it is missing");
  return default_value(*key);
}

void JobReader::problem(std::string_view path, std::string_view what) {
  if (!status_) return;
  status_ = fail(ErrorKind::kUsage, "cannot read {} of the job's configuration: {}", path, what);
}

}  // namespace antdt::schema
