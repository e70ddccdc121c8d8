// When a job daemon does what it does again and again, and when it pauses. Pure: what its driver
// (jobd, and the simulation) would else decide itself.
//
// Its requests that agents have not confirmed are repeated by ctl/lifecycle/process_requests.h, its
// links to agents are watched by ctl/processes/agent_contacts.h.
#pragma once

#include <optional>
#include <type_traits>

#include "core/clock.h"
#include "core/wire/shard_messages.h"
#include "core/wire/training_messages.h"

namespace antdt::ctl::job {

// Between two TimePassed of the job machine.
inline constexpr Duration kTick = std::chrono::milliseconds(100);

// The journal's disk is full: requests that would make it grow are left unanswered (workers repeat
// them, and train on what they hold), until there is room again.
class JournalPause {
 public:
  static constexpr Duration kLookForRoom = std::chrono::seconds(1);

  [[nodiscard]] bool paused() const { return looked_.has_value(); }
  // The journal is low on space: whether the pause begins now.
  [[nodiscard]] bool begin(MonoTime now) {
    if (paused()) return false;
    looked_ = now;
    return true;
  }
  // Whether it is time to look for room again.
  [[nodiscard]] bool look(MonoTime now) {
    if (!paused() || now - *looked_ < kLookForRoom) return false;
    looked_ = now;
    return true;
  }
  void end() { looked_.reset(); }
  // Whether this message of a worker is left unanswered now. It is said again.
  template <class Message>
  [[nodiscard]] bool ignores() const {
    return paused() &&
           (std::is_same_v<Message, wire::Fetch> || std::is_same_v<Message, wire::Progress>);
  }

 private:
  std::optional<MonoTime> looked_;  // for room, last; or when the pause began
};

}  // namespace antdt::ctl::job
