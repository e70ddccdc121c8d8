#include "store/http.h"

#include <utility>

#include "core/check.h"
#include "store/curl_library.h"

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

}  // namespace

struct Http::State {
  State(HttpOptions its_options, const CurlLibrary& library)
      : options(std::move(its_options)), curl(library), handle(curl.easy_init()) {
    ANTDT_CHECK(handle != nullptr, "libcurl gives no handle");
  }
  ~State() { curl.easy_cleanup(handle); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  template <class T>
  void set(CURLoption option, T value) {
    ANTDT_CHECK(curl.easy_setopt(handle, option, value) == CURLE_OK, "libcurl option {}",
                static_cast<int>(option));
  }

  HttpOptions options;
  const CurlLibrary& curl;
  CURL* handle;
  std::string error = std::string(CURL_ERROR_SIZE, '\0');
};

Result<Http> Http::make(HttpOptions options) {
  ANTDT_TRY(const CurlLibrary* curl, load_curl());
  auto state = std::make_unique<State>(std::move(options), *curl);
  State& s = *state;
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
  if (!s.options.ca.empty()) {
    s.set(CURLOPT_CAINFO, s.options.ca.c_str());
    s.set(CURLOPT_CAPATH, static_cast<const char*>(nullptr));
  }
  if (!s.options.certificate.empty()) {
    s.set(CURLOPT_SSLCERT, s.options.certificate.c_str());
    s.set(CURLOPT_SSLKEY, s.options.key.c_str());
  }
  return Http(std::move(state));
}

Http::Http(std::unique_ptr<State> state) : state_(std::move(state)) {}
Http::Http(Http&&) noexcept = default;
Http& Http::operator=(Http&&) noexcept = default;
Http::~Http() = default;

Result<HttpAnswer> Http::post(const std::string& end_point, const std::string& path,
                              const std::string& body, const std::string& token) {
  State& s = *state_;
  HttpAnswer answer;
  const std::string url = (s.options.ca.empty() ? "http://" : "https://") + end_point + path;
  curl_slist* headers = s.curl.slist_append(nullptr, "Content-Type: application/json");
  // Without this, libcurl asks before it sends a large body, and waits a second for the answer.
  headers = s.curl.slist_append(headers, "Expect:");
  if (!token.empty()) headers = s.curl.slist_append(headers, ("Authorization: " + token).c_str());
  s.error[0] = '\0';
  s.set(CURLOPT_URL, url.c_str());
  s.set(CURLOPT_HTTPHEADER, headers);
  s.set(CURLOPT_POSTFIELDS, body.data());
  s.set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  s.set(CURLOPT_WRITEDATA, &answer.body);
  const CURLcode code = s.curl.easy_perform(s.handle);
  s.set(CURLOPT_HTTPHEADER, static_cast<curl_slist*>(nullptr));
  s.curl.slist_free_all(headers);
  if (code != CURLE_OK) {
    const char* reason = s.error[0] != '\0' ? s.error.c_str() : s.curl.easy_strerror(code);
    return fail(is_of_our_files(code) ? ErrorKind::kUsage : ErrorKind::kUnreachable, "{}: {}",
                end_point, reason);
  }
  s.curl.easy_getinfo(s.handle, CURLINFO_RESPONSE_CODE, &answer.status);
  return answer;
}

}  // namespace antdt::store
