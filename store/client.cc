#include "store/client.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/os/fs.h"
#include "store/gateway_json.h"

namespace antdt::store {
namespace {

Status check_readable(const std::string& path) {
  if (path.empty() || ::access(path.c_str(), R_OK) == 0) return {};
  return fail_errno(ErrorKind::kUsage, errno, path);
}

Result<std::string> first_line(const std::string& path) {
  if (path.empty()) return std::string();
  auto text = read_file(path);
  if (!text) return fail(ErrorKind::kUsage, "{}", text.error().message);
  return text->substr(0, text->find_first_of("\r\n"));
}

}  // namespace

Result<std::unique_ptr<Client>> Client::make(EtcdAddress address) {
  for (const std::string& file : {address.ca, address.certificate, address.key}) {
    ANTDT_RETURN_IF_ERROR(check_readable(file));
  }
  ANTDT_TRY(std::string password, first_line(address.password_file));
  ANTDT_TRY(Http http, Http::make({address.ca, address.certificate, address.key, kConnectWithin,
                                   kAnswerWithin}));
  return std::unique_ptr<Client>(
      new Client(std::move(address), std::move(password), std::move(http)));
}

Client::Client(EtcdAddress address, std::string password, Http http)
    : address_(std::move(address)), password_(std::move(password)), http_(std::move(http)) {}

Result<std::string> Client::request(const std::string& path, const std::string& body) {
  Result<std::string> answer;
  std::string reasons;
  for (std::size_t tried = 0; tried < address_.members.size(); ++tried) {
    answer = ask(path, body);
    if (answer || answer.error().kind != ErrorKind::kUnreachable) break;
    reasons += (reasons.empty() ? "" : "; ") + answer.error().message;
    member_ = (member_ + 1) % address_.members.size();
  }
  if (answer || answer.error().kind != ErrorKind::kUnreachable) return answer;
  return fail(ErrorKind::kUnreachable, "{}", reasons);
}

Result<std::string> Client::ask(const std::string& path, const std::string& body) {
  const std::string& end_point = address_.members[member_];
  for (bool again = true;; again = false) {
    ANTDT_TRY(HttpAnswer answer, http_.post(end_point, path, body, token_));
    if (answer.status == 200) return std::move(answer.body);
    const Refusal refusal = read_refusal(answer.status, answer.body);
    const bool wants_login = refusal.kind == ErrorKind::kUsage && !address_.user.empty() &&
                             (refusal.token_is_old || token_.empty());
    if (!again || !wants_login) return fail(refusal.kind, "{}: {}", end_point, refusal.text);
    ANTDT_RETURN_IF_ERROR(log_in());
  }
}

Status Client::log_in() {
  const std::string& end_point = address_.members[member_];
  ANTDT_TRY(const HttpAnswer answer, http_.post(end_point, "/v3/auth/authenticate",
                                                login_json(address_.user, password_), ""));
  if (answer.status != 200) {
    const Refusal refusal = read_refusal(answer.status, answer.body);
    return fail(refusal.kind, "{}: user {} cannot log in: {}", end_point, address_.user,
                refusal.text);
  }
  ANTDT_TRY(token_, read_token(answer.body));
  return {};
}

Result<ChangeAnswer> Client::change(const GuardedChange& change) {
  ANTDT_TRY(const std::string answer, request("/v3/kv/txn", change_json(change, address_.prefix)));
  return read_change(answer);
}
Result<Found> Client::query(const Query& query) {
  ANTDT_TRY(const std::string answer, request("/v3/kv/range", query_json(query, address_.prefix)));
  return read_query(answer, address_.prefix);
}
Result<LeaseId> Client::grant_lease(std::chrono::seconds length) {
  ANTDT_TRY(const std::string answer, request("/v3/lease/grant", grant_json(length)));
  return read_grant(answer);
}
Status Client::renew_lease(LeaseId lease) {
  ANTDT_TRY(const std::string answer, request("/v3/lease/keepalive", lease_json(lease)));
  return read_renewal(answer);
}
Status Client::end_lease(LeaseId lease) {
  return request("/v3/lease/revoke", lease_json(lease)).map([](const auto&) {});
}
Status Client::compact(Revision revision) {
  return request("/v3/kv/compaction", compact_json(revision)).map([](const auto&) {});
}

}  // namespace antdt::store
