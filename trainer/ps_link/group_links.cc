#include "trainer/ps_link/group_links.h"

#include <fmt/format.h>

namespace antdt::ps {
namespace {

constexpr std::string_view kTcp = "tcp://";

// Messages of a server do not contain its attempt, because there is only one of each at a time.
std::string user_of(WorkerId worker, Attempt attempt) {
  if (worker.role == 's') return fmt::format("{}", worker);
  return fmt::format("{}.{}", worker, attempt);
}

}  // namespace

std::string tcp_address(const std::string& endpoint) {
  return endpoint.starts_with(kTcp) ? endpoint.substr(kTcp.size()) : std::string();
}

Result<transport::Socket> connect_to_server(transport::Context& context,
                                            const std::string& endpoint,
                                            const std::string& server_key,
                                            const transport::KeyPair& own) {
  const std::string address = tcp_address(endpoint);
  if (address.empty()) return transport::Socket::connect_ipc(context, endpoint);
  if (server_key.empty()) {
    return fail(ErrorKind::kUsage,
                "the parameter server at {} has told no key: install the same release of AntDT on "
                "every host",
                endpoint);
  }
  return transport::Socket::connect_tcp(context, address, own, server_key);
}

bool may_speak(const std::string& user, const wire::Envelope& envelope) {
  return user.empty() || user == user_of(envelope.worker, envelope.attempt);
}

// The other process of a server speaks for the same server.
void AdmittedKeys::admit(const wire::PsServe& serve) {
  names_.clear();
  for (const wire::PsKey& k : serve.keys) names_[k.key] = user_of(k.worker, k.attempt);
  if (!serve.other_key.empty()) {
    names_[serve.other_key] = user_of(WorkerId{'s', serve.index}, Attempt{});
  }
}

std::string AdmittedKeys::name_of(const std::string& key) const {
  const auto found = names_.find(key);
  return found == names_.end() ? std::string() : found->second;
}

}  // namespace antdt::ps
