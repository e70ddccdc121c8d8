// HTTP POST with a body and an answer in JSON, over connections that stay open. By libcurl
// (curl_library.h).
#pragma once

#include <memory>
#include <string>

#include "core/clock.h"
#include "core/result.h"

namespace antdt::store {

struct HttpOptions {
  // Files in PEM; no TLS if `ca` is empty.
  std::string ca, certificate, key;
  Duration connect_within{};
  Duration answer_within{};
};

struct HttpAnswer {
  long status = 0;
  std::string body;
};

class Http {
 public:
  // kUsage if this host has no libcurl.
  [[nodiscard]] static Result<Http> make(HttpOptions options);
  Http(Http&&) noexcept;
  Http& operator=(Http&&) noexcept;
  ~Http();

  // `end_point`: "10.0.0.1:2379"; `token` is sent as Authorization if it is not empty. kUnreachable
  // with libcurl's reason; kUsage if a certificate or key of this client cannot be used.
  [[nodiscard]] Result<HttpAnswer> post(const std::string& end_point, const std::string& path,
                                        const std::string& body, const std::string& token);

 private:
  struct State;
  explicit Http(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace antdt::store
