// A process of a benchmark: this program with a hidden command, or another program.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/result.h"

namespace antdt::bench {

// Ends its process (SIGTERM) when it is destroyed.
class BenchProcess {
 public:
  // `arguments` after the program's name; `environment` ("NAME=value") is added to this process's
  // own. The process's output goes to the file `output`.
  [[nodiscard]] static Result<BenchProcess> start(const std::vector<std::string>& arguments,
                                                  const std::vector<std::string>& environment,
                                                  std::string output);
  // Starts another program: `command` with its path. Its errors go to `output`, too.
  [[nodiscard]] static Result<BenchProcess> start_program(std::vector<std::string> command,
                                                          std::string output);
  BenchProcess(BenchProcess&& other) noexcept;
  BenchProcess& operator=(BenchProcess&&) = delete;
  ~BenchProcess();

  // Waits for its end and returns its output; an error if it failed.
  [[nodiscard]] Result<std::string> printed();
  // Whether it has ended by itself.
  [[nodiscard]] bool ended();

 private:
  BenchProcess(pid_t pid, std::string output) : pid_(pid), output_(std::move(output)) {}
  pid_t pid_;  // 0: it has ended
  std::string output_;
};

}  // namespace antdt::bench
