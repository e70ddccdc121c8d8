#include "core/metrics/http_request.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/metrics/exposition.h"

namespace antdt::metrics {
namespace {

std::string_view reason_of(HttpStatus status) {
  switch (status) {
    case HttpStatus::kOk:
      return "OK";
    case HttpStatus::kBadRequest:
      return "Bad Request";
    case HttpStatus::kNotFound:
      return "Not Found";
    case HttpStatus::kMethodNotAllowed:
      return "Method Not Allowed";
    case HttpStatus::kTimeout:
      return "Request Timeout";
    case HttpStatus::kHeadTooLarge:
      return "Request Header Fields Too Large";
    case HttpStatus::kVersionNotSupported:
      return "HTTP Version Not Supported";
  }
  return "";
}

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kMarks.find(c) != std::string_view::npos;
  });
}

bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < 127; });
}

// "GET /metrics HTTP/1.1"
HttpStatus judge_first_line(std::string_view line) {
  const std::size_t first = line.find(' ');
  const std::size_t second = first == line.npos ? line.npos : line.find(' ', first + 1);
  if (second == line.npos) return HttpStatus::kBadRequest;
  const std::string_view method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, second - first - 1);
  const std::string_view version = line.substr(second + 1);
  if (!is_token(method) || target.empty() || !is_printable(target)) return HttpStatus::kBadRequest;
  if (!version.starts_with("HTTP/")) return HttpStatus::kBadRequest;
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return HttpStatus::kVersionNotSupported;
  if (target.substr(0, target.find('?')) != "/metrics") return HttpStatus::kNotFound;
  return method == "GET" ? HttpStatus::kOk : HttpStatus::kMethodNotAllowed;
}

// A header without a name, or one that continues the line before, is how requests are smuggled.
bool are_headers(std::string_view lines) {
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find("\r\n"), lines.size());
    const std::string_view line = lines.substr(0, end);
    if (!is_token(line.substr(0, line.find(':'))) || line.find(':') == line.npos) return false;
    if (line.find_first_of(std::string_view("\r\n\0", 3)) != line.npos) return false;
    lines.remove_prefix(std::min(end + 2, lines.size()));
  }
  return true;
}

}  // namespace

HttpRequest read_request(std::string_view received) {
  const std::size_t head = received.substr(0, kMostOfARequest).find("\r\n\r\n");
  if (head == received.npos) {
    const bool too_large = received.size() >= kMostOfARequest;
    return {too_large, too_large ? HttpStatus::kHeadTooLarge : HttpStatus::kOk};
  }
  const std::string_view lines = received.substr(0, head);
  const std::size_t first = std::min(lines.find("\r\n"), lines.size());
  const HttpStatus status = judge_first_line(lines.substr(0, first));
  if (!are_headers(lines.substr(std::min(first + 2, lines.size())))) {
    return {true, HttpStatus::kBadRequest};
  }
  return {true, status};
}

std::string http_answer(HttpStatus status, std::string_view body) {
  const std::string about =
      fmt::format("{} {}: metrics are at /metrics\n", static_cast<int>(status), reason_of(status));
  const bool ok = status == HttpStatus::kOk;
  const std::string_view content = ok ? body : about;
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}Connection: "
      "close\r\n\r\n{}",
      static_cast<int>(status), reason_of(status), ok ? kContentType : "text/plain; charset=utf-8",
      content.size(), status == HttpStatus::kMethodNotAllowed ? "Allow: GET\r\n" : "", content);
}

}  // namespace antdt::metrics
