// Requests as etcd's JSON gateway takes them, and its answers (paths of version 3.4 and later:
// "/v3/kv/txn"). In JSON, bytes are base64, 64-bit integers are strings, and what is zero is left
// out.
#pragma once

#include <string>
#include <string_view>

#include "store/etcd.h"

namespace antdt::store {

// `prefix` is put before every key.
[[nodiscard]] std::string change_json(const GuardedChange& change, const std::string& prefix);
[[nodiscard]] std::string query_json(const Query& query, const std::string& prefix);
[[nodiscard]] std::string grant_json(std::chrono::seconds length);
[[nodiscard]] std::string lease_json(LeaseId lease);
[[nodiscard]] std::string compact_json(Revision revision);
[[nodiscard]] std::string login_json(const std::string& user, const std::string& password);

// Errors: kCorrupt.
[[nodiscard]] Result<ChangeAnswer> read_change(std::string_view json);
// `prefix` is taken from every key; kCorrupt if one does not have it.
[[nodiscard]] Result<Found> read_query(std::string_view json, std::string_view prefix);
[[nodiscard]] Result<LeaseId> read_grant(std::string_view json);
// kRefused if the lease has ended.
[[nodiscard]] Status read_renewal(std::string_view json);
[[nodiscard]] Result<std::string> read_token(std::string_view json);

// What an answer with an HTTP status other than 200 says.
struct Refusal {
  ErrorKind kind = ErrorKind::kUnreachable;
  std::string text;
  bool token_is_old = false;  // logging in again may help
};
[[nodiscard]] Refusal read_refusal(long http_status, std::string_view json);

}  // namespace antdt::store
