#include "trainer/client/environment.h"

#include <charconv>
#include <cstdlib>

namespace antdt::client {
namespace {

Result<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') {
    return fail(ErrorKind::kUsage,
                "{} is not set: this program is a worker and is started by an agent. Name it as "
                "the command of a role in job.toml and start the job with 'antdt run job.toml'",
                name);
  }
  return std::string(value);
}

}  // namespace

Result<Environment> Environment::from_process() {
  Environment environment;
  ANTDT_TRY(environment.socket, variable("ANTDT_SOCKET"));
  ANTDT_TRY(environment.job, variable("ANTDT_JOB_ID"));
  ANTDT_TRY(const std::string worker, variable("ANTDT_WORKER_ID"));
  const auto id = parse_worker_id(worker);
  if (!id) {
    return fail(ErrorKind::kUsage,
                "ANTDT_WORKER_ID is '{}': expected a letter and a number, as 'w0'", worker);
  }
  ANTDT_TRY(const std::string attempt, variable("ANTDT_ATTEMPT"));
  Attempt::rep number = 0;
  const char* end = attempt.data() + attempt.size();
  const auto parsed = std::from_chars(attempt.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end || number == 0) {
    return fail(ErrorKind::kUsage, "ANTDT_ATTEMPT is '{}': expected a number from 1", attempt);
  }
  environment.self = Member{*id, Attempt{number}};
  if (const char* protocol = std::getenv("ANTDT_PROTOCOL")) environment.protocol = protocol;
  return environment;
}

}  // namespace antdt::client
