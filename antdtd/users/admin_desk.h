// Orders of administrators that were passed on to job daemons and are not answered yet.
// A value, no I/O.
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
    std::string peer;       // routing id of who asked
    std::uint64_t seq = 0;  // of the question
  };
  // So many may wait; the oldest is forgotten for one more.
  static constexpr std::size_t kMost = 1000;

  // The number that the job daemon is to repeat in its answer.
  [[nodiscard]] std::uint64_t ask(Waiting waiting);
  // Who waits for the answer that `job` gives to that number; nobody if another job answers.
  [[nodiscard]] std::optional<Waiting> take(std::uint64_t number, const std::string& job);

 private:
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, Waiting> waiting_;
};

}  // namespace antdt::antdtd
