// CURVE keys in files.
//
// A key pair is two files, `<name>.key` (mode 0600, public and secret key) and
// `<name>.pub` (public key alone); both are text: a first line "antdt-key v1",
// then "name = ...", "public = <Z85>", and in the first "secret = <Z85>". A
// directory of authorised keys holds .pub files; whoever has the secret of one
// may connect. The key in NAME.pub is that of the user NAME, unless a line
// "user = ..." of the file names another one.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "core/result.h"

namespace antdt::transport {

struct PublicKey {
  std::string name;
  std::string z85;   // 40 characters
  std::string user;  // of the line "user = ..."; "" if there is none
};
struct KeyPair {
  std::string name;
  std::string public_z85;
  std::string secret_z85;
};

// A pair that is nowhere but in memory.
[[nodiscard]] Result<KeyPair> make_key_pair(const std::string& name);
// Makes a new pair and writes both files into `directory` (made 0700 if it is
// missing). Refuses to overwrite.
[[nodiscard]] Result<KeyPair> generate_key_pair(const std::string& directory,
                                                const std::string& name);
// The text of a .pub file that says whose key it is.
[[nodiscard]] Result<std::string> public_key_text(const PublicKey& key);
// Refuses a secret that others may read, and says which chmod mends it.
[[nodiscard]] Result<KeyPair> load_key_pair(const std::string& key_file);
[[nodiscard]] Result<PublicKey> load_public_key(const std::string& pub_file);

// As whom the owner of a public key (Z85) may connect; "" if not at all.
using NameOfKey = std::function<std::string(const std::string& public_z85)>;

// One that may connect.
struct AuthorizedKey {
  std::string name;        // of its file, without ".pub"
  std::string user;        // whose it is
  bool says_user = false;  // its file has a line "user = ..."
  bool operator==(const AuthorizedKey&) const = default;
};

// A directory of .pub files, read again whenever it or a file in it changed.
class AuthorizedKeys {
 public:
  explicit AuthorizedKeys(std::string directory);
  // The name that `public_z85` is authorised as, or "" if it is not.
  [[nodiscard]] std::string name_of(const std::string& public_z85);
  // All of them as they are now, by key.
  [[nodiscard]] const std::map<std::string, AuthorizedKey>& all();

 private:
  void reload_if_changed();
  std::string directory_;
  std::string fingerprint_;                    // of the listing, to see changes
  std::map<std::string, AuthorizedKey> keys_;  // by key
};

}  // namespace antdt::transport
