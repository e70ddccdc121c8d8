// What a program said when it opened a job, read and checked.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/result.h"
#include "core/wire/membership_messages.h"
#include "include/antdt.h"
#include "trainer/client/client.h"
#include "trainer/loop/trainer_config.h"

namespace antdt::capi {

struct Settings {
  std::uint32_t flags = 0;
  Duration timeout = std::chrono::seconds(10);
  std::uint64_t records = 0;
  std::uint64_t eval_records = 0;
  std::string fingerprint;
  wire::Device device;
  std::uint32_t epochs = 1;
  std::uint32_t micro_batch = 32;
  std::uint32_t accumulation = 1;
  std::uint64_t seed = 0;
  std::uint64_t read_ahead = 0;

  // Null: all defaults. An error (kUsage) is what no caller that was built with antdt.h says.
  [[nodiscard]] static Result<Settings> of(const antdt_options* given);
};

// A worker of a job, or the only one of a world of one.
struct Connection {
  bool in_job = false;
  std::unique_ptr<const SteadyClock> clock = std::make_unique<SteadyClock>();
  std::unique_ptr<client::Client> client = {};
  trainer::TrainerConfig config = {};  // of the job
  wire::DataIdentity data = {};        // what the program says of its data
};
// By the environment. `member`: the program is to be a member of an all-reduce.
[[nodiscard]] Result<Connection> connect(const Settings& settings, bool member);

// Signals go to threads of the program: none that is made while this lives takes one.
class SignalsBlocked {
 public:
  SignalsBlocked();
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  struct Before;
  std::unique_ptr<Before> before_;
};

}  // namespace antdt::capi
