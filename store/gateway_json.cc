#include "store/gateway_json.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/overloaded.h"
#include "core/utf8.h"
#include "store/base64.h"

namespace antdt::store {
namespace {

using Json = nlohmann::json;

// Codes of gRPC, which the gateway passes on.
enum Code {
  kInvalidArgument = 3,
  kNotFound = 5,
  kPermissionDenied = 7,
  kExhausted = 8,
  kOutOfRange = 11,
  kUnauthenticated = 16
};

// Base64 and numbers need no escapes, so requests are written as text.
std::string keys_json(const KeyRange& keys, const std::string& prefix) {
  std::string text = fmt::format(R"("key":"{}")", to_base64(prefix + keys.from));
  if (!keys.to.empty()) text += fmt::format(R"(,"range_end":"{}")", to_base64(prefix + keys.to));
  return text;
}

std::string one_change(const Change& change, const std::string& prefix) {
  return std::visit(
      Overloaded{[&](const Put& put) {
                   return fmt::format(
                       R"({{"request_put":{{"key":"{}","value":"{}","lease":"{}"}}}})",
                       to_base64(prefix + put.key), to_base64(put.value), put.lease);
                 },
                 [&](const Delete& gone) {
                   return fmt::format(R"({{"request_delete_range":{{{}}}}})",
                                      keys_json(gone.keys, prefix));
                 }},
      change);
}

tl::unexpected<Error> unreadable(std::string_view what) {
  return fail(ErrorKind::kCorrupt, "etcd's answer cannot be read: it has no {}", what);
}

Json parse(std::string_view json) { return Json::parse(json, nullptr, false); }

const Json* member(const Json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

// A 64-bit integer; 0 if it is left out.
std::optional<std::int64_t> integer(const Json& object, const char* name) {
  const Json* found = member(object, name);
  if (found == nullptr) return 0;
  if (found->is_number_integer()) return found->get<std::int64_t>();
  if (!found->is_string()) return {};
  const auto& text = found->get_ref<const std::string&>();
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

// Bytes; none if they are left out.
std::optional<std::string> bytes(const Json& object, const char* name) {
  const Json* found = member(object, name);
  if (found == nullptr) return std::string();
  if (!found->is_string()) return {};
  return from_base64(found->get_ref<const std::string&>());
}

bool is_true(const Json& object, const char* name) {
  const Json* found = member(object, name);
  return found != nullptr && found->is_boolean() && found->get<bool>();
}

// Revisions begin with 1.
std::optional<std::int64_t> revision_of(const Json& answer) {
  const Json* header = member(answer, "header");
  const auto revision = header == nullptr ? std::nullopt : integer(*header, "revision");
  return revision.value_or(0) > 0 ? revision : std::nullopt;
}

std::string text_of(const Json& answer) {
  for (const char* name : {"message", "error"}) {
    const Json* found = member(answer, name);
    if (found != nullptr && found->is_string()) return found->get<std::string>();
  }
  return {};
}

// What etcd itself says before the gateway is asked, as plain text.
std::string first_line_of(std::string_view text) {
  constexpr std::size_t kLongest = 300;
  return valid_utf8(text.substr(0, text.find('\n')), kLongest);
}

}  // namespace

std::string change_json(const GuardedChange& change, const std::string& prefix) {
  std::string guards, changes;
  for (const Guard& one : change.guards) {
    guards += fmt::format(R"({}{{"key":"{}","target":"MOD","result":"EQUAL","mod_revision":"{}"}})",
                          guards.empty() ? "" : ",", to_base64(prefix + one.key), one.revision);
  }
  for (const Change& one : change.changes) {
    changes += (changes.empty() ? "" : ",") + one_change(one, prefix);
  }
  return fmt::format(R"({{"compare":[{}],"success":[{}]}})", guards, changes);
}

std::string query_json(const Query& query, const std::string& prefix) {
  return fmt::format(R"({{{},"limit":"{}","revision":"{}"}})", keys_json(query.keys, prefix),
                     query.limit, query.at);
}

std::string grant_json(std::chrono::seconds length) {
  return fmt::format(R"({{"TTL":"{}"}})", length.count());
}
std::string lease_json(LeaseId lease) { return fmt::format(R"({{"ID":"{}"}})", lease); }
std::string compact_json(Revision revision) {
  return fmt::format(R"({{"revision":"{}"}})", revision);
}
std::string login_json(const std::string& user, const std::string& password) {
  return Json{{"name", user}, {"password", password}}.dump(-1, ' ', true,
                                                           Json::error_handler_t::replace);
}

Result<ChangeAnswer> read_change(std::string_view json) {
  const Json answer = parse(json);
  const auto revision = revision_of(answer);
  if (!revision) return unreadable("revision");
  return ChangeAnswer{is_true(answer, "succeeded"), *revision};
}

Result<Found> read_query(std::string_view json, std::string_view prefix) {
  const Json answer = parse(json);
  const auto revision = revision_of(answer);
  if (!revision) return unreadable("revision");
  Found found{{}, is_true(answer, "more"), *revision};
  const Json* keys = member(answer, "kvs");
  if (keys == nullptr) return found;
  if (!keys->is_array()) return unreadable("list of keys");
  for (const Json& one : *keys) {
    auto key = bytes(one, "key"), value = bytes(one, "value");
    const auto changed = integer(one, "mod_revision");
    if (!key || !value || !changed) return unreadable("key that can be read");
    if (!key->starts_with(prefix)) return unreadable("key below what was asked for");
    found.keys.push_back({key->substr(prefix.size()), std::move(*value), *changed});
  }
  return found;
}

Result<LeaseId> read_grant(std::string_view json) {
  const auto lease = integer(parse(json), "ID");
  if (!lease || *lease == 0) return unreadable("lease");
  return *lease;
}

Status read_renewal(std::string_view json) {
  // The gateway wraps the answers of what is a stream in gRPC.
  const Json answer = parse(json);
  const Json* result = member(answer, "result");
  if (result == nullptr) return unreadable("renewed lease");
  const auto left = integer(*result, "TTL");
  if (!left) return unreadable("time of the lease");
  if (*left > 0) return {};
  return fail(ErrorKind::kRefused, "the lease has ended");
}

Result<std::string> read_token(std::string_view json) {
  const Json answer = parse(json);
  const Json* token = member(answer, "token");
  if (token == nullptr || !token->is_string()) return unreadable("token");
  return token->get<std::string>();
}

Refusal read_refusal(long http_status, std::string_view json) {
  const Json answer = parse(json);
  const auto code = integer(answer, "code");
  std::string text = text_of(answer);
  // Text that is no JSON is from before the gateway, and of the client's request if HTTP says so.
  if (answer.is_discarded() && http_status / 100 == 4) {
    return {ErrorKind::kUsage, first_line_of(json)};
  }
  if (text.empty()) text = fmt::format("HTTP status {}", http_status);
  switch (code.value_or(0)) {
    case kInvalidArgument:
    case kPermissionDenied:
      return {ErrorKind::kUsage, text};
    case kUnauthenticated:
      return {ErrorKind::kUsage, text, true};
    case kNotFound:
    case kOutOfRange:
      return {ErrorKind::kRefused, text};
    case kExhausted:
      if (text.find("space exceeded") != std::string::npos) {
        text +=
            ": compact and defragment it, raise --quota-backend-bytes if it is small, then "
            "etcdctl alarm disarm";
      }
      return {ErrorKind::kUnreachable, text};
    default:
      return {ErrorKind::kUnreachable, text};
  }
}

}  // namespace antdt::store
