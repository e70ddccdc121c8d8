#include "trainer/nccl/load/library.h"

#include "core/accelerator/versions.h"
#include "trainer/nccl/load/shared_object.h"

namespace antdt::nccl {
namespace {

Result<SharedObject> open_nccl(const std::vector<std::string>& candidates) {
  auto object = SharedObject::load("NCCL", candidates);
  if (object) return object;
  return fail(ErrorKind::kUsage,
              "{}. Install it (for example the package {}; versions {} are known to work), or name "
              "its file in ANTDT_NCCL_LIBRARY",
              object.error().message, accelerator::kNcclWheels, accelerator::kVersionsText);
}

Result<int> version_of(const SharedObject& object) {
  Code (*get_version)(int*) = nullptr;
  ANTDT_RETURN_IF_ERROR(object.find("ncclGetVersion", get_version));
  int version = 0;
  if (get_version(&version) == Code::kSuccess) return version;
  return fail(ErrorKind::kUsage, "NCCL in {} does not say its version", object.path());
}

// A second NCCL would call functions of the first, whose structures are others. LibTorch for CUDA
// is linked with one. `is_by_variable`: ANTDT_NCCL_LIBRARY named the file.
Status check_alone(const SharedObject& object, bool is_by_variable) {
  const std::string other = object.hidden_by("ncclCommGetAsyncError");
  if (other.empty()) return {};
  return fail(
      ErrorKind::kUsage,
      "{} cannot be used beside {}, with which this program is linked, as the two would call "
      "each other's functions. {} the whole program use one file: LD_PRELOAD = "
      "\"/path/to/libnccl.so.2\" in roles.worker.env of job.toml. If the program's own file "
      "contains that NCCL, it comes before what is preloaded: link the program with libnccl.so.2 "
      "instead",
      object.path(), other, is_by_variable ? "Do without ANTDT_NCCL_LIBRARY, or have" : "Have");
}

Status find_functions(const SharedObject& object, Library& library) {
  ANTDT_RETURN_IF_ERROR(object.find("ncclGetVersion", library.get_version));
  ANTDT_RETURN_IF_ERROR(object.find("ncclGetUniqueId", library.get_unique_id));
  ANTDT_RETURN_IF_ERROR(object.find("ncclCommInitRankConfig", library.comm_init_rank_config));
  ANTDT_RETURN_IF_ERROR(object.find("ncclCommGetAsyncError", library.comm_get_async_error));
  ANTDT_RETURN_IF_ERROR(object.find("ncclCommAbort", library.comm_abort));
  ANTDT_RETURN_IF_ERROR(object.find("ncclCommFinalize", library.comm_finalize));
  ANTDT_RETURN_IF_ERROR(object.find("ncclCommDestroy", library.comm_destroy));
  ANTDT_RETURN_IF_ERROR(object.find("ncclAllReduce", library.all_reduce));
  ANTDT_RETURN_IF_ERROR(object.find("ncclSend", library.send));
  ANTDT_RETURN_IF_ERROR(object.find("ncclRecv", library.recv));
  ANTDT_RETURN_IF_ERROR(object.find("ncclGetErrorString", library.get_error_string));
  return object.find("ncclGetLastError", library.get_last_error);
}

}  // namespace

// The version is checked first: what an old library lacks is not its most useful message.
Result<Library> load_library(const std::vector<std::string>& candidates,
                             const accelerator::Environment& environment) {
  ANTDT_TRY(const SharedObject object, open_nccl(candidates));
  Library library;
  library.path = object.path();
  ANTDT_TRY(library.version, version_of(object));
  if (auto known = accelerator::check_version(library.version); !known) {
    return fail(ErrorKind::kUsage, "{}: {}", library.path, known.error().message);
  }
  const std::string variable = environment("ANTDT_NCCL_LIBRARY");
  const bool is_by_variable = candidates == std::vector{variable};
  ANTDT_RETURN_IF_ERROR(check_alone(object, is_by_variable));
  ANTDT_RETURN_IF_ERROR(find_functions(object, library));
  return library;
}

Result<Found> find_nccl(const std::vector<std::string>& candidates) {
  ANTDT_TRY(const SharedObject object, open_nccl(candidates));
  ANTDT_TRY(const int version, version_of(object));
  return Found{object.path(), version};
}

}  // namespace antdt::nccl
