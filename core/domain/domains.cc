#include "core/domain/domains.h"

#include <algorithm>

#include "core/schema/job_reader.h"

namespace antdt {

std::string Domains::of(WorkerId process, std::string_view host) const {
  const std::string id = to_string(process);
  const auto names = [](const std::vector<std::string>& list, std::string_view name) {
    return std::ranges::find(list, name) != list.end();
  };
  for (const Domain& domain : domains_) {
    if (names(domain.workers, id)) return domain.name;
  }
  for (const Domain& domain : domains_) {
    if (names(domain.hosts, host)) return domain.name;
  }
  return {};
}

Result<Domains> parse_domains(const std::string& config_json) {
  std::vector<Domain> domains;
  schema::JobReader job(config_json);
  job.each("domain", [&] {
    Domain& domain = domains.emplace_back();
    job.read("domain[].name", domain.name);
    job.read("domain[].hosts", domain.hosts);
    job.read("domain[].workers", domain.workers);
  });
  ANTDT_RETURN_IF_ERROR(job.status());
  return Domains(std::move(domains));
}

}  // namespace antdt
