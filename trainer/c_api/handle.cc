#include "trainer/c_api/handle.h"

#include <unistd.h>

namespace antdt::capi {

OfThisProcess::OfThisProcess() : pid_(::getpid()) {}
bool OfThisProcess::here() const { return ::getpid() == pid_; }
std::string OfThisProcess::forked(const char* function) const {
  return fmt::format(
      "{}: process {} opened this handle, and process {} is a child that was forked afterwards: "
      "the "
      "library's threads are not in it. Open in the child instead, or fork before antdt_open",
      function, pid_, ::getpid());
}

About::About(const client::Client& client, bool in_job)
    : in_job_(in_job),
      job_(client.job()),
      worker_(to_string(client.member().worker)),
      host_(client.host()),
      run_dir_(client.run_dir()),
      config_json_(client.config_json()),
      attempt_(client.member().attempt.value) {}

antdt_about About::fields() const {
  return {sizeof(antdt_about),  in_job_ ? 1U : 0U, job_.c_str(),
          worker_.c_str(),      host_.c_str(),     run_dir_.c_str(),
          config_json_.c_str(), attempt_,          0};
}

}  // namespace antdt::capi
