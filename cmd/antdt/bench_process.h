// A process of a benchmark: this program again, with a hidden command.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/result.h"

namespace antdt::bench {

// Ends its process (SIGTERM) when it goes.
class BenchProcess {
 public:
  // `arguments` after the program's name; `environment` ("NAME=value") beside
  // this process's own. What it prints goes to the file `output`.
  [[nodiscard]] static Result<BenchProcess> start(const std::vector<std::string>& arguments,
                                                  const std::vector<std::string>& environment,
                                                  std::string output);
  BenchProcess(BenchProcess&& other) noexcept;
  BenchProcess& operator=(BenchProcess&&) = delete;
  ~BenchProcess();

  // Waits for its end. What it printed; an error when it failed.
  [[nodiscard]] Result<std::string> printed();

 private:
  BenchProcess(pid_t pid, std::string output) : pid_(pid), output_(std::move(output)) {}
  pid_t pid_;  // 0: it has ended
  std::string output_;
};

}  // namespace antdt::bench
