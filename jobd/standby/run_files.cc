#include "jobd/standby/run_files.h"

#include <algorithm>
#include <utility>

namespace antdt::jobd {

RunFileSeal::RunFileSeal(const transport::KeyPair& key, std::string journal)
    : secret_(crypto::Secret().derive(key.secret_z85)), journal_(std::move(journal)) {}

crypto::Mac RunFileSeal::code_of(std::string_view name, std::string_view bytes) const {
  crypto::Transcript text("a run's file in etcd");
  text << std::string_view(journal_) << name << bytes;
  return secret_.mac(text.text());
}

std::string RunFileSeal::seal(std::string_view name, std::string_view bytes) const {
  const crypto::Mac code = code_of(name, bytes);
  std::string sealed(reinterpret_cast<const char*>(code.data()), code.size());
  return sealed.append(bytes);
}

Result<std::string> RunFileSeal::open(std::string_view name, std::string_view sealed) const {
  crypto::Mac code{};
  const std::size_t have = std::min(code.size(), sealed.size());
  std::ranges::copy(std::as_bytes(std::span(sealed.substr(0, have))), code.begin());
  const std::string_view bytes = sealed.substr(have);
  if (have == code.size() && crypto::same(code, code_of(name, bytes))) return std::string(bytes);
  return fail(ErrorKind::kCorrupt,
              "the file {} that etcd has of job {} was not written with this host's job.key: copy "
              "the directory cluster.keys of the launching host here; if it is the same, somebody "
              "else has written into etcd",
              name, journal_);
}

}  // namespace antdt::jobd
