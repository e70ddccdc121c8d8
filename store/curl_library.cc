#include "store/curl_library.h"

#include <dlfcn.h>

namespace antdt::store {
namespace {

constexpr const char* kName = "libcurl.so.4";

tl::unexpected<Error> missing() {
  const char* const reason = ::dlerror();
  return fail(
      ErrorKind::kUsage,
      "a job with cluster.store needs libcurl on this host ({}): install it, as the package "
      "libcurl4 of Debian or libcurl of others",
      reason == nullptr ? kName : reason);
}

template <class F>
bool find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(::dlsym(library, name));
  return function != nullptr;
}

Result<CurlLibrary> load() {
  void* const library = ::dlopen(kName, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return missing();
  CurlLibrary curl;
  const bool whole = find(library, "curl_global_init", curl.global_init) &&
                     find(library, "curl_easy_init", curl.easy_init) &&
                     find(library, "curl_easy_cleanup", curl.easy_cleanup) &&
                     find(library, "curl_easy_setopt", curl.easy_setopt) &&
                     find(library, "curl_easy_perform", curl.easy_perform) &&
                     find(library, "curl_easy_getinfo", curl.easy_getinfo) &&
                     find(library, "curl_easy_strerror", curl.easy_strerror) &&
                     find(library, "curl_slist_append", curl.slist_append) &&
                     find(library, "curl_slist_free_all", curl.slist_free_all);
  if (!whole) return missing();
  if (curl.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK) return curl;
  return fail(ErrorKind::kInternal, "libcurl does not start");
}

}  // namespace

Result<const CurlLibrary*> load_curl() {
  static const Result<CurlLibrary> loaded = load();
  if (!loaded) return tl::unexpected<Error>(loaded.error());
  return &*loaded;
}

}  // namespace antdt::store
