// Which devices of this host an agent may use, and what a process is told of its own. Pure.
#pragma once

#include <string>
#include <vector>

#include "core/wire/agent_messages.h"
#include "core/wire/device/device.h"

namespace antdt::antdtd {

// The devices that CUDA_VISIBLE_DEVICES of the agent's own environment names (an allocation of
// Slurm sets it): by index, or by the beginning of a UUID. As for CUDA, what follows a name that
// fits no device does not count. A null pointer: all of them.
[[nodiscard]] std::vector<wire::HostDevice> visible_devices(std::vector<wire::HostDevice> all,
                                                            const char* cuda_visible_devices);
// A warning if CUDA may mean other devices by these names than the function above does; "": it does
// not. An index there is NVML's, in the order of PCI bus ids. CUDA counts the fastest devices
// first, unless CUDA_DEVICE_ORDER (a null pointer: it is not set) says PCI_BUS_ID; that differs
// only if devices are of different models.
[[nodiscard]] std::string doubt_about_visible(const std::vector<wire::HostDevice>& all,
                                              const char* cuda_visible_devices,
                                              const char* cuda_device_order);

// The variables of a process that is started with this order: those of the job, with what follows
// from its lease of devices.
//  - Without a lease (the agent neither leases devices nor hides them) there is nothing to add.
//  - A lease without devices hides those of the host: CUDA_VISIBLE_DEVICES is empty unless the job
//    sets it.
//  - CUDA_VISIBLE_DEVICES names the leased devices by UUID, because indexes differ between CUDA and
//    NVML, and change when a device is lost; MIG instances have nothing else. CUDA_DEVICE_ORDER is
//    PCI_BUS_ID for programs that look beyond their own devices. The job cannot set these two.
//  - A process that sees only its own devices is the only one of its local world: LOCAL_RANK is 0
//    and LOCAL_WORLD_SIZE is 1, so that cuda:LOCAL_RANK is its first device. A process that sees
//    those of all local ranks has the LOCAL_RANK of its launcher, which is its device's place.
[[nodiscard]] std::vector<wire::EnvVar> environment_with_devices(const wire::StartProcess& start);

}  // namespace antdt::antdtd
