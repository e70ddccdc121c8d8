#include "antdtd/devices/device_claims.h"

#include <utility>

namespace antdt::antdtd {

// A UUID comes from the driver, and becomes part of a path.
std::string DeviceClaims::path_of(const std::string& uuid) const {
  std::string name = uuid;
  for (char& c : name) {
    if (c == '/') c = '_';
  }
  return directory_ + "/antdt-device-" + name;
}

Status DeviceClaims::take(const std::string& uuid) {
  if (uuid.empty() || own_.contains(uuid)) return {};
  auto taken = ClaimFile::take(path_of(uuid));
  if (!taken) return tl::unexpected(taken.error());
  own_.emplace(uuid, std::move(*taken));
  return {};
}

void DeviceClaims::join(const std::set<std::string>& uuids) {
  for (const std::string& uuid : uuids) {
    if (uuid.empty() || own_.contains(uuid)) continue;
    if (auto joined = ClaimFile::join(path_of(uuid))) own_.emplace(uuid, std::move(*joined));
  }
}

void DeviceClaims::keep_only(const std::set<std::string>& uuids) {
  std::erase_if(own_, [&](const auto& entry) { return !uuids.contains(entry.first); });
}

bool DeviceClaims::is_taken_elsewhere(const std::string& uuid) const {
  return !uuid.empty() && !own_.contains(uuid) && ClaimFile::is_taken(path_of(uuid));
}

}  // namespace antdt::antdtd
