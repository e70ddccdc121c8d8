// Domains whose records wait because none of their workers is there, and workers that wait because
// their domain's records are done (data.pin = "domain").
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "shard_server/ledger/ledger.h"

namespace antdt::ctl {

// A domain in the open phase.
struct PinnedDomain {
  std::string name;
  std::uint64_t records = 0;  // of the phase
  std::uint64_t left = 0;     // of them: neither committed nor skipped
  std::uint64_t members = 0;  // workers that are given its records
  [[nodiscard]] bool waits() const { return left > 0 && members == 0; }
  [[nodiscard]] bool done() const { return left == 0; }
};
// Those that have records; empty if the records of the phase are not pinned.
[[nodiscard]] std::vector<PinnedDomain> pinned_domains(const shard_server::Ledger& ledger);

// Whether nobody can train anything: records are left, and only in domains without workers.
[[nodiscard]] bool all_wait(const std::vector<PinnedDomain>& domains);

// "epoch 2 waits for domain eu: ...": which records wait for workers, and what to do. Empty: none.
[[nodiscard]] std::string waiting_text(const std::vector<PinnedDomain>& domains, Epoch epoch,
                                       std::string_view run);
// "the workers of domain us wait: its records of epoch 2 are done". Empty: none wait.
[[nodiscard]] std::string done_text(const std::vector<PinnedDomain>& domains, Epoch epoch);

// Says once that a domain waits.
class PinWatch {
 public:
  // Returns the text to be reported, if a domain has just waited for so long that its workers are
  // not merely being started again.
  [[nodiscard]] std::optional<std::string> look(const std::vector<PinnedDomain>& domains,
                                                Epoch epoch, std::string_view run, MonoTime now);
  // Whether steps may be expected; true if that has changed since the last call.
  [[nodiscard]] bool changes(bool all_wait);

 private:
  struct Since {
    std::string domain;
    MonoTime begun{};
    bool said = false;
  };
  std::vector<Since> waits_;
  bool all_wait_ = false;
};

}  // namespace antdt::ctl
