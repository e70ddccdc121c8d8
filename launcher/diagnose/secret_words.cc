#include "launcher/diagnose/secret_words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <vector>

namespace antdt::launcher {
namespace {

constexpr std::size_t kShortestToken = 16;
constexpr std::size_t kLongestToken = 8192;

constexpr std::array<std::string_view, 16> kSecretParts = {
    "password", "passwd",  "passphrase",    "pwd",        "secret",      "secrets",
    "token",    "bearer",  "cookie",        "credential", "credentials", "apikey",
    "authkey",  "privkey", "authorization", "z85"};
// "key" alone may be any key of a table; after one of these it is a secret.
constexpr std::array<std::string_view, 10> kBeforeKey = {"api",  "access",  "private",    "secret",
                                                         "auth", "account", "encryption", "signing",
                                                         "ssh",  "curve"};
constexpr std::array<std::string_view, 9> kTokenPrefixes = {
    "ghp_", "gho_", "github_pat_", "glpat-", "hf_", "sk-", "xoxb-", "xoxp-", "AKIA"};
constexpr std::array<std::string_view, 11> kHarmless = {"OMP_",  "MKL_",   "OPENBLAS_", "NCCL_",
                                                        "GLOO_", "TORCH_", "CUDA_",     "NVIDIA_",
                                                        "UCX_",  "KMP_",   "FI_"};
constexpr std::array<std::string_view, 8> kHarmlessNames = {
    "PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "LANG",
    "TZ",   "MASTER_ADDR",     "MASTER_PORT"};

// The parts of a name in lower case: at '_', '-', '.', and where a small letter meets a capital.
std::vector<std::string> parts_of(std::string_view name) {
  std::vector<std::string> parts(1);
  bool was_small = false;
  for (const char c : name) {
    const auto letter = static_cast<unsigned char>(c);
    if (std::isalnum(letter) == 0) {
      parts.emplace_back();
      was_small = false;
      continue;
    }
    if (was_small && std::isupper(letter) != 0) parts.emplace_back();
    parts.back() += static_cast<char>(std::tolower(letter));
    was_small = std::islower(letter) != 0;
  }
  return parts;
}

bool is_upper_name(std::string_view name) {
  return std::ranges::none_of(name, [](unsigned char c) { return std::islower(c) != 0; });
}

bool is_among(const auto& list, std::string_view word) {
  return std::ranges::find(list, word) != list.end();
}

}  // namespace

bool names_secret(std::string_view name) {
  if (name == "PWD") return false;  // the working directory
  const std::vector<std::string> parts = parts_of(name);
  if (std::ranges::any_of(parts, [](const auto& p) { return is_among(kSecretParts, p); })) {
    return true;
  }
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (parts[i] == "key" && is_among(kBeforeKey, parts[i - 1])) return true;
  }
  // A variable of the environment: WANDB_KEY
  return parts.size() > 1 && parts.back() == "key" && is_upper_name(name) &&
         name.find('_') != std::string_view::npos;
}

bool looks_secret(std::string_view word) {
  if (word.size() < kShortestToken) return false;
  if (word.starts_with("eyJ") && std::ranges::count(word.substr(0, kLongestToken), '.') == 2)
    return true;
  return std::ranges::any_of(kTokenPrefixes, [&](auto prefix) { return word.starts_with(prefix); });
}

bool is_harmless_variable(std::string_view name) {
  if (names_secret(name)) return false;
  return is_among(kHarmlessNames, name) ||
         std::ranges::any_of(kHarmless, [&](auto prefix) { return name.starts_with(prefix); });
}

}  // namespace antdt::launcher
