// A shared library and its functions.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"

namespace antdt::nccl {

// Loaded and never unloaded: threads of it may run until the process ends.
class SharedObject {
 public:
  // The first of `candidates` that can be loaded. kUsage, with the loader's reason for each.
  // `what`: for messages, "NCCL".
  [[nodiscard]] static Result<SharedObject> load(const std::string& what,
                                                 const std::vector<std::string>& candidates);
  [[nodiscard]] const std::string& path() const { return path_; }

  // The file whose function of this name the whole process uses, this library's own calls of it
  // included: the program is linked with it, or it was preloaded. "": this library's, or none.
  [[nodiscard]] std::string hidden_by(const char* name) const;

  // kUsage if there is no such function.
  template <class F>
  [[nodiscard]] Status find(const char* name, F*& function) const {
    ANTDT_TRY(void* const address, address_of(name));
    function = reinterpret_cast<F*>(address);
    return {};
  }

 private:
  SharedObject(std::string what, std::string path, void* handle)
      : what_(std::move(what)), path_(std::move(path)), handle_(handle) {}
  [[nodiscard]] Result<void*> address_of(const char* name) const;

  std::string what_, path_;
  void* handle_;
};

}  // namespace antdt::nccl
