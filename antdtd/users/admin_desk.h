// Orders of administrators that were passed on to job daemons and are not answered yet. A value, no
// I/O.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace antdt::antdtd {

class AdminDesk {
 public:
  struct Waiting {
    std::string job;
    std::string peer;       // routing id of the administrator
    std::uint64_t seq = 0;  // seq of the order
  };
  // How many orders may wait; the oldest is forgotten for one more.
  static constexpr std::size_t kMost = 1000;

  // Returns the number that the job daemon repeats in its answer.
  [[nodiscard]] std::uint64_t ask(Waiting waiting);
  // The administrator who waits for the answer of `job` to that number; empty if another job
  // answers.
  [[nodiscard]] std::optional<Waiting> take(std::uint64_t number, const std::string& job);

 private:
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, Waiting> waiting_;
};

}  // namespace antdt::antdtd
