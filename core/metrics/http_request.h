// The request of a scraper: as much of HTTP/1.1 (RFC 9112) as one GET without a body needs. Pure.
#pragma once

#include <string>
#include <string_view>

namespace antdt::metrics {

// A head that is longer is refused.
inline constexpr std::size_t kMostOfARequest = 8192;

enum class HttpStatus {
  kOk = 200,
  kBadRequest = 400,
  kNotFound = 404,
  kMethodNotAllowed = 405,
  kTimeout = 408,
  kHeadTooLarge = 431,
  kVersionNotSupported = 505,
};

struct HttpRequest {
  bool whole = false;  // the head has arrived, or is known to be wrong
  HttpStatus answer = HttpStatus::kOk;
};

// What the bytes that have arrived so far are a request for. kOk: GET of /metrics, with or without
// a query.
[[nodiscard]] HttpRequest read_request(std::string_view received);

// The whole answer, after which the connection is closed. `body`: the metrics, for kOk; else it is
// a line about the status.
[[nodiscard]] std::string http_answer(HttpStatus status, std::string_view body);

}  // namespace antdt::metrics
