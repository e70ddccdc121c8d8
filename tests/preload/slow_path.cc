// A disk that is slow, hangs or fails, for tests: a library that is loaded before all others
// (LD_PRELOAD) and intercepts a program's calls on files.
//
//   ANTDT_TEST_SLOW_PATH     an absolute path: the calls about it and what is below it are
//                            concerned, by name or through an open descriptor
//   ANTDT_TEST_SLOW_CONTROL  a file, read at each call, that says what happens to them:
//     (empty, or no file)    nothing
//     stall                  the call waits until the file says something else
//     rate BYTES             reads and writes take as long as at so many bytes a second, all of
//                            one process together
//     fail ERRNO             the call fails: EIO, ENOSPC, EACCES, ENOENT, EROFS, or a number
//
// Paths are compared as they are written, without resolving symbolic links. Accesses through a
// mapping (mmap), and system calls that a program makes without the C library, are not intercepted.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

enum class Order { kNothing, kStall, kRate, kFail };
struct Control {
  Order order = Order::kNothing;
  double bytes_per_second = 0;
  int error = 0;
};

// The code below uses system calls, since it defines the functions of the C library itself.

std::size_t read_small(const char* path, char* into, std::size_t size) {
  const long fd = ::syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return 0;
  const long got = ::syscall(SYS_read, fd, into, size);
  ::syscall(SYS_close, fd);
  return got > 0 ? static_cast<std::size_t>(got) : 0;
}

int error_of(const char* name) {
  struct Named {
    const char* name;
    int error;
  };
  constexpr Named kNames[] = {{"EIO", EIO},       {"ENOSPC", ENOSPC}, {"EACCES", EACCES},
                              {"ENOENT", ENOENT}, {"EROFS", EROFS},   {"EDQUOT", EDQUOT},
                              {"ESTALE", ESTALE}};
  for (const Named& named : kNames) {
    if (std::strncmp(name, named.name, std::strlen(named.name)) == 0) return named.error;
  }
  const int number = std::atoi(name);
  return number > 0 ? number : EIO;
}

Control control_now() {
  const char* const path = std::getenv("ANTDT_TEST_SLOW_CONTROL");
  char text[64];
  const std::size_t size = path == nullptr ? 0 : read_small(path, text, sizeof text - 1);
  text[size] = '\0';
  if (std::strncmp(text, "stall", 5) == 0) return {Order::kStall, 0, 0};
  if (std::strncmp(text, "rate ", 5) == 0) return {Order::kRate, std::atof(text + 5), 0};
  if (std::strncmp(text, "fail ", 5) == 0) return {Order::kFail, 0, error_of(text + 5)};
  return {};
}

// `path` without "//", "/./" and "/../", below `base` if it is relative. Whether it fits.
bool normalize(const char* base, const char* path, char (&out)[PATH_MAX]) {
  std::size_t size = 0;
  const auto add = [&](const char* part) {
    while (*part != '\0') {
      while (*part == '/') ++part;
      const std::size_t length = std::strcspn(part, "/");
      if (length == 2 && part[0] == '.' && part[1] == '.') {
        while (size > 0 && out[--size] != '/') {
        }
      } else if (length > 0 && !(length == 1 && part[0] == '.')) {
        if (size + 1 + length >= PATH_MAX) return false;
        out[size++] = '/';
        std::memcpy(out + size, part, length);
        size += length;
      }
      part += length;
    }
    return true;
  };
  if (path[0] != '/' && !add(base)) return false;
  if (!add(path)) return false;
  out[size] = '\0';
  return true;
}

bool below(const char* base, const char* path) {
  const char* const prefix = std::getenv("ANTDT_TEST_SLOW_PATH");
  char wanted[PATH_MAX];
  char given[PATH_MAX];
  if (prefix == nullptr || prefix[0] != '/' || path == nullptr) return false;
  if (!normalize("/", prefix, wanted) || !normalize(base, path, given)) return false;
  const std::size_t length = std::strlen(wanted);
  return length > 0 && std::strncmp(wanted, given, length) == 0 &&
         (given[length] == '\0' || given[length] == '/');
}

// Writes the path of a descriptor; "" if it is no file.
void path_of(int fd, char (&out)[PATH_MAX]) {
  char link[64] = "/proc/self/cwd";
  if (fd != AT_FDCWD) std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const long size = ::syscall(SYS_readlinkat, AT_FDCWD, link, out, sizeof out - 1);
  out[size > 0 ? size : 0] = '\0';
}

bool concerns(int fd) {
  char path[PATH_MAX];
  path_of(fd, path);
  return path[0] == '/' && below("/", path);
}
bool concerns(std::FILE* file) { return concerns(::fileno(file)); }
bool concerns(int directory, const char* path) {
  char base[PATH_MAX] = "/";
  if (path != nullptr && path[0] != '/') path_of(directory, base);
  return below(base, path);
}
bool concerns(const char* path) { return concerns(AT_FDCWD, path); }

void rest(double seconds) {
  timespec left{
      static_cast<time_t>(seconds),
      static_cast<long>((seconds - static_cast<double>(static_cast<time_t>(seconds))) * 1e9)};
  while (::nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

std::uint64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// Waits while the disk hangs. Returns false, with errno, if the call is to fail.
template <class Concerned>
bool permitted(const Concerned& concerned) {
  const int before = errno;
  Control control = control_now();
  const bool ours = control.order != Order::kNothing && concerned();
  while (ours && control.order == Order::kStall) {
    rest(0.01);
    control = control_now();
  }
  if (ours && control.order == Order::kFail) {
    errno = control.error;
    return false;
  }
  errno = before;
  return true;
}

std::atomic<std::uint64_t> free_at_ns{0};  // when the slow disk has finished its work

// Takes as long as `bytes` take at the rate; the calls of one process wait for one another.
template <class File, class Bytes>
Bytes paid(File file, Bytes bytes, std::uint64_t size) {
  const int before = errno;
  const Control control = control_now();
  if (size > 0 && control.order == Order::kRate && control.bytes_per_second > 0 && concerns(file)) {
    const auto takes =
        static_cast<std::uint64_t>(static_cast<double>(size) / control.bytes_per_second * 1e9);
    const std::uint64_t now = now_ns();
    std::uint64_t begins = free_at_ns.load();
    std::uint64_t ends = 0;
    do {
      ends = (begins > now ? begins : now) + takes;
    } while (!free_at_ns.compare_exchange_weak(begins, ends));
    if (ends > now) rest(static_cast<double>(ends - now) / 1e9);
  }
  errno = before;
  return bytes;
}
template <class File, class Bytes>
Bytes paid(File file, Bytes bytes) {
  return paid(file, bytes, bytes > 0 ? static_cast<std::uint64_t>(bytes) : 0);
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

// A call: RESULT NAME(PARAMETERS), passed on with ARGUMENTS unless it FAILED; the last parameter
// names the file.
#define ANTDT_CALL(RESULT, NAME, PARAMETERS, ARGUMENTS, NOEXCEPT, FAILED, CONCERNED) \
  RESULT NAME PARAMETERS NOEXCEPT {                                                  \
    static auto* const real = next<RESULT PARAMETERS>(#NAME);                        \
    if (!permitted([&] { return CONCERNED; })) return FAILED;                        \
    return real ARGUMENTS;                                                           \
  }
// The same for a call that moves as many bytes as it returns.
#define ANTDT_BYTES(RESULT, NAME, PARAMETERS, ARGUMENTS, FD)  \
  RESULT NAME PARAMETERS {                                    \
    static auto* const real = next<RESULT PARAMETERS>(#NAME); \
    if (!permitted([&] { return concerns(FD); })) return -1;  \
    return paid(FD, real ARGUMENTS);                          \
  }
// The same for a call that may make a file, and so may have a mode.
#define ANTDT_OPEN(NAME, PARAMETERS, ARGUMENTS, CONCERNED) \
  int NAME PARAMETERS {                                    \
    static auto* const real = next<int PARAMETERS>(#NAME); \
    mode_t mode = 0;                                       \
    if ((flags & (O_CREAT | __O_TMPFILE)) != 0) {          \
      va_list rest_of_arguments;                           \
      va_start(rest_of_arguments, flags);                  \
      mode = va_arg(rest_of_arguments, mode_t);            \
      va_end(rest_of_arguments);                           \
    }                                                      \
    if (!permitted([&] { return CONCERNED; })) return -1;  \
    return real ARGUMENTS;                                 \
  }

extern "C" {

ANTDT_OPEN(open, (const char* path, int flags, ...), (path, flags, mode), concerns(path))
ANTDT_OPEN(open64, (const char* path, int flags, ...), (path, flags, mode), concerns(path))
ANTDT_OPEN(openat, (int at, const char* path, int flags, ...), (at, path, flags, mode),
           concerns(at, path))
ANTDT_OPEN(openat64, (int at, const char* path, int flags, ...), (at, path, flags, mode),
           concerns(at, path))
ANTDT_CALL(int, __open_2, (const char* path, int flags), (path, flags), , -1, concerns(path))
ANTDT_CALL(int, __open64_2, (const char* path, int flags), (path, flags), , -1, concerns(path))
ANTDT_CALL(int, __openat_2, (int at, const char* path, int flags), (at, path, flags), , -1,
           concerns(at, path))
ANTDT_CALL(int, __openat64_2, (int at, const char* path, int flags), (at, path, flags), , -1,
           concerns(at, path))
ANTDT_CALL(int, creat, (const char* path, mode_t mode), (path, mode), , -1, concerns(path))
ANTDT_CALL(int, creat64, (const char* path, mode_t mode), (path, mode), , -1, concerns(path))

ANTDT_BYTES(ssize_t, read, (int fd, void* to, size_t n), (fd, to, n), fd)
ANTDT_BYTES(ssize_t, __read_chk, (int fd, void* to, size_t n, size_t most), (fd, to, n, most), fd)
ANTDT_BYTES(ssize_t, pread, (int fd, void* to, size_t n, off_t at), (fd, to, n, at), fd)
ANTDT_BYTES(ssize_t, pread64, (int fd, void* to, size_t n, off64_t at), (fd, to, n, at), fd)
ANTDT_BYTES(ssize_t, __pread_chk, (int fd, void* to, size_t n, off_t at, size_t most),
            (fd, to, n, at, most), fd)
ANTDT_BYTES(ssize_t, __pread64_chk, (int fd, void* to, size_t n, off64_t at, size_t most),
            (fd, to, n, at, most), fd)
ANTDT_BYTES(ssize_t, readv, (int fd, const iovec* to, int n), (fd, to, n), fd)
ANTDT_BYTES(ssize_t, write, (int fd, const void* from, size_t n), (fd, from, n), fd)
ANTDT_BYTES(ssize_t, pwrite, (int fd, const void* from, size_t n, off_t at), (fd, from, n, at), fd)
ANTDT_BYTES(ssize_t, pwrite64, (int fd, const void* from, size_t n, off64_t at), (fd, from, n, at),
            fd)
ANTDT_BYTES(ssize_t, writev, (int fd, const iovec* from, int n), (fd, from, n), fd)

ssize_t sendfile(int to, int from, off_t* at, size_t n) noexcept {
  static auto* const real = next<ssize_t(int, int, off_t*, size_t)>("sendfile");
  if (!permitted([&] { return concerns(from) || concerns(to); })) return -1;
  return paid(concerns(to) ? to : from, real(to, from, at, n));
}
ssize_t copy_file_range(int from, off64_t* from_at, int to, off64_t* to_at, size_t n,
                        unsigned flags) {
  static auto* const real =
      next<ssize_t(int, off64_t*, int, off64_t*, size_t, unsigned)>("copy_file_range");
  if (!permitted([&] { return concerns(from) || concerns(to); })) return -1;
  return paid(concerns(to) ? to : from, real(from, from_at, to, to_at, n, flags));
}

ANTDT_CALL(int, fsync, (int fd), (fd), , -1, concerns(fd))
ANTDT_CALL(int, fdatasync, (int fd), (fd), , -1, concerns(fd))
ANTDT_CALL(int, syncfs, (int fd), (fd), noexcept, -1, concerns(fd))
ANTDT_CALL(int, ftruncate, (int fd, off_t n), (fd, n), noexcept, -1, concerns(fd))
ANTDT_CALL(int, ftruncate64, (int fd, off64_t n), (fd, n), noexcept, -1, concerns(fd))
ANTDT_CALL(int, truncate, (const char* path, off_t n), (path, n), noexcept, -1, concerns(path))
ANTDT_CALL(int, fallocate, (int fd, int mode, off_t at, off_t n), (fd, mode, at, n), , -1,
           concerns(fd))
ANTDT_CALL(int, fallocate64, (int fd, int mode, off64_t at, off64_t n), (fd, mode, at, n), , -1,
           concerns(fd))
ANTDT_CALL(int, posix_fallocate, (int fd, off_t at, off_t n), (fd, at, n), , errno, concerns(fd))
ANTDT_CALL(int, posix_fallocate64, (int fd, off64_t at, off64_t n), (fd, at, n), , errno,
           concerns(fd))

ANTDT_CALL(int, rename, (const char* from, const char* to), (from, to), noexcept, -1,
           concerns(from) || concerns(to))
ANTDT_CALL(int, renameat, (int a, const char* from, int b, const char* to), (a, from, b, to),
           noexcept, -1, concerns(a, from) || concerns(b, to))
ANTDT_CALL(int, renameat2, (int a, const char* from, int b, const char* to, unsigned flags),
           (a, from, b, to, flags), noexcept, -1, concerns(a, from) || concerns(b, to))
ANTDT_CALL(int, link, (const char* from, const char* to), (from, to), noexcept, -1,
           concerns(from) || concerns(to))
ANTDT_CALL(int, linkat, (int a, const char* from, int b, const char* to, int flags),
           (a, from, b, to, flags), noexcept, -1, concerns(a, from) || concerns(b, to))
ANTDT_CALL(int, symlink, (const char* text, const char* path), (text, path), noexcept, -1,
           concerns(path))
ANTDT_CALL(int, remove, (const char* path), (path), noexcept, -1, concerns(path))
ANTDT_CALL(int, unlink, (const char* path), (path), noexcept, -1, concerns(path))
ANTDT_CALL(int, unlinkat, (int at, const char* path, int flags), (at, path, flags), noexcept, -1,
           concerns(at, path))
ANTDT_CALL(int, rmdir, (const char* path), (path), noexcept, -1, concerns(path))
ANTDT_CALL(int, mkdir, (const char* path, mode_t mode), (path, mode), noexcept, -1, concerns(path))
ANTDT_CALL(int, mkdirat, (int at, const char* path, mode_t mode), (at, path, mode), noexcept, -1,
           concerns(at, path))
ANTDT_CALL(int, chmod, (const char* path, mode_t mode), (path, mode), noexcept, -1, concerns(path))
ANTDT_CALL(int, fchmod, (int fd, mode_t mode), (fd, mode), noexcept, -1, concerns(fd))
ANTDT_CALL(int, chdir, (const char* path), (path), noexcept, -1, concerns(path))

ANTDT_CALL(DIR*, opendir, (const char* path), (path), , nullptr, concerns(path))
ANTDT_CALL(dirent*, readdir, (DIR * of), (of), , nullptr, concerns(::dirfd(of)))
ANTDT_CALL(dirent64*, readdir64, (DIR * of), (of), , nullptr, concerns(::dirfd(of)))

ANTDT_CALL(int, stat, (const char* path, struct stat* out), (path, out), noexcept, -1,
           concerns(path))
ANTDT_CALL(int, stat64, (const char* path, struct stat64* out), (path, out), noexcept, -1,
           concerns(path))
ANTDT_CALL(int, lstat, (const char* path, struct stat* out), (path, out), noexcept, -1,
           concerns(path))
ANTDT_CALL(int, lstat64, (const char* path, struct stat64* out), (path, out), noexcept, -1,
           concerns(path))
ANTDT_CALL(int, fstat, (int fd, struct stat* out), (fd, out), noexcept, -1, concerns(fd))
ANTDT_CALL(int, fstat64, (int fd, struct stat64* out), (fd, out), noexcept, -1, concerns(fd))
ANTDT_CALL(int, fstatat, (int at, const char* path, struct stat* out, int flags),
           (at, path, out, flags), noexcept, -1, concerns(at, path))
ANTDT_CALL(int, fstatat64, (int at, const char* path, struct stat64* out, int flags),
           (at, path, out, flags), noexcept, -1, concerns(at, path))
ANTDT_CALL(int, statx, (int at, const char* path, int flags, unsigned mask, struct statx* out),
           (at, path, flags, mask, out), noexcept, -1, concerns(at, path))
ANTDT_CALL(int, statvfs, (const char* path, struct statvfs* out), (path, out), noexcept, -1,
           concerns(path))
ANTDT_CALL(int, statvfs64, (const char* path, struct statvfs64* out), (path, out), noexcept, -1,
           concerns(path))
ANTDT_CALL(int, fstatvfs, (int fd, struct statvfs* out), (fd, out), noexcept, -1, concerns(fd))
ANTDT_CALL(int, access, (const char* path, int mode), (path, mode), noexcept, -1, concerns(path))
ANTDT_CALL(int, faccessat, (int at, const char* path, int mode, int flags), (at, path, mode, flags),
           noexcept, -1, concerns(at, path))
ANTDT_CALL(ssize_t, readlink, (const char* path, char* to, size_t n), (path, to, n), noexcept, -1,
           concerns(path))
ANTDT_CALL(char*, realpath, (const char* path, char* out), (path, out), noexcept, nullptr,
           concerns(path))

// Streams of stdio: inside the C library they do not use the functions above.
ANTDT_CALL(FILE*, fopen, (const char* path, const char* mode), (path, mode), , nullptr,
           concerns(path))
ANTDT_CALL(FILE*, fopen64, (const char* path, const char* mode), (path, mode), , nullptr,
           concerns(path))
ANTDT_CALL(int, fflush, (FILE * file), (file), , EOF, file != nullptr && concerns(file))
ANTDT_CALL(int, fflush_unlocked, (FILE * file), (file), , EOF, file != nullptr && concerns(file))
ANTDT_CALL(int, fputs, (const char* text, FILE* file), (text, file), , EOF, concerns(file))

size_t fwrite(const void* from, size_t size, size_t n, FILE* file) {
  static auto* const real = next<size_t(const void*, size_t, size_t, FILE*)>("fwrite");
  if (!permitted([&] { return concerns(file); })) return 0;
  const size_t done = real(from, size, n, file);
  return paid(file, done, done * size);
}
size_t fwrite_unlocked(const void* from, size_t size, size_t n, FILE* file) {
  static auto* const real = next<size_t(const void*, size_t, size_t, FILE*)>("fwrite_unlocked");
  if (!permitted([&] { return concerns(file); })) return 0;
  const size_t done = real(from, size, n, file);
  return paid(file, done, done * size);
}
size_t fread(void* to, size_t size, size_t n, FILE* file) {
  static auto* const real = next<size_t(void*, size_t, size_t, FILE*)>("fread");
  if (!permitted([&] { return concerns(file); })) return 0;
  const size_t done = real(to, size, n, file);
  return paid(file, done, done * size);
}

}  // extern "C"
