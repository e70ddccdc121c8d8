#include "trainer/torch/state_file.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "core/json_integer.h"

namespace antdt::trainer {
namespace {

using Json = nlohmann::json;

Json describe(const StateCounters& counters, const std::vector<StateEntry>& entries,
              const std::vector<StateArray>& arrays) {
  Json json{{"schema", 1},
            {"step", counters.step.value},
            {"optimizer_steps", counters.optimizer_steps},
            {"floats", arrays.empty() ? 0 : arrays.front().values.size()},
            {"arrays", Json::array()},
            {"parameters", Json::array()}};
  for (const StateArray& array : arrays) json["arrays"].push_back(array.name);
  for (const StateEntry& entry : entries) {
    json["parameters"].push_back(
        {{"name", entry.name}, {"sizes", entry.sizes}, {"first", entry.first}});
  }
  return json;
}

}  // namespace

std::vector<StateFile> state_files(const StateCounters& counters,
                                   const std::vector<StateEntry>& entries,
                                   const std::vector<StateArray>& arrays) {
  StateFile data{"state.bin"};
  for (const StateArray& array : arrays) data.parts.push_back(std::as_bytes(array.values));
  return {std::move(data), {"state.json", describe(counters, entries, arrays).dump(1)}};
}

Result<StateCounters> read_state(CheckpointReader& files, const std::vector<StateEntry>& entries,
                                 const std::vector<StateArray>& arrays) {
  const std::string& directory = files.directory();
  ANTDT_TRY(const std::string text, files.text("state.json"));
  const Json found = Json::parse(text, nullptr, false);
  StateCounters counters;
  try {
    counters = {Step{json_integer<std::uint64_t>(found.at("step"))},
                json_integer<std::uint64_t>(found.at("optimizer_steps"))};
  } catch (const Json::exception& e) {
    return fail(ErrorKind::kCorrupt, "{}/state.json cannot be read: {}", directory, e.what());
  }
  if (found != describe(counters, entries, arrays)) {
    return fail(ErrorKind::kCorrupt,
                "the state in {} is of another model or optimizer: resume with the [trainer] "
                "section that it was written with",
                directory);
  }
  std::vector<std::span<std::byte>> parts;
  for (const StateArray& array : arrays) parts.push_back(std::as_writable_bytes(array.values));
  ANTDT_RETURN_IF_ERROR(files.into("state.bin", parts));
  return counters;
}

}  // namespace antdt::trainer
