// How many records a worker in a training phase keeps in hand.
#pragma once

#include <cstdint>

#include "core/clock.h"
#include "trainer/client/client.h"

namespace antdt::trainer {

// Several seconds of work by the speed measured, so that the job daemon may be
// away; what is held can only be trained here, so a first guess stays small.
class Hold {
 public:
  // Sets the client's hold at once.
  Hold(client::Client& client, const Clock& clock, std::uint64_t batch);
  // After a batch, with the place reached: now and then.
  void update(std::uint64_t place, std::uint64_t batch);
  // The batch is another from now on.
  void set(std::uint64_t place, std::uint64_t batch);

 private:
  client::Client& client_;
  const Clock& clock_;
  MonoTime updated_;
  std::uint64_t place_ = 0;  // then
};

}  // namespace antdt::trainer
