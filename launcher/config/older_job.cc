#include "launcher/config/older_job.h"

#include "core/schema/keys.h"
#include "launcher/config/toml_reader.h"

namespace antdt::launcher {

namespace {

using Json = nlohmann::ordered_json;

// A value of another type than the default is left for the reader to judge.
void add_missing(Json& json, const Json& defaults) {
  if (!json.is_object()) return;
  for (const auto& [name, value] : defaults.items()) {
    if (const auto it = json.find(name); it == json.end()) {
      json[name] = value;
    } else if (value.is_object()) {
      add_missing(*it, value);
    }
  }
}

// The value of a key in `json`, or null.
Json* find(Json& json, std::string_view path) {
  Json* at = &json;
  while (!path.empty()) {
    const std::size_t dot = path.find('.');
    const auto it = at->is_object() ? at->find(std::string(path.substr(0, dot))) : at->end();
    if (it == at->end()) return nullptr;
    at = &*it;
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  return at;
}

}  // namespace

void rename_older_keys(toml::table& root, Problems& problems) {
  for (const std::string role : {"worker", "server"}) {
    toml::table* const resources = root.at_path("roles." + role + ".resources").as_table();
    toml::node* const older = resources == nullptr ? nullptr : resources->get("devices");
    if (older == nullptr) continue;
    const std::string path = "roles." + role + ".resources.gpus";
    if (resources->contains("gpus")) {
      problems.add(path, "is also written as 'devices', which is its older name: keep this one");
    } else {
      older->visit([&](auto& value) { resources->insert("gpus", std::move(value)); });
    }
    resources->erase("devices");
  }
}

void add_missing_keys(Json& job) {
  for (const char* role : {"worker", "server"}) {
    Json* const resources = find(job, std::string("roles.") + role + ".resources");
    if (resources == nullptr || !resources->contains("devices")) continue;
    (*resources)["gpus"] = (*resources)["devices"];
    resources->erase("devices");
  }
  Json defaults = default_values("");
  // What derive() would compute, for a job of a release without servers.
  Json& server = defaults["roles"]["server"];
  server["min"] = server["max"] = server["count"];
  server["protocol"] = "antdt";
  server["restart"] = "member";
  server["trace"] = true;
  add_missing(job, defaults);
  for (const schema::Key& key : schema::keys()) {
    if (key.type != schema::KeyType::kTables) continue;
    Json* list = find(job, key.path);
    if (list == nullptr || !list->is_array()) continue;
    const Json item_defaults = default_values(std::string(key.path) + "[0]");
    for (Json& item : *list) add_missing(item, item_defaults);
  }
}

}  // namespace antdt::launcher
