#include "store/base64.h"

#include <openssl/evp.h>

namespace antdt::store {
namespace {

const unsigned char* as_bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* as_bytes(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // OpenSSL writes a zero behind it
  const int size = EVP_EncodeBlock(as_bytes(text), as_bytes(bytes), static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(size));
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  // OpenSSL overlooks spaces and line breaks around the text, and takes '=' for a value.
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  const std::string_view digits = text.substr(0, text.size() - padding);
  if (text.size() % 4 != 0 || digits.find_first_of("= \t\r\n") != std::string_view::npos) return {};
  std::string bytes(text.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(as_bytes(bytes), as_bytes(text), static_cast<int>(text.size()));
  if (size != static_cast<int>(bytes.size())) return {};
  bytes.resize(bytes.size() - padding);
  return bytes;
}

}  // namespace antdt::store
