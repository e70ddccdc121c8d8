#include "trainer/c_api/program/state_parts.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "core/json_integer.h"
#include "include/antdt.h"

namespace antdt::capi {
namespace {

using Json = nlohmann::json;

struct Dtype {
  const char* name;
  std::uint64_t bytes;
};
// By their numbers in antdt.h.
constexpr std::array<Dtype, 11> kDtypes = {{{"bytes", 1},
                                            {"float32", 4},
                                            {"float64", 8},
                                            {"float16", 2},
                                            {"bfloat16", 2},
                                            {"int64", 8},
                                            {"int32", 4},
                                            {"int16", 2},
                                            {"int8", 1},
                                            {"uint8", 1},
                                            {"bool", 1}}};

bool is_dtype(std::int32_t dtype) {
  return dtype >= 0 && static_cast<std::size_t>(dtype) < kDtypes.size();
}

Status check(const StatePart& part) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._-/").find(c) != std::string_view::npos;
  };
  if (part.name.empty() || !std::ranges::all_of(part.name, allowed)) {
    return fail(ErrorKind::kUsage,
                "antdt_register: '{}' cannot be the name of a part: use letters, digits and ._-/",
                part.name);
  }
  if (!is_dtype(part.dtype)) {
    return fail(ErrorKind::kUsage, "antdt_register: {} of '{}' is no ANTDT_ type", part.dtype,
                part.name);
  }
  std::uint64_t elements = 1;
  for (const std::uint64_t extent : part.shape) elements *= extent;
  if (elements * size_of_dtype(part.dtype) != part.bytes.size()) {
    return fail(ErrorKind::kUsage,
                "antdt_register: '{}' has {} bytes, and its shape makes {} elements of {} bytes",
                part.name, part.bytes.size(), elements, size_of_dtype(part.dtype));
  }
  return {};
}

Json parts_json(const std::vector<StatePart>& parts) {
  Json list = Json::array();
  std::uint64_t first = 0;
  for (const StatePart& part : parts) {
    list.push_back({{"name", part.name},
                    {"dtype", name_of_dtype(part.dtype)},
                    {"shape", part.shape},
                    {"first", first},
                    {"bytes", part.bytes.size()}});
    first += part.bytes.size();
  }
  return list;
}

// What is not alike in the two lists, in words.
std::string difference(const Json& found, const Json& own) {
  for (std::size_t i = 0; i < std::max(found.size(), own.size()); ++i) {
    if (i >= found.size()) return fmt::format("it has no {}", own[i].dump());
    if (i >= own.size()) return fmt::format("this program registered no {}", found[i].dump());
    if (found[i] != own[i]) {
      return fmt::format("it has {} where this program registered {}", found[i].dump(),
                         own[i].dump());
    }
  }
  return "it cannot be read";
}

}  // namespace

const char* name_of_dtype(std::int32_t dtype) {
  return is_dtype(dtype) ? kDtypes[static_cast<std::size_t>(dtype)].name : nullptr;
}
std::uint64_t size_of_dtype(std::int32_t dtype) {
  return is_dtype(dtype) ? kDtypes[static_cast<std::size_t>(dtype)].bytes : 0;
}

Status StateParts::put(StatePart part, bool grows) {
  ANTDT_RETURN_IF_ERROR(check(part));
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(parts_, part.name, &StatePart::name);
  const bool fits = found != parts_.end() && found->bytes.size() == part.bytes.size();
  if (!fits && !grows) {
    return fail(ErrorKind::kUsage,
                "antdt_register: '{}' {}: after the first antdt_next that is for the order 'apply' "
                "alone, on all members at the same step",
                part.name,
                found == parts_.end() ? std::string("is new")
                                      : fmt::format("has {} bytes and had {}", part.bytes.size(),
                                                    found->bytes.size()));
  }
  if (found == parts_.end()) {
    parts_.push_back(std::move(part));
  } else {
    *found = std::move(part);
  }
  return {};
}

Status StateParts::remove(const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (std::erase_if(parts_, [&](const StatePart& part) { return part.name == name; }) == 0) {
    return fail(ErrorKind::kUsage, "antdt_unregister: no part is called '{}'", name);
  }
  return {};
}

std::vector<std::span<std::byte>> StateParts::bytes() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::span<std::byte>> bytes;
  for (const StatePart& part : parts_) bytes.push_back(part.bytes);
  return bytes;
}

std::string StateParts::describe_locked(Step step) const {
  return Json{{"schema", 1}, {"step", step.value}, {"parts", parts_json(parts_)}}.dump(1);
}

std::vector<trainer::StateFile> StateParts::files(Step step) const {
  const std::lock_guard lock(mutex_);
  trainer::StateFile data{kPartsFile, {}, {}};
  for (const StatePart& part : parts_) data.parts.emplace_back(part.bytes);
  std::vector<trainer::StateFile> files{{kPartsDescription, describe_locked(step), {}}};
  if (!data.parts.empty()) files.push_back(std::move(data));
  return files;
}

Result<Step> StateParts::load(CheckpointReader& files) {
  const std::lock_guard lock(mutex_);
  const std::string path = files.directory() + "/" + kPartsDescription;
  ANTDT_TRY(const std::string text, files.text(kPartsDescription));
  const Json found = Json::parse(text, nullptr, false);
  const Json step = found.is_object() ? found.value("step", Json()) : Json();
  const Json parts = found.is_object() ? found.value("parts", Json()) : Json();
  if (!step.is_number_unsigned() || !parts.is_array() || found.value("schema", 0) != 1) {
    return fail(ErrorKind::kCorrupt, "{} is not what libantdt writes", path);
  }
  const Json own = parts_json(parts_);
  if (parts != own) {
    return fail(
        ErrorKind::kCorrupt,
        "{} is of another program: {}. Register the same parts in the same order, or begin a "
        "new run",
        path, difference(parts, own));
  }
  std::vector<std::span<std::byte>> places;
  for (const StatePart& part : parts_) places.push_back(part.bytes);
  if (!places.empty()) ANTDT_RETURN_IF_ERROR(files.into(kPartsFile, places));
  return Step{json_integer<std::uint64_t>(step)};
}

}  // namespace antdt::capi
