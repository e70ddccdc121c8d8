#include "launcher/model/model_content.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "core/json_integer.h"
#include "trainer/tally/tally_engine.h"

namespace antdt::cli {
namespace {

using Json = nlohmann::json;

// The types by libantdt's names. NumPy has no bfloat16, so its bits are written.
constexpr std::array<std::pair<std::string_view, NpyType>, 11> kTypes = {
    {{"bytes", NpyType::kUint8},
     {"float32", NpyType::kFloat32},
     {"float64", NpyType::kFloat64},
     {"float16", NpyType::kFloat16},
     {"bfloat16", NpyType::kUint16},
     {"int64", NpyType::kInt64},
     {"int32", NpyType::kInt32},
     {"int16", NpyType::kInt16},
     {"int8", NpyType::kInt8},
     {"uint8", NpyType::kUint8},
     {"bool", NpyType::kBool}}};

constexpr const char* kStateLayout = "state.json";
constexpr const char* kStateArrays = "state.bin";
constexpr const char* kStateBuffers = "buffers.bin";
constexpr const char* kPartsLayout = "parts.json";
constexpr const char* kPartsNumbers = "parts.bin";

Result<std::uint64_t> floats_of(const std::vector<std::uint64_t>& shape) {
  std::uint64_t floats = 1;
  for (const std::uint64_t size : shape) {
    if (__builtin_mul_overflow(floats, size, &floats)) {
      return fail(ErrorKind::kCorrupt, "a parameter has more floats than there can be");
    }
  }
  return floats;
}

// Where the array "parameters" begins in state.bin, in floats. Throws what the JSON library throws.
Result<std::uint64_t> first_float(const Json& layout, std::uint64_t floats, std::uint64_t held) {
  const auto arrays = layout.at("arrays").get<std::vector<std::string>>();
  const auto found = std::ranges::find(arrays, "parameters");
  const auto before = static_cast<std::uint64_t>(found - arrays.begin());
  if (found == arrays.end() || held % arrays.size() != 0 || held / arrays.size() != floats) {
    return fail(ErrorKind::kCorrupt, "{} arrays of {} floats are not the {} floats of {}",
                arrays.size(), floats, held, kStateArrays);
  }
  return before * floats;
}

// The numbers of `entry`, which has name, dtype, first byte and, under `shape`, sizes. Throws what
// the JSON library throws.
Result<ParameterPlace> numbers_of(const CheckpointFiles& files, const Json& entry,
                                  const char* shape, std::uint32_t bin) {
  ParameterPlace place;
  place.name = entry.at("name").get<std::string>();
  for (const Json& size : entry.at(shape)) {
    place.shape.push_back(json_integer<std::uint64_t>(size));
  }
  const auto dtype = entry.at("dtype").get<std::string>();
  const auto type = std::ranges::find(kTypes, dtype, &decltype(kTypes)::value_type::first);
  if (type == kTypes.end()) {
    return fail(ErrorKind::kCorrupt, "part '{}' has the unknown type '{}'", place.name, dtype);
  }
  place.type = type->second;
  const auto first = json_integer<std::uint64_t>(entry.at("first"));
  ANTDT_TRY(const std::uint64_t count, floats_of(place.shape));
  const std::uint64_t room = first <= files.bytes(bin) ? files.bytes(bin) - first : 0;
  if (count > room / npy_element_bytes(place.type)) {
    return fail(ErrorKind::kCorrupt, "part '{}' ends behind the file", place.name);
  }
  place.values.push_back({bin, first, count * npy_element_bytes(place.type)});
  return place;
}

// Of a program on libantdt. Throws what the JSON library throws.
Result<ModelContent> content_of_parts(const CheckpointFiles& files, const Json& layout,
                                      std::uint32_t bin) {
  ModelContent content;
  for (const Json& entry : layout.at("parts")) {
    ANTDT_TRY(auto place, numbers_of(files, entry, "shape", bin));
    content.parameters.push_back(std::move(place));
  }
  return content;
}

// Throws what the JSON library throws.
Result<ModelContent> content_of_layout(const CheckpointFiles& files, const Json& layout,
                                       std::uint32_t bin) {
  const auto floats = json_integer<std::uint64_t>(layout.at("floats"));
  ANTDT_TRY(const std::uint64_t begin, first_float(layout, floats, files.bytes(bin) / 4));
  ModelContent content;
  for (const Json& entry : layout.at("parameters")) {
    ParameterPlace place;
    place.name = entry.at("name").get<std::string>();
    for (const Json& size : entry.at("sizes")) {
      place.shape.push_back(json_integer<std::uint64_t>(size));
    }
    const auto first = json_integer<std::uint64_t>(entry.at("first"));
    ANTDT_TRY(const std::uint64_t count, floats_of(place.shape));
    if (first > floats || count > floats - first) {
      return fail(ErrorKind::kCorrupt, "parameter '{}' ends behind its array", place.name);
    }
    place.values.push_back({bin, 4 * (begin + first), 4 * count});
    content.parameters.push_back(std::move(place));
  }
  const auto beside = files.find(kStateBuffers);
  if (!beside || !layout.contains("buffers")) return content;
  for (const Json& entry : layout.at("buffers")) {
    ANTDT_TRY(auto place, numbers_of(files, entry, "sizes", *beside));
    content.parameters.push_back(std::move(place));
  }
  return content;
}

// Applies `read` to the layout in a JSON file, and to the file beside it that has the numbers.
template <class Read>
Result<ModelContent> content_by_layout(const CheckpointFiles& files, std::uint32_t layout,
                                       const char* numbers, Read read) {
  const auto corrupt = [&](const std::string& what) {
    return fail(ErrorKind::kCorrupt, "{} cannot be read: {}", files.path(layout), what);
  };
  const auto bin = files.find(numbers);
  if (!bin) return corrupt(fmt::format("there is no {} beside it", numbers));
  ANTDT_TRY(const std::string text, files.read_all(layout));
  try {
    auto content = read(files, Json::parse(text), *bin);
    if (!content) return corrupt(content.error().message);
    return content;
  } catch (const Json::exception& e) {
    return corrupt(e.what());
  }
}

// One float for each record.
ModelContent content_of_tally(const CheckpointFiles& files, std::uint32_t counts) {
  const std::uint64_t records = files.bytes(counts) / 4;
  ModelContent content;
  content.parameters.push_back({"tally", {records}, {{counts, 0, 4 * records}}, NpyType::kFloat32});
  return content;
}

}  // namespace

Result<ModelContent> content_of(const CheckpointFiles& files) {
  if (const auto layout = files.find(kStateLayout)) {
    return content_by_layout(files, *layout, kStateArrays, content_of_layout);
  }
  if (const auto layout = files.find(kPartsLayout)) {
    return content_by_layout(files, *layout, kPartsNumbers, content_of_parts);
  }
  if (const auto counts = files.find(trainer::kTallyFile)) {
    return content_of_tally(files, *counts);
  }
  for (std::uint32_t file = 0; file < files.count(); ++file) {
    if (files.name(file).starts_with("slice-")) return content_of_slices(files);
  }
  std::string names;
  for (std::uint32_t file = 0; file < files.count(); ++file) names += " " + files.name(file);
  return fail(ErrorKind::kUsage,
              "the program of this job keeps its model in a form of its own, which only it can "
              "read:{}",
              names);
}

}  // namespace antdt::cli
