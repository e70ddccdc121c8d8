// Domains ([[domain]] in job.toml): places whose inner links are fast, such as a data centre or a
// rack. Which process is in which domain. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/ids.h"
#include "core/result.h"

namespace antdt {

struct Domain {
  std::string name;
  std::vector<std::string> hosts;    // names of hosts
  std::vector<std::string> workers;  // ids of workers and servers, wherever they run
  // If data are pinned: paths and globs of the files that are in it, or ranges of records.
  std::vector<std::string> data = {};
  std::string described = {};  // the file that describes its data, if no other host has them
  bool operator==(const Domain&) const = default;
};

class Domains {
 public:
  Domains() = default;
  explicit Domains(std::vector<Domain> domains) : domains_(std::move(domains)) {}

  // The name of the domain that names the process by its id, else of the one that names its host;
  // "" if there is none.
  [[nodiscard]] std::string of(WorkerId process, std::string_view host) const;
  [[nodiscard]] const std::vector<Domain>& all() const { return domains_; }

 private:
  std::vector<Domain> domains_;
};

// Reads "domain" of a job's effective configuration. The error (kUsage) says what cannot be read.
[[nodiscard]] Result<Domains> parse_domains(const std::string& config_json);

}  // namespace antdt
