#include "core/transport/keys.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <string_view>

#include "core/log/log.h"
#include "core/os/fs.h"
#include "core/transport/zmq_error.h"

namespace antdt::transport {

namespace {

constexpr std::string_view kFirstLine = "antdt-key v1";
constexpr std::size_t kZ85Size = 40;

bool is_key_text(std::string_view z85) {
  // The decoder would stop at a zero byte and accept what is before it as a key.
  if (z85.size() != kZ85Size || z85.find('\0') != std::string_view::npos) return false;
  std::array<std::uint8_t, 32> raw{};
  return zmq_z85_decode(raw.data(), std::string(z85).c_str()) != nullptr;
}

// A key's name becomes a file name, and a user name in messages.
Status check_name(const std::string& name) {
  const bool fits = !name.empty() && name.size() <= 64 && name[0] != '.' && name[0] != '-' &&
                    name.find_first_not_of(
                        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                        "0123456789._-") == std::string::npos;
  if (fits) return {};
  return fail(ErrorKind::kUsage,
              "'{}' cannot name a key: take 1 to 64 letters, digits, '.', '_' or '-', beginning "
              "with a letter or a digit",
              name);
}

std::string_view trim(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// Parses the "name = value" lines of a key file. Empty lines and '#' comments are allowed, because
// people edit these files.
Result<std::map<std::string, std::string>> parse_key_file(const std::string& path,
                                                          std::string_view text) {
  std::map<std::string, std::string> values;
  bool first = true;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = trim(text.substr(at, end - at));
    at = end + 1;
    if (line.empty() || line[0] == '#') continue;
    if (std::exchange(first, false)) {
      if (line == kFirstLine) continue;
      return fail(ErrorKind::kUsage, "{} is no key file: it does not begin with '{}'", path,
                  kFirstLine);
    }
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) {
      return fail(ErrorKind::kUsage, "{}: a line of a key file is 'name = value'", path);
    }
    values[std::string(trim(line.substr(0, equals)))] = trim(line.substr(equals + 1));
  }
  if (first) return fail(ErrorKind::kUsage, "{} is no key file: it is empty", path);
  return values;
}

Result<std::string> key_value(const std::map<std::string, std::string>& values,
                              const std::string& path, const char* which) {
  const auto found = values.find(which);
  if (found != values.end() && is_key_text(found->second)) return found->second;
  return fail(ErrorKind::kUsage, "{}: '{}' is missing or not a key of 40 Z85 characters", path,
              which);
}

Result<std::string> name_value(const std::map<std::string, std::string>& values,
                               const std::string& path) {
  const auto found = values.find("name");
  if (found == values.end()) return fail(ErrorKind::kUsage, "{}: 'name' is missing", path);
  ANTDT_RETURN_IF_ERROR(check_name(found->second));
  return found->second;
}

// The name of a user of the system, which may be in quotation marks.
Status check_user(const std::string& path, const std::string& user) {
  constexpr std::size_t kLongest = 256;
  const bool fits =
      !user.empty() && user.size() <= kLongest && std::ranges::none_of(user, [](unsigned char c) {
        return std::iscntrl(c) != 0 || c == '/' || c == ':' || c == '"';
      });
  if (fits) return {};
  return fail(ErrorKind::kUsage, "{}: 'user = {}' names no user of a system", path, user);
}

Result<std::string> user_value(const std::map<std::string, std::string>& values,
                               const std::string& path) {
  const auto found = values.find("user");
  if (found == values.end()) return std::string();
  std::string user = found->second;
  if (user.size() >= 2 && user.front() == '"' && user.back() == '"') {
    user = user.substr(1, user.size() - 2);
  }
  ANTDT_RETURN_IF_ERROR(check_user(path, user));
  return user;
}

Status write_new_file(const std::string& path, const std::string& text, mode_t mode) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
  if (fd < 0 && errno == EEXIST) {
    return fail(ErrorKind::kUsage,
                "{} is there already and keys are not overwritten: remove it or take another name",
                path);
  }
  if (fd < 0) return fail_errno(ErrorKind::kIo, errno, "making " + path);
  const ssize_t written = write(fd, text.data(), text.size());
  const int error = written < 0 ? errno : ENOSPC;
  const bool whole =
      written == static_cast<ssize_t>(text.size()) && fchmod(fd, mode) == 0 && fsync(fd) == 0;
  close(fd);
  if (!whole) {
    unlink(path.c_str());
    return fail_errno(ErrorKind::kIo, error, "writing " + path);
  }
  return {};
}

Result<std::map<std::string, std::string>> read_key_file(const std::string& path) {
  ANTDT_TRY(const std::string text, read_file(path));
  return parse_key_file(path, text);
}

}  // namespace

Result<KeyPair> make_key_pair(const std::string& name) {
  std::array<char, kZ85Size + 1> public_key{};
  std::array<char, kZ85Size + 1> secret_key{};
  if (zmq_curve_keypair(public_key.data(), secret_key.data()) != 0) {
    return fail_zmq(ErrorKind::kInternal, "making a CURVE key pair");
  }
  return KeyPair{name, public_key.data(), secret_key.data()};
}

Result<KeyPair> generate_key_pair(const std::string& directory, const std::string& name) {
  ANTDT_RETURN_IF_ERROR(check_name(name));
  ANTDT_RETURN_IF_ERROR(make_directories(directory, 0700));
  ANTDT_TRY(KeyPair pair, make_key_pair(name));
  const std::string open_part =
      fmt::format("{}\nname = {}\npublic = {}\n", kFirstLine, name, pair.public_z85);
  const std::string base = directory + "/" + name;
  ANTDT_RETURN_IF_ERROR(write_new_file(
      base + ".key", open_part + fmt::format("secret = {}\n", pair.secret_z85), 0600));
  if (Status written = write_new_file(base + ".pub", open_part, 0644); !written) {
    unlink((base + ".key").c_str());
    return tl::unexpected(std::move(written).error());
  }
  ANTDT_RETURN_IF_ERROR(sync_directory(directory));
  return pair;
}

Result<KeyPair> load_key_pair(const std::string& key_file) {
  struct stat info {};
  if (stat(key_file.c_str(), &info) != 0) {
    return fail_errno(ErrorKind::kUsage, errno, "reading the key " + key_file);
  }
  if ((info.st_mode & 077) != 0) {
    return fail(ErrorKind::kUsage,
                "{} holds a secret key and others may read it (mode {:04o}); mend it with: "
                "chmod 600 {}",
                key_file, info.st_mode & 07777, key_file);
  }
  ANTDT_TRY(const auto values, read_key_file(key_file));
  ANTDT_TRY(std::string name, name_value(values, key_file));
  ANTDT_TRY(std::string public_key, key_value(values, key_file, "public"));
  ANTDT_TRY(std::string secret_key, key_value(values, key_file, "secret"));
  std::array<char, kZ85Size + 1> derived{};
  if (zmq_curve_public(derived.data(), secret_key.c_str()) != 0 || public_key != derived.data()) {
    return fail(ErrorKind::kUsage, "{}: the public key does not belong to the secret one",
                key_file);
  }
  return KeyPair{std::move(name), std::move(public_key), std::move(secret_key)};
}

Result<PublicKey> load_public_key(const std::string& pub_file) {
  ANTDT_TRY(const auto values, read_key_file(pub_file));
  ANTDT_TRY(std::string name, name_value(values, pub_file));
  ANTDT_TRY(std::string public_key, key_value(values, pub_file, "public"));
  ANTDT_TRY(std::string user, user_value(values, pub_file));
  return PublicKey{std::move(name), std::move(public_key), std::move(user)};
}

Result<std::string> public_key_text(const PublicKey& key) {
  ANTDT_RETURN_IF_ERROR(check_name(key.name));
  std::string text = fmt::format("{}\nname = {}\npublic = {}\n", kFirstLine, key.name, key.z85);
  if (key.user.empty()) return text;
  ANTDT_RETURN_IF_ERROR(check_user("the key " + key.name, key.user));
  return text + fmt::format("user = {}\n", key.user);
}

// -------------------------------------------------------------- AuthorizedKeys

namespace {

bool is_public_key_file(std::string_view file_name) {
  return file_name.size() > 4 && file_name[0] != '.' && file_name.ends_with(".pub");
}

// Changes with the content of a file and with who may read it. Times alone do not tell two changes
// of one tick of the kernel's clock apart.
std::string version_of(const struct stat& info) {
  return fmt::format("{} {} {}.{:09} {}.{:09} {:o} {} {}", info.st_ino, info.st_size,
                     info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_ctim.tv_sec,
                     info.st_ctim.tv_nsec, info.st_mode, info.st_uid, info.st_gid);
}

// Names of the .pub files, sorted, each with its version; "" if the file system does not tell it.
// Empty if there is no such directory; an error if there may be one.
Result<std::map<std::string, std::string>> list_public_keys(const std::string& directory) {
  std::map<std::string, std::string> files;
  DIR* listing = opendir(directory.c_str());
  if (listing == nullptr && (errno == ENOENT || errno == ENOTDIR)) return files;
  if (listing == nullptr) return fail_errno(ErrorKind::kIo, errno, "listing " + directory);
  errno = 0;
  while (const dirent* entry = readdir(listing)) {
    struct stat info {};
    const bool wanted = is_public_key_file(entry->d_name);
    if (wanted && fstatat(dirfd(listing), entry->d_name, &info, 0) == 0) {
      files[entry->d_name] = version_of(info);
    } else if (wanted && errno != ENOENT) {
      files[entry->d_name] = "";
    }
    errno = 0;
  }
  const int error = errno;
  closedir(listing);
  if (error != 0) return fail_errno(ErrorKind::kIo, error, "listing " + directory);
  return files;
}

}  // namespace

AuthorizedKeys::AuthorizedKeys(std::string directory) : directory_(std::move(directory)) {}

std::string AuthorizedKeys::name_of(const std::string& public_z85) {
  reload_if_changed();
  const auto found = keys_.find(public_z85);
  return found == keys_.end() ? std::string() : found->second.name;
}

const std::map<std::string, AuthorizedKey>& AuthorizedKeys::all() {
  reload_if_changed();
  return keys_;
}

// This is called once for each connection, twice a second, or for a thousandth of a second at a
// time while somebody waits (context.cc), so listing the directory each time is cheap enough, and
// no change can be missed.
void AuthorizedKeys::reload_if_changed() {
  const auto listed = list_public_keys(directory_);
  if (!listed) return tell(trouble_, listed.error().message + "; the keys stay as they are");
  trouble_.clear();
  bool changed = std::erase_if(files_, [&](const auto& f) { return !listed->contains(f.first); });
  for (const auto& [name, version] : *listed) {
    File& file = files_[name];
    // An unknown version takes no key away.
    const bool same = version.empty() ? file.key.has_value() : file.version == version;
    if (!same || file.again) changed = reread(name, version, file) || changed;
  }
  if (!changed) return;
  keys_.clear();
  for (const auto& [name, file] : files_) {
    if (file.key.has_value()) keys_[file.z85] = *file.key;
  }
}

// A file that cannot be read now is read again the next time, and its key does not count until
// then: it may be another one.
bool AuthorizedKeys::reread(const std::string& name, const std::string& version, File& file) {
  const Result<PublicKey> key = load_public_key(directory_ + "/" + name);
  const bool had_key = file.key.has_value();
  file.version = version;
  file.key.reset();
  file.again = !key && key.error().kind == ErrorKind::kIo;
  if (!key) {
    tell(file.trouble, "authorized key ignored: " + key.error().message);
    return had_key;
  }
  const std::string stem = name.substr(0, name.size() - 4);
  file.z85 = key->z85;
  file.key = {stem, key->user.empty() ? stem : key->user, !key->user.empty()};
  file.trouble.clear();
  return true;
}

// Looks come often, so what stays wrong is logged once.
void AuthorizedKeys::tell(std::string& told, const std::string& trouble) {
  if (told == trouble) return;
  log_warn("{}", trouble);
  told = trouble;
}

}  // namespace antdt::transport
