// Linked into test programs that are declared to have one thread (antdt_test ... ONE_THREAD): a
// program that starts another thread is aborted here, because this symbol precedes libc's.
#include <pthread.h>

#include <cstdio>
#include <cstdlib>

extern "C" int pthread_create(pthread_t* /*thread*/, const pthread_attr_t* /*attributes*/,
                              void* (* /*run*/)(void*), void* /*argument*/) noexcept {
  std::fputs(
      "a test said to be ONE_THREAD starts a thread: take ONE_THREAD away in its "
      "CMakeLists.txt, so that the thread sanitizer sees it\n",
      stderr);
  std::abort();
}
