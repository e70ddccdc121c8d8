// Files of CURVE keys, which people copy and edit.
#include <sys/stat.h>

#include "core/transport/keys.h"
#include "tests/fuzz/support/fuzz.h"

namespace {

void check_key(const std::string& z85) {
  ANTDT_CHECK(z85.size() == 40 && z85.find('\0') == std::string::npos, "a key '{}'", z85);
}

}  // namespace

ANTDT_FUZZ_TARGET(key_file)(const std::uint8_t* data, std::size_t size) {
  using namespace antdt;
  static const fuzz::MemoryFile file;
  file.write(fuzz::Input(data, size).rest());
  ANTDT_CHECK(fchmod(file.fd(), 0600) == 0, "no chmod of memory");
  if (const auto key = transport::load_public_key(file.path())) check_key(key->z85);
  if (const auto pair = transport::load_key_pair(file.path())) {
    check_key(pair->public_z85);
    check_key(pair->secret_z85);
  }
  return 0;
}
