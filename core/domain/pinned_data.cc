#include "core/domain/pinned_data.h"

#include <algorithm>

#include "core/json_integer.h"

namespace antdt {

bool PinnedData::has(std::string_view split) const {
  return std::ranges::any_of(parts, [&](const PinnedPart& part) { return part.split == split; });
}

std::uint64_t PinnedData::records_of(std::string_view split, std::string_view domain) const {
  std::uint64_t sum = 0;
  for (const PinnedPart& part : parts) {
    if (part.split == split && part.domain == domain) sum += part.records;
  }
  return sum;
}

nlohmann::ordered_json to_json(const PinnedData& pins) {
  nlohmann::ordered_json parts = nlohmann::ordered_json::array();
  for (const PinnedPart& part : pins.parts) {
    parts.push_back({{"split", part.split},
                     {"domain", part.domain},
                     {"records", part.records},
                     {"files", part.files},
                     {"labels", part.labels}});
  }
  return {{"domains", pins.domains}, {"classes", pins.classes}, {"parts", std::move(parts)}};
}

PinnedData pinned_data_of(const nlohmann::json& json) {
  PinnedData pins;
  if (json.is_null()) return pins;
  pins.domains = json.at("domains").get<std::vector<std::string>>();
  pins.classes = json_integer<std::uint32_t>(json.at("classes"));
  for (const nlohmann::json& part : json.at("parts")) {
    pins.parts.push_back({part.at("split"), part.at("domain"),
                          json_integer<std::uint64_t>(part.at("records")), part.at("files"),
                          part.at("labels")});
  }
  return pins;
}

Result<PinnedData> parse_pinned_data(const std::string& config_json) {
  try {
    const auto json = nlohmann::json::parse(config_json);
    return pinned_data_of(json.contains("pins") ? json.at("pins") : nlohmann::json());
  } catch (const nlohmann::json::exception& e) {
    return fail(ErrorKind::kUsage, "pins of the job's configuration cannot be read: {}", e.what());
  }
}

}  // namespace antdt
