#include "launcher/start/own_devices.h"

#include "core/os/output_of.h"
#include "core/report/json.h"
#include "launcher/start/paths.h"

namespace antdt::launcher {
namespace {

constexpr Duration kDevicesAnswer = std::chrono::seconds(20);
constexpr std::size_t kMostOfDevices = 1 << 20;

}  // namespace

Result<report::HostDevices> devices_of_this_machine() {
  ANTDT_TRY(const std::string text, output_of({program_directory() + "/antdtd", "--show-devices"},
                                              kDevicesAnswer, kMostOfDevices));
  return report::from_json<report::HostDevices>(text.substr(text.rfind('\n') + 1));
}

}  // namespace antdt::launcher
