#include "core/metrics/http_request.h"

#include <gtest/gtest.h>

#include <string>

namespace antdt::metrics {
namespace {

HttpStatus answer_to(const std::string& bytes) {
  const HttpRequest request = read_request(bytes);
  EXPECT_TRUE(request.whole) << bytes;
  return request.answer;
}

TEST(HttpRequestTest, AScrapersRequestIsAnswered) {
  EXPECT_EQ(answer_to("GET /metrics HTTP/1.1\r\nHost: a:9400\r\nUser-Agent: Prometheus/2.42.0\r\n"
                      "Accept: text/plain;version=0.0.4\r\nAccept-Encoding: gzip\r\n\r\n"),
            HttpStatus::kOk);
  EXPECT_EQ(answer_to("GET /metrics HTTP/1.0\r\n\r\n"), HttpStatus::kOk);
  EXPECT_EQ(answer_to("GET /metrics?module=x HTTP/1.1\r\nHost: a\r\n\r\n"), HttpStatus::kOk);
}

TEST(HttpRequestTest, EveryBeginningOfARequestIsWaitedOn) {
  const std::string all = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
  for (std::size_t size = 0; size < all.size(); ++size) {
    EXPECT_FALSE(read_request(all.substr(0, size)).whole) << size;
  }
  EXPECT_TRUE(read_request(all).whole);
  EXPECT_TRUE(read_request(all + "more").whole);
}

TEST(HttpRequestTest, OnlyMetricsAreThereAndTheyCanOnlyBeRead) {
  EXPECT_EQ(answer_to("GET / HTTP/1.1\r\n\r\n"), HttpStatus::kNotFound);
  EXPECT_EQ(answer_to("GET /metrics/ HTTP/1.1\r\n\r\n"), HttpStatus::kNotFound);
  EXPECT_EQ(answer_to("GET /metricsx HTTP/1.1\r\n\r\n"), HttpStatus::kNotFound);
  EXPECT_EQ(answer_to("GET /../metrics HTTP/1.1\r\n\r\n"), HttpStatus::kNotFound);
  EXPECT_EQ(answer_to("POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"),
            HttpStatus::kMethodNotAllowed);
  EXPECT_EQ(answer_to("HEAD /metrics HTTP/1.1\r\n\r\n"), HttpStatus::kMethodNotAllowed);
  EXPECT_EQ(answer_to("PRI * HTTP/2.0\r\n\r\n"), HttpStatus::kVersionNotSupported);
}

TEST(HttpRequestTest, ABrokenRequestIsRefused) {
  for (const char* broken :
       {"\r\n\r\n", "GET\r\n\r\n", "GET /metrics\r\n\r\n", "GET  HTTP/1.1\r\n\r\n",
        " GET /metrics HTTP/1.1\r\n\r\n", "GET /metrics SPDY/3\r\n\r\n",
        "GET /met\trics HTTP/1.1\r\n\r\n", "G\x01T /metrics HTTP/1.1\r\n\r\n",
        "GET /metrics HTTP/1.1\r\nno colon\r\n\r\n", "GET /metrics HTTP/1.1\r\n: empty\r\n\r\n",
        "GET /metrics HTTP/1.1\r\nA: b\r\n folded\r\n\r\n",
        "GET /metrics HTTP/1.1\r\nA : space\r\n\r\n", "GET /metrics HTTP/1.1\r\nA: b\nC: d\r\n\r\n",
        "GET /metrics HTTP/1.1\r\nA: b\rc\r\n\r\n", "\x16\x03\x01\x02 a TLS greeting\r\n\r\n"}) {
    EXPECT_EQ(answer_to(broken), HttpStatus::kBadRequest) << broken;
  }
}

TEST(HttpRequestTest, AHeadWithoutEndIsRefusedOnceItIsTooLong) {
  const std::string line = "GET /metrics HTTP/1.1\r\nA: ";
  EXPECT_FALSE(read_request(line + std::string(kMostOfARequest - line.size() - 1, 'a')).whole);
  EXPECT_EQ(answer_to(line + std::string(kMostOfARequest - line.size(), 'a')),
            HttpStatus::kHeadTooLarge);
  EXPECT_EQ(answer_to(line + std::string(2 * kMostOfARequest, 'a') + "\r\n\r\n"),
            HttpStatus::kHeadTooLarge);
}

TEST(HttpAnswerTest, SaysItsLengthAndThatTheConnectionEnds) {
  EXPECT_EQ(http_answer(HttpStatus::kOk, "a 1\n"),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
            "Content-Length: 4\r\nConnection: close\r\n\r\na 1\n");
  const std::string refused = http_answer(HttpStatus::kMethodNotAllowed, "a 1\n");
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 405 Method Not Allowed\r\n")) << refused;
  EXPECT_NE(refused.find("\r\nAllow: GET\r\n"), refused.npos) << refused;
  EXPECT_EQ(refused.find("a 1"), refused.npos) << refused;
}

}  // namespace
}  // namespace antdt::metrics
