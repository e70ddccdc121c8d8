// Files of a run that a job daemon keeps in etcd for job daemons on other hosts, sealed by the
// user's key (job.key in cluster.keys), which is on those hosts too. What a job executes is in
// job.json, so whoever can write into etcd must not be able to change it.
#pragma once

#include <string>
#include <string_view>

#include "core/crypto/secret.h"
#include "core/result.h"
#include "core/transport/keys.h"

namespace antdt::jobd {

// Kept when the job ends; empty before. Then other hosts know how it ended.
inline constexpr const char* kSummaryFile = "summary.json";

class RunFileSeal {
 public:
  // `journal`: the job's name in etcd.
  RunFileSeal(const transport::KeyPair& key, std::string journal);

  // HMAC-SHA-256, and the bytes.
  [[nodiscard]] std::string seal(std::string_view name, std::string_view bytes) const;
  // The bytes. kCorrupt unless the same key sealed them, for the same journal and name.
  [[nodiscard]] Result<std::string> open(std::string_view name, std::string_view sealed) const;

 private:
  [[nodiscard]] crypto::Mac code_of(std::string_view name, std::string_view bytes) const;

  crypto::Secret secret_;
  std::string journal_;
};

}  // namespace antdt::jobd
