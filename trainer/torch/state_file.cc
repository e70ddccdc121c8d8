#include "trainer/torch/state_file.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "core/checkpoint_file.h"
#include "core/fs.h"
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

Result<std::vector<wire::CheckpointFile>> write_state(const std::string& directory,
                                                      const StateCounters& counters,
                                                      const std::vector<StateEntry>& entries,
                                                      const std::vector<StateArray>& arrays) {
  ANTDT_TRY(auto writer, CheckpointFileWriter::create(directory, "state.bin"));
  for (const StateArray& array : arrays) {
    writer.write({reinterpret_cast<const char*>(array.values.data()), array.values.size_bytes()});
  }
  ANTDT_TRY(auto data, writer.finish());
  ANTDT_TRY(auto description, write_checkpoint_file(directory, "state.json",
                                                    describe(counters, entries, arrays).dump(1)));
  return std::vector<wire::CheckpointFile>{std::move(data), std::move(description)};
}

Result<StateCounters> read_state(const std::string& directory,
                                 const std::vector<StateEntry>& entries,
                                 const std::vector<StateArray>& arrays) {
  ANTDT_TRY(const std::string text, read_file(directory + "/state.json"));
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
  ANTDT_TRY(const std::string bytes, read_file(directory + "/state.bin"));
  std::size_t expected = 0;
  for (const StateArray& array : arrays) expected += array.values.size_bytes();
  if (bytes.size() != expected) {
    return fail(ErrorKind::kCorrupt, "{}/state.bin has {} bytes, and should have {}", directory,
                bytes.size(), expected);
  }
  std::size_t at = 0;
  for (const StateArray& array : arrays) {
    std::memcpy(array.values.data(), bytes.data() + at, array.values.size_bytes());
    at += array.values.size_bytes();
  }
  return counters;
}

}  // namespace antdt::trainer
