#include "jobd/standby/run_files.h"

#include <algorithm>
#include <utility>

#include "core/crypto/seal.h"

namespace antdt::jobd {
namespace {

constexpr std::string_view kEncrypted = "antdtAE1";

std::string_view text_of(const crypto::Nonce& nonce) {
  return {reinterpret_cast<const char*>(nonce.data()), nonce.size()};
}

}  // namespace

RunFileSeal::RunFileSeal(const transport::KeyPair& key, std::string journal)
    : secret_(crypto::Secret().derive(key.secret_z85)), journal_(std::move(journal)) {}

crypto::Mac RunFileSeal::code_of(std::string_view name, std::string_view bytes) const {
  crypto::Transcript text("a run's file in etcd");
  text << std::string_view(journal_) << name << bytes;
  return secret_.mac(text.text());
}

crypto::Secret RunFileSeal::key_of(std::string_view name, std::string_view nonce) const {
  crypto::Transcript text("the key of a run's file in etcd");
  text << std::string_view(journal_) << name << nonce;
  return secret_.derive(text.text());
}

Result<std::string> RunFileSeal::seal(std::string_view name, std::string_view bytes) const {
  ANTDT_TRY(const crypto::Nonce nonce, crypto::random_nonce());
  std::string sealed(kEncrypted);
  sealed.append(text_of(nonce));
  const std::size_t begin = sealed.size();
  sealed.resize(begin + bytes.size() + crypto::kSealBytes);
  const auto out = std::as_writable_bytes(std::span(sealed)).subspan(begin);
  crypto::Sealer(key_of(name, text_of(nonce)))
      .seal({}, std::as_bytes(std::span(bytes)), out.first(bytes.size()),
            out.subspan(bytes.size()));
  return sealed;
}

std::optional<std::string> RunFileSeal::decrypt(std::string_view name,
                                                std::string_view sealed) const {
  constexpr std::size_t kNonce = std::tuple_size_v<crypto::Nonce>;
  if (sealed.size() < kNonce + crypto::kSealBytes) return std::nullopt;
  const std::string_view nonce = sealed.substr(0, kNonce);
  const std::string_view seal = sealed.substr(sealed.size() - crypto::kSealBytes);
  std::string bytes(sealed.substr(kNonce, sealed.size() - kNonce - crypto::kSealBytes));
  const bool is_whole =
      crypto::Opener(key_of(name, nonce))
          .open({}, std::as_writable_bytes(std::span(bytes)), std::as_bytes(std::span(seal)));
  return is_whole ? std::optional(std::move(bytes)) : std::nullopt;
}

Result<std::string> RunFileSeal::open(std::string_view name, std::string_view sealed) const {
  if (sealed.starts_with(kEncrypted)) {
    if (auto bytes = decrypt(name, sealed.substr(kEncrypted.size()))) return std::move(*bytes);
  }
  crypto::Mac code{};
  const std::size_t have = std::min(code.size(), sealed.size());
  std::ranges::copy(std::as_bytes(std::span(sealed.substr(0, have))), code.begin());
  const std::string_view bytes = sealed.substr(have);
  if (have == code.size() && crypto::same(code, code_of(name, bytes))) return std::string(bytes);
  return fail(ErrorKind::kCorrupt,
              "the file {} that etcd has of job {} was not written with this host's job.key: copy "
              "the directory cluster.keys of the launching host here; if it is the same, somebody "
              "else has written into etcd, or a newer release has",
              name, journal_);
}

}  // namespace antdt::jobd
