// Linked into test programs that are declared to have one thread (antdt_test ... ONE_THREAD): a
// program that starts another one is aborted here, because this symbol precedes libc's. libzmq's
// own threads are let through: they run none of our code, and the thread sanitizer does not see
// theirs.
#include <dlfcn.h>
#include <pthread.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

bool is_of_libzmq(void* (*run)(void*)) {
  Dl_info about{};
  return ::dladdr(reinterpret_cast<void*>(run), &about) != 0 && about.dli_fname != nullptr &&
         std::string_view(about.dli_fname).find("/libzmq.so") != std::string_view::npos;
}

}  // namespace

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*run)(void*), void* argument) noexcept {
  if (!is_of_libzmq(run)) {
    std::fputs(
        "a test said to be ONE_THREAD starts a thread: take ONE_THREAD away in its "
        "CMakeLists.txt, so that the thread sanitizer sees it\n",
        stderr);
    std::abort();
  }
  static const auto next =
      reinterpret_cast<decltype(&::pthread_create)>(::dlsym(RTLD_NEXT, "pthread_create"));
  return next(thread, attributes, run, argument);
}
