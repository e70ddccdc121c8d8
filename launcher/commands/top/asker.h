// Asks all jobs of this user, and the agents of given hosts, once a second, on a thread of its own.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "launcher/top/top.h"

namespace antdt::cli {

struct AskerOptions {
  std::vector<std::string> hosts;  // HOST:PORT
  std::string keys;
};

class Asker {
 public:
  explicit Asker(AskerOptions options);
  // If the thread waits for a disk that does not answer, it is left behind.
  ~Asker();
  Asker(const Asker&) = delete;
  Asker& operator=(const Asker&) = delete;

  // Readable while there is something to take.
  [[nodiscard]] int news() const;
  [[nodiscard]] std::vector<launcher::top::Input> take();
  // Waits for the first answers; false after `patience`.
  [[nodiscard]] bool wait(Duration patience) const;
  void order(const launcher::top::Evict& evict);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace antdt::cli
