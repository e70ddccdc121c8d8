// libcurl, loaded when a job first speaks to etcd. Programs are not linked with it: it brings some
// 30 other libraries, which every command of antdt would load, and which a wheel would contain.
#pragma once

#include <curl/curl.h>

#include "core/result.h"

namespace antdt::store {

struct CurlLibrary {
  decltype(&curl_global_init) global_init = nullptr;
  decltype(&curl_easy_init) easy_init = nullptr;
  decltype(&curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&curl_easy_setopt) easy_setopt = nullptr;
  decltype(&curl_easy_perform) easy_perform = nullptr;
  decltype(&curl_easy_getinfo) easy_getinfo = nullptr;
  decltype(&curl_easy_strerror) easy_strerror = nullptr;
  decltype(&curl_slist_append) slist_append = nullptr;
  decltype(&curl_slist_free_all) slist_free_all = nullptr;
};

// The library, initialised. It is never unloaded. kUsage if this host has none.
[[nodiscard]] Result<const CurlLibrary*> load_curl();

}  // namespace antdt::store
