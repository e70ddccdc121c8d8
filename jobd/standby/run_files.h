// Files of a run that a job daemon keeps in etcd for job daemons on other hosts, encrypted and
// sealed with the user's key (job.key in cluster.keys), which is on those hosts too. What a job
// executes is in job.json, and so is the environment of its programs, with their passwords: whoever
// can read or write etcd must be able neither to learn nor to change it.
#pragma once

#include <optional>
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

  // A word, a nonce, and the bytes by AES-256-GCM with a key that is derived for this nonce.
  // kInternal if there is no nonce to be had.
  [[nodiscard]] Result<std::string> seal(std::string_view name, std::string_view bytes) const;
  // The bytes. kCorrupt unless the same key sealed them, for the same journal and name. Also of
  // files that an earlier release sealed without encrypting them: HMAC-SHA-256, and the bytes.
  [[nodiscard]] Result<std::string> open(std::string_view name, std::string_view sealed) const;

 private:
  [[nodiscard]] crypto::Mac code_of(std::string_view name, std::string_view bytes) const;
  [[nodiscard]] crypto::Secret key_of(std::string_view name, std::string_view nonce) const;
  [[nodiscard]] std::optional<std::string> decrypt(std::string_view name,
                                                   std::string_view sealed) const;

  crypto::Secret secret_;
  std::string journal_;
};

}  // namespace antdt::jobd
