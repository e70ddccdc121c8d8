// CURVE keys in files.
//
// A key pair is two files, `<name>.key` (mode 0600, public and secret key) and `<name>.pub` (public
// key alone). Both are text: a first line "antdt-key v1", then "name = ...", "public = <Z85>", and
// in the first "secret = <Z85>". A directory of authorized keys contains .pub files; a peer with
// the secret of one of them may connect. The key in NAME.pub is that of the user NAME, unless a
// line "user = ..." in the file names another one.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "core/result.h"

namespace antdt::transport {

struct PublicKey {
  std::string name;
  std::string z85;   // 40 characters
  std::string user;  // from the line "user = ..."; "" if there is none
};
struct KeyPair {
  std::string name;
  std::string public_z85;
  std::string secret_z85;
};

// Makes a pair in memory only.
[[nodiscard]] Result<KeyPair> make_key_pair(const std::string& name);
// Makes a new pair and writes both files into `directory` (made with 0700 if it is missing).
// Refuses to overwrite files.
[[nodiscard]] Result<KeyPair> generate_key_pair(const std::string& directory,
                                                const std::string& name);
// The text of a .pub file, with the key's user.
[[nodiscard]] Result<std::string> public_key_text(const PublicKey& key);
// Refuses a secret that others may read, and says which chmod mends it.
[[nodiscard]] Result<KeyPair> load_key_pair(const std::string& key_file);
[[nodiscard]] Result<PublicKey> load_public_key(const std::string& pub_file);

// The name under which the owner of a public key (Z85) may connect; "" if it may not.
using NameOfKey = std::function<std::string(const std::string& public_z85)>;

// A key that may connect.
struct AuthorizedKey {
  std::string name;        // name of its file, without ".pub"
  std::string user;        // the key's user
  bool says_user = false;  // whether its file has a line "user = ..."
  bool operator==(const AuthorizedKey&) const = default;
};

// A directory of .pub files, which is read again whenever it or a file in it changed. Only what is
// found to be gone, or to be another key, takes a key away: a directory that cannot be listed for a
// moment does not.
class AuthorizedKeys {
 public:
  explicit AuthorizedKeys(std::string directory);
  // The name under which `public_z85` is authorized, or "" if it is not.
  [[nodiscard]] std::string name_of(const std::string& public_z85);
  // All authorized keys, by public key.
  [[nodiscard]] const std::map<std::string, AuthorizedKey>& all();

 private:
  struct File {
    std::string version;               // of what was read last, to detect changes
    std::optional<AuthorizedKey> key;  // none: it is no key, or could not be read
    std::string z85;                   // of that key
    bool again = false;                // it could not be read, and is tried again each time
    std::string trouble;               // what was logged about it
  };
  void reload_if_changed();
  // Returns whether the keys may have changed.
  bool reread(const std::string& name, const std::string& version, File& file);
  static void tell(std::string& told, const std::string& trouble);
  std::string directory_;
  std::string trouble_;                        // what was logged about the directory
  std::map<std::string, File> files_;          // by name
  std::map<std::string, AuthorizedKey> keys_;  // by public key
};

}  // namespace antdt::transport
