#include "trainer/nccl/load/shared_object.h"

#include <dlfcn.h>
#include <link.h>

namespace antdt::nccl {

Result<SharedObject> SharedObject::load(const std::string& what,
                                        const std::vector<std::string>& candidates) {
  std::string reasons;
  for (const std::string& candidate : candidates) {
    // RTLD_LOCAL: a program may load another release of the same library later.
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

// RTLD_DEEPBIND would bind the library's calls to itself, and also those of malloc and free, whose
// memory libc's own functions may have allocated with a preloaded allocator.
std::string SharedObject::hidden_by(const char* name) const {
  void* const of_all = ::dlsym(RTLD_DEFAULT, name);
  if (of_all == nullptr || of_all == ::dlsym(handle_, name)) return "";
  Dl_info info{};
  const bool is_known = ::dladdr(of_all, &info) != 0 && info.dli_fname != nullptr;
  return is_known ? info.dli_fname : "a library of the program";
}

Result<void*> SharedObject::address_of(const char* name) const {
  void* const address = ::dlsym(handle_, name);
  if (address != nullptr) return address;
  return fail(ErrorKind::kUsage, "{} in {} has no function {}: it is too old, or another library",
              what_, path_, name);
}

}  // namespace antdt::nccl
