#include "trainer/collective/shm/host_identity.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/crypto/secret.h"
#include "core/os/fs.h"
#include "core/os/owned_fd.h"

namespace antdt::trainer {
namespace {

Result<ino_t> namespace_of_this_process(const char* path) {
  struct stat found {};
  if (stat(path, &found) == 0) return found.st_ino;
  return fail_errno(ErrorKind::kIo, errno, path);
}

}  // namespace

Result<std::string> own_host_identity() {
  ANTDT_TRY(const std::string boot, read_file("/proc/sys/kernel/random/boot_id"));
  ANTDT_TRY(const ino_t network, namespace_of_this_process("/proc/self/ns/net"));
  ANTDT_TRY(const ino_t users, namespace_of_this_process("/proc/self/ns/user"));
  const OwnedFd memory(memfd_create("antdt", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory.is_open()) return fail_errno(ErrorKind::kIo, errno, "memfd_create");
  crypto::Transcript facts("host");
  facts << boot << network << users << geteuid();
  // A digest, not a secret: it keeps the address short and tells other hosts nothing.
  const crypto::Mac digest = crypto::Secret().mac(facts.text());
  std::string text;
  for (std::size_t i = 0; i < 8; ++i) text += fmt::format("{:02x}", static_cast<int>(digest[i]));
  return text;
}

}  // namespace antdt::trainer
