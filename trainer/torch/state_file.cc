#include "trainer/torch/state_file.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "core/json_integer.h"

namespace antdt::trainer {
namespace {

using Json = nlohmann::json;

Json describe(const StateCounters& counters, const std::vector<StateEntry>& entries,
              const std::vector<StateArray>& arrays, const std::vector<StateBuffer>& buffers) {
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
  if (buffers.empty()) return json;
  json["buffers"] = Json::array();
  std::size_t first = 0;
  for (const StateBuffer& buffer : buffers) {
    json["buffers"].push_back({{"name", buffer.name},
                               {"dtype", buffer.dtype},
                               {"sizes", buffer.sizes},
                               {"first", first}});
    first += buffer.bytes.size();
  }
  return json;
}

}  // namespace

std::vector<StateEntry> layout(const FlatParameters& parameters) {
  std::vector<StateEntry> entries;
  for (const FlatParameters::Entry& entry : parameters.entries()) {
    entries.push_back({entry.name, entry.parameter.sizes().vec(), entry.first});
  }
  return entries;
}

std::vector<StateFile> state_files(const StateCounters& counters,
                                   const std::vector<StateEntry>& entries,
                                   const std::vector<StateArray>& arrays,
                                   const std::vector<StateBuffer>& buffers) {
  StateFile data{"state.bin"};
  for (const StateArray& array : arrays) data.parts.push_back(std::as_bytes(array.values));
  std::vector<StateFile> files{
      std::move(data), {"state.json", describe(counters, entries, arrays, buffers).dump(1)}};
  if (buffers.empty()) return files;
  StateFile& beside = files.emplace_back(StateFile{"buffers.bin"});
  for (const StateBuffer& buffer : buffers) beside.parts.push_back(buffer.bytes);
  return files;
}

Result<StateCounters> read_state(CheckpointReader& files, const std::vector<StateEntry>& entries,
                                 const std::vector<StateArray>& arrays,
                                 const std::vector<StateBuffer>& buffers) {
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
  if (found != describe(counters, entries, arrays, buffers)) {
    return fail(ErrorKind::kCorrupt,
                "the state in {} is of another model or optimizer: resume with the [trainer] "
                "section that it was written with",
                directory);
  }
  std::vector<std::span<std::byte>> parts;
  for (const StateArray& array : arrays) parts.push_back(std::as_writable_bytes(array.values));
  ANTDT_RETURN_IF_ERROR(files.into("state.bin", parts));
  if (buffers.empty()) return counters;
  parts.clear();
  for (const StateBuffer& buffer : buffers) parts.push_back(buffer.bytes);
  ANTDT_RETURN_IF_ERROR(files.into("buffers.bin", parts));
  return counters;
}

}  // namespace antdt::trainer
