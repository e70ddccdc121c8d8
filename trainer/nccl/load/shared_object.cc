#include "trainer/nccl/load/shared_object.h"

#include <dlfcn.h>
#include <link.h>

namespace antdt::nccl {

Result<SharedObject> SharedObject::load(const std::string& what,
                                        const std::vector<std::string>& candidates) {
  std::string reasons;
  for (const std::string& candidate : candidates) {
    // RTLD_LOCAL: a program may have loaded another release of the same library.
    void* const handle = ::dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      reasons += fmt::format("{}{}", reasons.empty() ? "" : "; ", ::dlerror());
      continue;
    }
    const link_map* map = nullptr;
    const bool is_known = ::dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr;
    return SharedObject(what, is_known ? map->l_name : candidate, handle);
  }
  return fail(ErrorKind::kUsage, "{} cannot be loaded: {}", what, reasons);
}

Result<void*> SharedObject::address_of(const char* name) const {
  void* const address = ::dlsym(handle_, name);
  if (address != nullptr) return address;
  return fail(ErrorKind::kUsage, "{} in {} has no function {}: it is too old, or another library",
              what_, path_, name);
}

}  // namespace antdt::nccl
