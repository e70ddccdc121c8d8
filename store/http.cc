#include "store/http.h"

#include <curl/curl.h>

#include <mutex>

#include "core/check.h"

namespace antdt::store {
namespace {

// A larger answer is not one of etcd's: it sends at most what was stored, in pieces.
constexpr std::size_t kMostBytes = 64U << 20U;

std::size_t take(char* data, std::size_t, std::size_t size, void* to) {
  auto& body = *static_cast<std::string*>(to);
  if (body.size() + size > kMostBytes) return 0;
  body.append(data, size);
  return size;
}

long milliseconds(Duration duration) {
  return static_cast<long>(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

bool is_of_our_files(CURLcode code) {
  return code == CURLE_SSL_CERTPROBLEM || code == CURLE_SSL_CACERT_BADFILE;
}

void begin_curl() {
  static std::once_flag once;
  std::call_once(once, [] {
    ANTDT_CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK, "libcurl does not start");
  });
}

}  // namespace

struct Http::State {
  HttpOptions options;
  CURL* curl = nullptr;
  std::string error = std::string(CURL_ERROR_SIZE, '\0');

  template <class T>
  void set(CURLoption option, T value) {
    ANTDT_CHECK(curl_easy_setopt(curl, option, value) == CURLE_OK, "libcurl option {}",
                static_cast<int>(option));
  }
};

Http::Http(HttpOptions options) : state_(std::make_unique<State>()) {
  begin_curl();
  State& s = *state_;
  s.options = std::move(options);
  s.curl = curl_easy_init();
  ANTDT_CHECK(s.curl != nullptr, "libcurl gives no handle");
  s.set(CURLOPT_NOSIGNAL, 1L);
  // A proxy of the environment is for other hosts than the cluster's.
  s.set(CURLOPT_PROXY, "");
  s.set(CURLOPT_PROTOCOLS_STR, "http,https");
  s.set(CURLOPT_POST, 1L);
  s.set(CURLOPT_TCP_NODELAY, 1L);
  s.set(CURLOPT_WRITEFUNCTION, &take);
  s.set(CURLOPT_ERRORBUFFER, s.error.data());
  s.set(CURLOPT_CONNECTTIMEOUT_MS, milliseconds(s.options.connect_within));
  s.set(CURLOPT_TIMEOUT_MS, milliseconds(s.options.answer_within));
  if (s.options.ca.empty()) return;
  s.set(CURLOPT_CAINFO, s.options.ca.c_str());
  s.set(CURLOPT_CAPATH, static_cast<const char*>(nullptr));
  if (s.options.certificate.empty()) return;
  s.set(CURLOPT_SSLCERT, s.options.certificate.c_str());
  s.set(CURLOPT_SSLKEY, s.options.key.c_str());
}

Http::~Http() { curl_easy_cleanup(state_->curl); }

Result<HttpAnswer> Http::post(const std::string& end_point, const std::string& path,
                              const std::string& body, const std::string& token) {
  State& s = *state_;
  HttpAnswer answer;
  const std::string url = (s.options.ca.empty() ? "http://" : "https://") + end_point + path;
  curl_slist* headers = curl_slist_append(nullptr, "Content-Type: application/json");
  // Without this, libcurl asks before it sends a large body, and waits a second for the answer.
  headers = curl_slist_append(headers, "Expect:");
  if (!token.empty()) headers = curl_slist_append(headers, ("Authorization: " + token).c_str());
  s.error[0] = '\0';
  s.set(CURLOPT_URL, url.c_str());
  s.set(CURLOPT_HTTPHEADER, headers);
  s.set(CURLOPT_POSTFIELDS, body.data());
  s.set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  s.set(CURLOPT_WRITEDATA, &answer.body);
  const CURLcode code = curl_easy_perform(s.curl);
  s.set(CURLOPT_HTTPHEADER, static_cast<curl_slist*>(nullptr));
  curl_slist_free_all(headers);
  if (code != CURLE_OK) {
    const char* reason = s.error[0] != '\0' ? s.error.c_str() : curl_easy_strerror(code);
    return fail(is_of_our_files(code) ? ErrorKind::kUsage : ErrorKind::kUnreachable, "{}: {}",
                end_point, reason);
  }
  curl_easy_getinfo(s.curl, CURLINFO_RESPONSE_CODE, &answer.status);
  return answer;
}

}  // namespace antdt::store
