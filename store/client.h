// Sends requests to the members of an etcd cluster, over its JSON gateway.
//
// A request goes to the member that answered last; if that one does not answer, to the others, each
// once. A user logs in when the first request is refused for want of a token, and again when etcd
// has forgotten the token.
//
// One thread at a time.
#pragma once

#include <optional>
#include <string>

#include "core/schema/etcd_address.h"
#include "store/etcd.h"
#include "store/http.h"

namespace antdt::store {

class Client final : public Etcd {
 public:
  // How long one member has to accept a connection, and to answer.
  static constexpr Duration kConnectWithin = std::chrono::seconds(1);
  static constexpr Duration kAnswerWithin = std::chrono::seconds(3);

  // Reads the user's password. kUsage if a file cannot be read.
  [[nodiscard]] static Result<std::unique_ptr<Client>> make(EtcdAddress address);

  Result<ChangeAnswer> change(const GuardedChange& change) override;
  Result<Found> query(const Query& query) override;
  Result<LeaseId> grant_lease(std::chrono::seconds length) override;
  Status renew_lease(LeaseId lease) override;
  Status end_lease(LeaseId lease) override;
  Status compact(Revision revision) override;

 private:
  Client(EtcdAddress address, std::string password, Http http);
  Result<std::string> request(const std::string& path, const std::string& body);
  // To the present member.
  Result<std::string> ask(const std::string& path, const std::string& body);
  Status log_in();

  EtcdAddress address_;
  std::string password_;
  Http http_;
  std::size_t member_ = 0;
  std::string token_;
};

}  // namespace antdt::store
