// One call of a program of the user's that is told an event: it gets a line on its standard input,
// and the end of the input. The program ends with this object, and so does what it started.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "jobd/programs/child_program.h"

namespace antdt::jobd {

class EventHook {
 public:
  // What the program writes goes to `write_log`, and no faster than ticks read it.
  using WriteLog = std::function<void(const std::string& words)>;

  [[nodiscard]] static Result<std::unique_ptr<EventHook>> start(
      const std::vector<std::string>& command, const std::string& directory, std::string line);

  // To be called several times a second. How it ended, in words ("" for exit code 0); nothing while
  // it runs.
  [[nodiscard]] std::optional<std::string> tick(const WriteLog& write_log);
  [[nodiscard]] pid_t pid() const { return child_.pid(); }

 private:
  EventHook(ChildProgram child, std::string line)
      : child_(std::move(child)), to_write_(std::move(line)) {}
  void write();

  ChildProgram child_;
  std::string to_write_;
  bool open_ = true;  // its input
};

}  // namespace antdt::jobd
