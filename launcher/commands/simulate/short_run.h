// A run of a job for a short while, which this process starts as a user would, in a directory that
// is removed afterwards.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "core/result.h"

namespace antdt::cli {

// A directory that is removed with this.
class Aside {
 public:
  // "/tmp/<name>-XXXXXX"
  static Result<Aside> make(const std::string& name);
  Aside(Aside&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  Aside& operator=(Aside&&) = delete;
  ~Aside();
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  explicit Aside(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// This program with other arguments; what it prints is appended to a file.
class Command {
 public:
  static Result<Command> start(std::vector<std::string> arguments, const std::string& output);
  // Whether it has ended; does not wait.
  bool ended();
  void await_end();

 private:
  explicit Command(pid_t pid) : pid_(pid) {}
  bool wait(int flags);
  pid_t pid_;
  bool ended_ = false;
};

// The last 2,000 bytes of what was printed, for an error.
[[nodiscard]] std::string end_of_output(const std::string& path);

}  // namespace antdt::cli
