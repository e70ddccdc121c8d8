// The ledger and the accounts of the job: the one place where decisions about records are written
// down and counted. The effects of a ledger decision follow it in the order in which decisions were
// made, and its journal records come first.
#pragma once

#include <string>

#include "core/ids.h"
#include "core/result.h"
#include "core/wire/membership_messages.h"
#include "core/wire/shard_messages.h"
#include "ctl/job/work.h"
#include "shard_server/accounts/accounts.h"
#include "shard_server/ledger/ledger.h"

namespace antdt::ctl::job {

struct Parts;

class Records {
 public:
  Records(Parts& parts, shard_server::Ledger ledger, shard_server::Accounts accounts);

  void step(const shard_server::ledger::Input& event, Work& work);
  void carry_out(shard_server::ledger::Effect& effect, Work& work);
  // The job is new.
  void on(const JobCreated& e, Work& work);
  // A worker's requests. What it holds afterwards is reported to the run's history.
  void fetch(const shard_server::ledger::FetchRequested& e, Work& work);
  void recalled(const shard_server::ledger::RecallAnswered& e, Work& work);
  // Training goes on from these images.
  [[nodiscard]] Status rewind(Lineage lineage, std::string ledger_image, std::string accounts_image,
                              Work& work);

  [[nodiscard]] const shard_server::Ledger& ledger() const { return ledger_; }
  [[nodiscard]] const shard_server::Accounts& accounts() const { return accounts_; }
  // Null if the ledger does not know this attempt.
  [[nodiscard]] const shard_server::Holder* holder_of(Member member) const;
  // Both images as of these places.
  struct Images {
    std::string ledger, accounts;
  };
  [[nodiscard]] Result<Images> images_at(const std::vector<wire::MemberPlace>& places) const;

 private:
  void persist(std::string bytes, Work& work);
  template <class Request>
  void take(const Request& request, Work& work);

  Parts& parts_;
  shard_server::Ledger ledger_;
  shard_server::Accounts accounts_;
  // effects of the present step; kept so that its memory is reused
  shard_server::ledger::Effects effects_;
};

}  // namespace antdt::ctl::job
